package integration

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"

	"mirror/integration/contract"
	"mirror/integration/kafkatest"
)

// mirrorMaker runs MirrorMaker 2 for flows from the source, under each of the
// aliases, to the target and the topics of one scenario, with nothing but topics
// copied. more are properties beside. Aliases are a scenario's own, since
// MirrorMakers that run at once with the same ones would be one Connect cluster.
func (k *kafka) mirrorMaker(e *contract.Env, name string, from []string, to string, more map[string]string) *kafkatest.MirrorMaker {
	e.Helper()
	properties := map[string]string{
		"clusters":                          strings.Join(append(slices.Clone(from), to), ","),
		to + ".bootstrap.servers":           k.target.Internal(),
		"replication.factor":                "1",
		"offset.storage.replication.factor": "1",
		"status.storage.replication.factor": "1",
		"config.storage.replication.factor": "1",
		"emit.heartbeats.enabled":           "false",
		"emit.checkpoints.enabled":          "false",
		"emit.offset-syncs.enabled":         "false",
		"sync.topic.acls.enabled":           "false",
		"refresh.topics.interval.seconds":   "1",
	}
	for _, alias := range from {
		properties[alias+".bootstrap.servers"] = k.source.Internal()
		properties[alias+"->"+to+".enabled"] = "true"
		properties[alias+"->"+to+".topics"] = e.Topic(".*")
	}
	maps.Copy(properties, more)
	return kafkatest.StartMirrorMaker(e, k.net, name, properties)
}

// handOver has MirrorMaker 2 copy, then the mirror, then MirrorMaker 2 again: each goes
// on where the one before stopped, and groups are translated by what both know.
func (k *kafka) handOver(e *contract.Env) {
	topic := e.Topic("t")
	e.Create(e.Source, topic, 2)
	put := func(stage string) {
		for p := range int32(2) {
			e.Put(e.Source, topic, contract.Numbered(p, stage, 100)...)
		}
	}
	arrived := func(records int64) {
		e.Helper()
		e.Eventually(fmt.Sprintf("%d records of each partition", records), func() string {
			if !e.Exists(e.Target, "a."+topic) {
				return "no topic yet"
			}
			return e.MissingRecords(e.Target, "a."+topic, records)
		})
	}
	groups := checkpoints(e)
	groups["b.offset.flush.interval.ms"] = "500" // instead of a minute
	put("of MirrorMaker")
	mm := k.mirrorMaker(e, "mm2-before", []string{"a"}, "b", groups)
	arrived(100)
	mm.Stop(e)

	put("of the mirror")
	flow := e.SyncGroups()
	flow.From, flow.To = "a", "b"
	flow.Tables += "[flows.offset_syncs]\nlocation = \"source\"\n" // where MirrorMaker's are
	m := e.Start(flow)
	m.CaughtUp(topic)
	m.WantSame(topic)
	wantTakenOver(e, m.Flow, topic, 100)
	m.Stop()

	put("of MirrorMaker again")
	mm = k.mirrorMaker(e, "mm2-after", []string{"a"}, "b", groups)
	arrived(300)
	e.CheckpointRound("a", topic)
	mm.Stop(e)
	m.WantSame(topic)
	wantNoneAhead(e, "a", []string{topic})

	// Compaction keeps one position of a partition only where both write the same
	// key to the same place.
	in := map[string]map[int]bool{}
	for p, rs := range e.Read(e.Target, "mm2-offsets.a.internal") {
		for _, r := range rs {
			if key := string(r.Key); strings.Contains(key, topic) && strings.HasPrefix(key, `["MirrorSourceConnector"`) {
				if in[key] == nil {
					in[key] = map[int]bool{}
				}
				in[key][p] = true
			}
		}
	}
	for key, partitions := range in {
		if len(partitions) != 1 {
			e.Errorf("positions with the key %s are in %d partitions", key, len(partitions))
		}
	}
	if len(in) != 2 {
		e.Errorf("the positions of 2 partitions have %d keys: %v", len(in), in)
	}
}

// checkpoints are the properties that have MirrorMaker translate the groups of a
// scenario, every second and not every minute or ten.
func checkpoints(e *contract.Env) map[string]string {
	return map[string]string{
		"emit.offset-syncs.enabled":             "true",
		"emit.checkpoints.enabled":              "true",
		"emit.checkpoints.interval.seconds":     "1",
		"refresh.groups.interval.seconds":       "1",
		"groups":                                e.Topic(".*"),
		"checkpoints.topic.replication.factor":  "1",
		"offset-syncs.topic.replication.factor": "1",
	}
}

// wantTakenOver checks the checkpoints that the mirror writes after it has taken over
// from MirrorMaker at an offset of each partition: exact ones from there on, and before
// that MirrorMaker's own, by the nearest offset sync at or before the group.
func wantTakenOver(e *contract.Env, m *contract.Flow, topic string, seam int64) {
	e.Helper()
	syncs := e.OffsetSyncs(e.Source, "mm2-offset-syncs.b.internal", topic, 2)
	starts, all := map[string][]int64{topic: e.Starts(e.Source, topic)}, ends(e, []string{topic})
	groups := e.ScatterGroups(rand.New(rand.NewPCG(7, 0)), "taken-over", 20, starts, all)
	for _, at := range []int64{0, seam - 1, seam, seam + 1} {
		g := e.Topic(fmt.Sprint("at-", at))
		e.CommitGroup(e.Source, g, topic, at, at)
		groups = append(groups, g)
	}
	m.Wait("the checkpoints of all groups", func() string {
		last := e.LastCheckpoints("a")
		for _, g := range groups {
			for p, at := range e.GroupOffsets(e.Source, g)[topic] {
				if c := last[g][m.TargetName(topic)][p]; c.Group == "" || c.Upstream != at.At {
					return fmt.Sprintf("that of %s for partition %d is %+v, want one of %d", g, p, c, at.At)
				}
			}
		}
		return ""
	})
	copied, last, behind := m.Copied(topic), e.LastCheckpoints("a"), 0
	for _, g := range groups {
		for p, c := range last[g][m.TargetName(topic)] {
			moved := copied[p].Moved(c.Upstream, c.Downstream)
			if c.Upstream >= seam {
				if moved != (contract.Moved{}) {
					e.Errorf("partition %d, copied by the mirror: from %d to %d: %v", p, c.Upstream, c.Downstream, moved)
				}
				continue
			}
			behind++
			want := int64(-1)
			for _, s := range syncs[p] {
				switch {
				case s.Upstream == c.Upstream:
					want = s.Downstream
				case s.Upstream < c.Upstream:
					want = s.Downstream + 1
				}
			}
			if c.Downstream != want || moved.Lost > 0 {
				e.Errorf("partition %d, copied by MirrorMaker: from %d to %d, want %d: %v", p, c.Upstream, c.Downstream, want, moved)
			}
		}
	}
	if behind == 0 {
		e.Error("no group is behind the seam")
	}
}
