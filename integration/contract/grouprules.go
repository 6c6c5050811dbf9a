package contract

import (
	"errors"
	"fmt"
	"math/rand/v2"

	"github.com/twmb/franz-go/pkg/kgo"

	"mirror/sidecar/status"
)

var groupScenarios = []Scenario{
	{Name: "groups", Run: groupsFollowTheirSource},
	{Name: "group-rules", Run: groupsOnTheTargetAreRespected},
	{Name: "groups-without-data", Run: groupsOnPartitionsWithoutData},
	{Name: "groups-recreated", Run: groupsFollowARecreatedTopic},
}

// SyncGroups is a flow that takes the groups of the scenario to the target.
func (e *Env) SyncGroups() Flow {
	return Flow{Keys: "groups = ['" + e.Topic(".*") + "']\n", Tables: "[flows.checkpoints]\ninterval = \"200ms\"\nsync_groups = true\n"}
}

// CheckpointRound waits until a flow from an alias has found all groups that there are
// and gone through them: a new one has its checkpoint, and a newer one once it has moved.
func (e *Env) CheckpointRound(alias, topic string) {
	e.Helper()
	end := e.Ends(e.Source, topic)[0]
	canary := ""
	for n := 0; canary == "" || len(e.GroupOffsets(e.Source, canary)) > 0; n++ {
		canary = e.Topic(fmt.Sprintf("canary-of-%s-%d", alias, n))
	}
	for _, at := range []int64{end - 1, end} {
		e.CommitGroup(e.Source, canary, topic, at)
		e.Eventually("checkpoints of "+alias, func() string {
			if c := e.LastCheckpoints(alias)[canary][alias+"."+topic][0]; c.Upstream != at {
				return fmt.Sprintf("the last one of %s is of %d, want %d", canary, c.Upstream, at)
			}
			return ""
		})
	}
}

// DeleteGroup deletes a group.
func (e *Env) DeleteGroup(c *Cluster, group string) {
	e.Helper()
	r, err := c.admin.DeleteGroup(e.ctx, group)
	if err = errors.Join(err, r.Err); err != nil {
		e.Fatalf("delete group %s: %v", group, err)
	}
}

// Groups that stop anywhere among transactions go on exactly, those that stop at the
// end, too, across restarts; what is not mirrored does not concern them.
func groupsFollowTheirSource(e *Env) {
	topic, elsewhere := e.Topic("t"), e.Topic("no-thanks")
	e.Create(e.Source, topic, 2)
	e.Create(e.Source, elsewhere, 1)
	e.Put(e.Source, elsewhere, Numbered(0, "x", 10)...)
	flow := e.SyncGroups()
	flow.Keys += "exclude_topics = ['" + elsewhere + "']\n"
	rng := rand.New(rand.NewPCG(8, 0))
	producer := e.transactional("p")
	from := map[string][]int64{topic: {0, 0}}
	head := e.Topic("head")
	e.CommitGroup(e.Source, head, elsewhere, 5)
	for range 3 {
		m := e.Start(flow)
		e.transact(producer, topic)
		m.CaughtUp(topic)
		to := map[string][]int64{topic: e.Ends(e.Source, topic)}
		groups := e.ScatterGroups(rng, "anywhere", 5, from, to)
		e.CommitGroup(e.Source, head, topic, to[topic]...)
		from = to
		m.GroupsFollow([]string{topic}, append(groups, head))
		m.Stop()
	}
	if there := e.GroupOffsets(e.Target, head); len(there) != 1 || len(e.LastCheckpoints("src")[head]) != 1 {
		e.Errorf("group %s has offsets of %v on the target, with checkpoints %v, want those of %s alone", head, there, e.LastCheckpoints("src")[head], topic)
	}
}

// What the group on the target has, or does, comes first.
func groupsOnTheTargetAreRespected(e *Env) {
	topic := e.Topic("t")
	e.Create(e.Source, topic, 1)
	e.Put(e.Source, topic, Numbered(0, "x", 100)...)
	m := e.Start(e.SyncGroups())
	m.CaughtUp(topic)
	name := m.TargetName(topic)
	back, active, ahead, expired, gone := e.Topic("back"), e.Topic("active"), e.Topic("ahead"), e.Topic("expired"), e.Topic("gone")
	e.CommitGroup(e.Target, ahead, name, 90)
	member := e.Target.Client(e, kgo.ConsumerGroup(active), kgo.ConsumeTopics(name), kgo.DisableAutoCommit(), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	if err := member.PollRecords(e.ctx, 1).Err(); err != nil { // it has joined
		e.Fatal(err)
	}
	all := []string{back, active, ahead, expired, gone}
	for _, g := range all {
		e.CommitGroup(e.Source, g, topic, 50)
	}
	follow := func(groups ...string) {
		e.Helper()
		m.GroupsFollow([]string{topic}, groups)
	}
	want := func(group string, checkpoint, offset int64) {
		e.Helper()
		there, ok := e.GroupOffsets(e.Target, group).Lookup(name, 0)
		if !ok {
			there.At = -1
		}
		if c := e.LastCheckpoints("src")[group][name][0]; c.Upstream != checkpoint || c.Downstream != checkpoint || there.At != offset {
			e.Errorf("group %s is at %d on the target, with the checkpoint %+v, want %d and one of %d", group, there.At, c, offset, checkpoint)
		}
	}
	follow(back, expired, gone)
	e.CheckpointRound("src", topic)
	want(active, 50, -1)
	want(ahead, 50, 90)

	e.CommitGroup(e.Source, back, topic, 20)
	e.DeleteGroup(e.Target, expired)
	e.DeleteGroup(e.Source, gone)
	follow(expired)
	e.CheckpointRound("src", topic)
	want(back, 20, 50) // its checkpoint goes back with it, the group on the target never
	want(gone, 50, 50)
	want(active, 50, -1)

	e.CommitGroup(e.Source, ahead, topic, 95)
	member.Close()
	follow(active, ahead)
	e.CommitGroup(e.Source, back, topic, 60)
	follow(back)
}

// The copy of a topic that was made again is behind that of the old one.
func groupsFollowARecreatedTopic(e *Env) {
	topic, group := e.Topic("t"), e.Topic("g")
	e.Create(e.Source, topic, 1)
	e.Put(e.Source, topic, Numbered(0, "old", 50)...)
	flow := e.SyncGroups()
	flow.Keys += "on_recreated = \"restart\"\n"
	m := e.Start(flow)
	m.CaughtUp(topic)
	e.CommitGroup(e.Source, group, topic, 30)
	m.GroupsFollow([]string{topic}, []string{group})
	e.Delete(e.Source, topic)
	e.Create(e.Source, topic, 1)
	client := e.Source.Client(e) // it knows of the new one
	e.PutWith(client, topic, Numbered(0, "new", 40)...)
	m.CaughtUp(topic)
	m.Wait("the new topic's records", func() string { return e.MissingRecords(e.Target, m.TargetName(topic), 90) })
	e.CommitGroup(e.Source, group, topic, 10)
	m.GroupsFollow([]string{topic}, []string{group})
	if there, _ := e.GroupOffsets(e.Target, group).Lookup(m.TargetName(topic), 0); there.At != 60 {
		e.Errorf("the group is at %d on the target, want 60", there.At)
	}
}

// A partition that has no data, or none any more, has an end all the same: a group that
// is there goes on at the end of the copy, and with what comes next.
func groupsOnPartitionsWithoutData(e *Env) {
	const never, taken, copied, past = 0, 1, 2, 3 // partitions
	topic, group := e.Topic("t"), e.Topic("g")
	e.Create(e.Source, topic, 4)
	for _, p := range []int32{taken, copied} {
		e.Put(e.Source, topic, Numbered(p, "x", 10)...)
	}
	e.Trim(e.Source, topic, taken, 10)
	p := e.Launch(e.SyncGroups())
	p.CaughtUp(topic)
	e.Trim(e.Source, topic, copied, 10)
	committed := []int64{never: 0, taken: 10, copied: 10, past: 7}
	e.CommitGroup(e.Source, group, topic, committed...)
	want := func(outcomes []string, offsets ...int64) {
		e.Helper()
		p.Wait("checkpoints and the group on the target", func() string {
			there := e.GroupOffsets(e.Target, group)
			for n, offset := range offsets {
				number := int32(n)
				c := e.LastCheckpoints("src")[group][p.TargetName(topic)][number]
				if c.Upstream != committed[n] || c.Downstream != offset {
					return fmt.Sprintf("partition %d has the checkpoint %+v, want one of %d at %d", n, c, committed[n], offset)
				}
				if has, ok := there.Lookup(p.TargetName(topic), number); !ok || has.At != offset {
					return fmt.Sprintf("it is at %d of partition %d, want %d", has.At, n, offset)
				}
			}
			return ""
		})
		for n, o := range p.Translate(group).Partitions {
			if o.Partition != int32(n) || o.Source != committed[n] || o.Offset != offsets[n] || o.Outcome+o.Reason != outcomes[n] || o.Committed != offsets[n] || o.Would != status.SyncInPlace {
				e.Errorf("partition %d is translated as %+v, want %s %d", n, o, outcomes[n], offsets[n])
			}
		}
	}
	exact := status.OutcomeExact
	want([]string{exact, exact, exact, status.OutcomeBound + status.InexactBeforeFirst}, 0, 0, 10, 0)
	if n := len(e.LastCheckpoints("src")[group][p.TargetName(topic)]); n != len(committed) {
		e.Errorf("%d checkpoints, want %d", n, len(committed))
	}
	for n := range committed {
		e.Put(e.Source, topic, Numbered(int32(n), "y", 10)...)
	}
	p.CaughtUp(topic)
	want([]string{exact, exact, exact, exact}, 0, 0, 10, 7)
	p.GroupsFollow([]string{topic}, []string{group})
}
