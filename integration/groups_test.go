package integration

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"mirror/integration/kafkatest"
	"mirror/sidecar/cluster"
	"mirror/sidecar/config"
	"mirror/sidecar/groups"
)

// company is groups of a real cluster, and a topic that they read.
type company struct {
	*testing.T
	kafka  *kafkatest.Cluster
	client *kgo.Client
	groups *groups.Client
	topic  groups.Topics
	id     [16]byte
}

// What the mirror relies on with groups of every kind, on real brokers: how they are
// listed, read and committed for, and when a commit is refused.
func TestGroups(t *testing.T) {
	k := kafkatest.Start(t, nil, kafkatest.Options{Name: "groups", Nodes: 3})
	open, err := cluster.Open(config.Cluster{Alias: "A", Bootstrap: k.Bootstrap(), ClientID: "test"}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(open.Close)
	admin := kadm.NewClient(k.Client(t))
	if _, err := admin.CreateTopic(t.Context(), 2, 3, nil, "t"); err != nil {
		t.Fatal(err)
	}
	c := &company{T: t, kafka: k, client: k.Client(t), groups: groups.New(open)}
	var found map[string]cluster.Topic
	c.eventually("the topic", func() bool {
		found, err = open.Topics(t.Context(), []string{"t"})
		return err == nil && len(found["t"].Partitions) == 2
	})
	producer := k.Client(t)
	for n := range 10 {
		if err := producer.ProduceSync(t.Context(), &kgo.Record{Topic: "t", Value: fmt.Append(nil, n)}).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}
	c.id = found["t"].ID
	c.topic = groups.Topics{Names: map[string]bool{"t": true}, ByID: map[[16]byte]string{c.id: "t"}}

	c.commits("simple", 3)
	c.listed("simple", groups.Group{Name: "simple", Type: "classic", State: "Empty"})
	for _, typ := range protocols {
		name := "members-of-" + typ
		leave := c.join(name, typ)
		c.listed(name, groups.Group{Name: name, Type: typ, Protocol: together(typ), State: "Stable"})
		if err := c.commit(name, 1, c.id); !groups.Joined(err) {
			t.Errorf("a commit for the group %s, which has a member: %v", name, err)
		}
		leave()
		c.listed(name, groups.Group{Name: name, Type: typ, Protocol: together(typ), State: "Empty"})
		c.commits(name, 4)
	}
	// Members that come and go show in the epoch, but for the classic protocol.
	epochs := func() map[string]int32 {
		listed, err := c.groups.List(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return c.groups.Epochs(t.Context(), slices.Collect(maps.Values(listed)))
	}
	before := epochs()
	for _, typ := range protocols[1:] {
		name := "members-of-" + typ
		c.join(name, typ)()
		c.listed(name, groups.Group{Name: name, Type: typ, Protocol: together(typ), State: "Empty"})
		after := epochs()
		if len(before) != 2 || len(after) != 2 || after[name] <= before[name] {
			t.Errorf("epochs %v, and after a member of %s %v", before, name, after)
		}
		c.commits(name, 5)
		if again := epochs(); !maps.Equal(again, after) {
			t.Errorf("epochs %v, and after a commit %v", after, again)
		}
	}

	// A group that is there by commits only is taken over by members of any protocol,
	// where it stands.
	for _, typ := range protocols {
		name := "synced-" + typ
		c.commits(name, 2)
		c.join(name, typ)()
		c.listed(name, groups.Group{Name: name, Type: typ, Protocol: together(typ), State: "Empty"})
		if got, want := c.read(name), "t-0 2/-1 of "+name; got != want {
			t.Errorf("after a member group %s has %s, want %s", name, got, want)
		}
		c.commits(name, 3)
	}

	share := kmsg.NewPtrShareGroupHeartbeatRequest()
	share.GroupID, share.MemberID, share.SubscribedTopicNames = "shared", "AAAAAAAAAAAAAAAAAAAAAA", []string{"t"}
	resp, err := share.RequestWith(t.Context(), open.Client())
	if err == nil {
		err = kerr.ErrorForCode(resp.ErrorCode)
	}
	if err != nil {
		t.Fatalf("a share group: %v", err)
	}
	if all, err := c.groups.List(t.Context()); err != nil || !all["shared"].Share() {
		t.Errorf("a share group is %+v, %v", all["shared"], err)
	}
	if err := c.commit("shared", 1, c.id); err == nil || groups.Joined(err) {
		t.Errorf("a commit for a share group: %v", err)
	}

	if err := c.commit("simple", 1, [16]byte{1}); err == nil {
		t.Error("a commit for a topic that was made again is taken")
	}
	if got := c.read("simple"); got != "t-0 3/-1 of simple" {
		t.Errorf("after it: %s", got)
	}
	if _, err := admin.DeleteGroups(t.Context(), "simple"); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"simple", "never"} {
		if got := c.read(name); got != "" {
			t.Errorf("a group that does not exist has %s", got)
		}
	}
	// Coordinators that move: by a broker that goes.
	node := k.Nodes[0]
	node.Kill(t)
	c.eventually("all groups without a broker", func() bool {
		all, err := c.groups.List(t.Context())
		for typ, at := range map[string]int{"classic": 4, "consumer": 5, "streams": 5} {
			name := "members-of-" + typ
			if c.read(name) != fmt.Sprintf("t-0 %d/-1 of %s", at, name) {
				return false
			}
		}
		return (err != nil || len(all) > 0) && c.commit("members-of-classic", 4, c.id) == nil
	})
	node.Restart(t)
}

// eventually waits for a condition.
func (c *company) eventually(what string, is func() bool) {
	c.Helper()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for end := time.After(time.Minute); !is(); {
		select {
		case <-tick.C:
		case <-end:
			c.Fatalf("waited in vain for %s", what)
		}
	}
}

func (c *company) commit(group string, offset int64, id [16]byte) error {
	return c.groups.Commit(context.Background(), group, []groups.Offset{{Topic: "t", TopicID: id, Offset: offset, LeaderEpoch: -1, Metadata: "of " + group}})[0]
}

// commits has a commit taken, and reads it.
func (c *company) commits(group string, offset int64) {
	c.Helper()
	var err error
	c.eventually("a commit for "+group, func() bool { err = c.commit(group, offset, c.id); return err == nil || !groups.Moved(err) })
	if want := fmt.Sprintf("t-0 %d/-1 of %s", offset, group); err != nil || c.read(group) != want {
		c.Errorf("group %s has %s, want %s: %v", group, c.read(group), want, err)
	}
}

// read is what a group has committed.
func (c *company) read(group string) (text string) {
	f := c.groups.Fetch(context.Background(), []string{group}, c.topic)[0]
	if f.Err != nil {
		return f.Err.Error()
	}
	for _, o := range f.Offsets {
		text += fmt.Sprintf("%s-%d %d/%d %s", o.Topic, o.Partition, o.Offset, o.LeaderEpoch, o.Metadata)
	}
	return text
}

// listed waits until a group is listed as it should be.
func (c *company) listed(name string, want groups.Group) {
	c.Helper()
	var got groups.Group
	var err error
	c.eventually("group "+name, func() bool {
		var all map[string]groups.Group
		all, err = c.groups.List(context.Background())
		got = all[name]
		return err == nil && got == want
	})
}

// protocols are those of groups with offsets, as groups are listed.
var protocols = []string{"classic", "consumer", "streams"}

// together is what members of a protocol do, as groups are listed.
func together(typ string) string {
	if typ == "streams" {
		return typ
	}
	return "consumer"
}

// join has a member of a protocol in a group. Consumers read all of the topic from
// where the group stands; nobody commits.
func (c *company) join(group, typ string) (leave func()) {
	c.Helper()
	if typ == "streams" {
		return c.joinStreams(group)
	}
	options := []kgo.Opt{kgo.SeedBrokers(c.kafka.Bootstrap()...), kgo.ConsumerGroup(group), kgo.ConsumeTopics("t"), kgo.DisableAutoCommit(),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart())}
	if typ == "consumer" {
		options = append(options, kgo.ServerSideBalancer())
	}
	member, err := kgo.NewClient(options...)
	if err != nil {
		c.Fatal(err)
	}
	c.Cleanup(member.Close)
	c.eventually("records for a member of "+group, func() bool {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		return member.PollFetches(ctx).NumRecords() > 0
	})
	return member.Close
}

// joinStreams has a member of a Streams application that reads the topic join a group
// and become stable, as far as its coordinator sees it (KIP-1071).
func (c *company) joinStreams(group string) (leave func()) {
	c.Helper()
	coordinator := func() *kgo.Broker {
		found := kadm.NewClient(c.client).FindGroupCoordinators(context.Background(), group)[group]
		return c.client.Broker(int(found.NodeID))
	}
	req := kmsg.NewPtrStreamsGroupHeartbeatRequest()
	req.Group, req.MemberID, req.ProcessID, req.RebalanceTimeoutMillis = group, "AAAAAAAAAAAAAAAAAAAAAQ", kmsg.StringPtr("process"), 60_000
	sub := kmsg.NewStreamsGroupHeartbeatRequestTopologySubtopology()
	sub.SubtopologyID, sub.SourceTopics = "0", []string{"t"}
	beat := func(epoch int32) error {
		req.MemberEpoch = epoch
		resp, err := req.RequestWith(context.Background(), coordinator())
		if err == nil {
			err = kerr.ErrorForCode(resp.ErrorCode)
		}
		if err == nil {
			req.MemberEpoch = resp.MemberEpoch
			if resp.ActiveTasks != nil {
				req.ActiveTasks = resp.ActiveTasks
			}
		}
		return err
	}
	req.Topology = &kmsg.StreamsGroupHeartbeatRequestTopology{Subtopologies: []kmsg.StreamsGroupHeartbeatRequestTopologySubtopology{sub}}
	req.ActiveTasks, req.StandbyTasks, req.WarmupTasks = []kmsg.TaskIDs{}, []kmsg.TaskIDs{}, []kmsg.TaskIDs{}
	var err error
	c.eventually("a Streams member of "+group, func() bool { err = beat(0); return err == nil || !groups.Moved(err) })
	if err != nil {
		c.Fatalf("a Streams member of %s: %v", group, err)
	}
	req.Topology = nil
	c.eventually("tasks for a member of "+group, func() bool {
		if err := beat(req.MemberEpoch); err != nil {
			c.Fatalf("a heartbeat to %s: %v", group, err)
		}
		listed, err := c.groups.List(context.Background())
		return err == nil && listed[group].State == "Stable"
	})
	return func() {
		c.Helper()
		if err := beat(-1); err != nil {
			c.Errorf("leaving %s: %v", group, err)
		}
	}
}
