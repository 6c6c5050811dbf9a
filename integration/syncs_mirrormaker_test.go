package integration

import (
	"cmp"
	"maps"
	"slices"

	"github.com/twmb/franz-go/pkg/kgo"

	"mirror/integration/contract"
	"mirror/sidecar/offsets"
)

// beside is a flow that MirrorMaker 2 and the mirror copy side by side, each under
// an alias of its own, with the offset syncs of both in one place.
type beside struct {
	theirs, ours string // the source's aliases
	target       string // the target's alias for the mirror
	on           *contract.Cluster
	syncs        [2]string // topics of MirrorMaker's and the mirror's offset syncs
	tables       string    // of the mirror's flow
	lag          int64     // offset.lag.max of both
}

// syncsBesideMirrorMaker has MirrorMaker 2, reading committed, and the mirror copy
// the same topics and write offset syncs: to the source with the default lag, and to
// the target with a small one. Each pair of either has to be true by the records, and
// both have to end with the same ones. Which others there are is chance in
// MirrorMaker (its pending ones are overwritten by newer ones), and less in the mirror.
// Then groups that have stopped anywhere fail over to each of the copies.
func (k *kafka) syncsBesideMirrorMaker(e *contract.Env) {
	topics, write := e.SyncedTopics()
	const alias = "td" // MirrorMaker's, of the target
	all := []beside{
		{theirs: "ts", ours: "ms", target: "md", on: e.Source,
			syncs:  [2]string{"mm2-offset-syncs." + alias + ".internal", "mm2-offset-syncs.md.internal"},
			tables: "[flows.offset_syncs]\nlocation = \"source\"\n", lag: 100},
		{theirs: "tt", ours: "mt", target: "md", on: e.Target,
			syncs:  [2]string{"mm2-offset-syncs.tt.internal", "mm2-offset-syncs.mt.internal"},
			tables: "[flows.offset_syncs]\nlocation = \"target\"\n[[flows.plugins]]\nname = \"offset-sync\"\n[flows.plugins.config]\nlag_max = 7\n", lag: 7},
	}
	more := checkpoints(e)
	maps.Copy(more, map[string]string{
		all[0].theirs + ".consumer.isolation.level":                   "read_committed",
		all[1].theirs + ".consumer.isolation.level":                   "read_committed",
		all[1].theirs + "->" + alias + ".offset-syncs.topic.location": "target",
		all[1].theirs + "->" + alias + ".offset.lag.max":              "7",
		alias + ".offset.flush.interval.ms":                           "500", // instead of a minute
	})
	mm := k.mirrorMaker(e, "mm2-syncs", []string{all[0].theirs, all[1].theirs}, alias, more)
	var flows []contract.Flow
	for _, b := range all {
		flow := e.SyncGroups()
		flow.From, flow.To, flow.Tables = b.ours, b.target, flow.Tables+b.tables
		flows = append(flows, flow)
	}
	m := e.Start(flows...)
	check := func() (alike int) {
		e.Helper()
		for i, b := range all {
			m.Flows[i].CaughtUp(topics...)
			for _, t := range topics {
				ours := m.Flows[i].WantSyncs(b.on, b.syncs[1], t)
				ours.WantNear(e, b.lag)
				theirs := e.WantSyncs(contract.Synced{Source: e.Source, Target: e.Target, Topic: t, Copy: b.theirs + "." + t, Syncs: b.syncs[0], On: b.on})
				alike += b.wantSameEnds(e, t, theirs, ours)
			}
		}
		return alike
	}
	// Of both pairs of copies the plain topic's and that of transactions are: five partitions.
	if n := check(); n < 2*5 {
		e.Errorf("%d partitions are laid out alike: the last pairs of too few were compared", n)
	}
	then := ends(e, topics)
	for _, b := range all {
		e.CheckpointRound(b.theirs, topics[1]) // it has read what there is of offset syncs
	}
	// What others write to the copies moves them apart.
	for _, b := range all {
		for _, t := range topics {
			e.Put(e.Target, b.theirs+"."+t, contract.Numbered(0, "of somebody else", 1)...)
			e.Put(e.Target, b.ours+"."+t, contract.Numbered(0, "of somebody else", 3)...)
		}
	}
	write()
	check()
	failOverBeside(e, all, topics, then)
	mm.Stop(e)
}

// wantSameEnds compares the last pairs of MirrorMaker and the mirror: both are of the
// same record already, and of the same offset where the copies are laid out alike. It
// says of how many partitions they are.
func (b beside) wantSameEnds(e *contract.Env, topic string, theirs, ours *contract.Syncs) (alike int) {
	e.Helper()
	pairs := [2]int{}
	layout := func(rs []*kgo.Record) (all []int64) {
		for _, r := range rs {
			all = append(all, r.Offset)
		}
		return all
	}
	for p := range theirs.Pairs {
		t, o := theirs.Pairs[p], ours.Pairs[p]
		pairs[0], pairs[1] = pairs[0]+len(t), pairs[1]+len(o)
		if (len(t) == 0) != (len(o) == 0) {
			e.Errorf("%s, partition %d: MirrorMaker has the pairs %v, the mirror %v", topic, p, t, o)
			continue
		}
		if !slices.IsSortedFunc(o, func(a, b offsets.Sync) int { return cmp.Compare(a.Upstream, b.Upstream) }) {
			e.Errorf("%s, partition %d: the mirror's pairs go back, which has a reader forget those before: %v", topic, p, o)
		}
		if len(o) == 0 || !slices.Equal(layout(theirs.Target[p]), layout(ours.Target[p])) {
			continue
		}
		alike++
		if t[len(t)-1] != o[len(o)-1] {
			e.Errorf("%s, partition %d: the last pair of MirrorMaker is %v, of the mirror %v", topic, p, t[len(t)-1], o[len(o)-1])
		}
	}
	e.Logf("%s.%s: %d pairs of MirrorMaker, %d of the mirror, %d partitions laid out alike", b.ours, topic, pairs[0], pairs[1], alike)
	return alike
}
