package integration

import (
	"fmt"
	"maps"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"mirror/integration/contract"
	"mirror/sidecar/compare"
	"mirror/sidecar/status"
)

// sameAsMirrorMaker has MirrorMaker 2 and the mirror copy the same odd topics to
// one target, and compares what each has made there: topics, partitions, configs,
// and all records in order. What differs on purpose is in the README.
func (k *kafka) sameAsMirrorMaker(e *contract.Env) {
	topics := e.OddTopics("o")
	// The mirror does not copy aborted records, MirrorMaker by default does; it
	// cannot send what its producer takes for too large.
	mm := k.mirrorMaker(e, "mm2-odd", []string{"o"}, "t", map[string]string{
		"o.consumer.isolation.level": "read_committed", "t.producer.max.request.size": "8000000"})
	m := e.Start(contract.Flow{From: "m", To: "b"})
	there := func() {
		e.Helper()
		for _, t := range topics {
			m.CaughtUp(t.Topic)
			e.Eventually("MirrorMaker's copy of "+t.Topic, func() string {
				if !e.Exists(e.Target, "o."+t.Topic) {
					return "no topic yet"
				}
				theirs, ours := e.Ends(e.Target, "o."+t.Topic), e.Ends(e.Target, "m."+t.Topic)
				if len(theirs) < len(ours) {
					return fmt.Sprintf("%d partitions, want %d", len(theirs), len(ours))
				}
				for p, end := range ours {
					if theirs[p] < end {
						return fmt.Sprintf("partition %d has %d records, the mirror's copy %d", p, theirs[p], end)
					}
				}
				return ""
			})
		}
	}
	there()
	for _, t := range topics {
		if t.Later != nil {
			t.Later()
		}
	}
	there()
	mm.Stop(e)
	for _, t := range topics {
		k.wantSameCopies(e, m.Flow, t)
	}
	var reencoded uint64
	for _, p := range m.Status().Partitions {
		reencoded += p.Batches[status.PathReencoded]
	}
	if reencoded == 0 {
		e.Error("nothing was re-encoded: the topics are not odd")
	}
}

// wantSameCopies compares the mirror's copy of a topic with the source and with
// MirrorMaker's.
func (k *kafka) wantSameCopies(e *contract.Env, m *contract.Flow, t contract.Odd) {
	m.WantSame(t.Topic)
	ours, theirs := e.OwnConfigs(e.Target, "m."+t.Topic), e.OwnConfigs(e.Target, "o."+t.Topic)
	if !maps.Equal(ours, theirs) {
		e.Errorf("%s: the mirror's copy has the configs %v, MirrorMaker's %v", t.Topic, ours, theirs)
	}
	if t.Stampless {
		k.wantSameButStamps(e, t.Topic)
		return
	}
	r, err := compare.Complete(e.Context(), compare.Options{Source: e.Target.Client(e), Target: e.Target.Client(e),
		Topics: []compare.Topic{{Source: "o." + t.Topic, Target: "m." + t.Topic}}})
	if err != nil {
		e.Fatal(err)
	}
	if !r.OK() {
		e.Errorf("%s: MirrorMaker's copy (called the source) and the mirror's (the target) differ:\n%s", t.Topic, r)
	}
	if theirs, ours := len(e.Ends(e.Target, "o."+t.Topic)), len(r); theirs != ours {
		e.Errorf("%s: MirrorMaker's copy has %d partitions, the mirror's %d", t.Topic, theirs, ours)
	}
}

// wantSameButStamps: a record without a timestamp gets the time of its copying
// from MirrorMaker, whose producer does so, and stays without one in the mirror's
// copy.
func (k *kafka) wantSameButStamps(e *contract.Env, topic string) {
	source, theirs, ours := e.Read(e.Source, topic), e.Read(e.Target, "o."+topic), e.Read(e.Target, "m."+topic)
	stampless := 0
	for p, rs := range source {
		if len(theirs[p]) != len(rs) || len(ours[p]) != len(rs) {
			e.Fatalf("%s/%d has %d records, MirrorMaker's copy %d, the mirror's %d", topic, p, len(rs), len(theirs[p]), len(ours[p]))
		}
		for i, r := range rs {
			if r.Timestamp.UnixMilli() == -1 {
				stampless++
				if now := theirs[p][i].Timestamp; time.Since(now) > time.Hour {
					e.Errorf("%s/%d: record %d: MirrorMaker gave it the time %v; the README says otherwise", topic, p, i, now)
				}
				theirs[p][i].Timestamp = r.Timestamp
			}
			for who, copied := range map[string]*kgo.Record{"MirrorMaker's": theirs[p][i], "the mirror's": ours[p][i]} {
				if d := compare.Diff(contract.Comparable(r), contract.Comparable(copied)); d != "" {
					e.Errorf("%s/%d: record %d, %s copy: %s", topic, p, i, who, d)
				}
			}
		}
	}
	if stampless == 0 {
		e.Errorf("%s has no record without a timestamp", topic)
	}
}
