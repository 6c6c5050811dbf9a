package contract

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"syscall"

	"github.com/twmb/franz-go/pkg/kgo"

	"mirror/sidecar/offsets"
)

var syncScenarios = []Scenario{
	{Name: "offset-syncs", Run: offsetSyncsAreTrue},
	{Name: "offset-syncs-source", Run: offsetSyncsMayLiveAtTheSource},
	{Name: "offset-syncs-kill", Run: offsetSyncsSurviveKills},
	{Name: "offset-syncs-off", Run: noOffsetSyncsWhenSwitchedOff},
}

// Each round ends in a commit marker, which the position passes and no pair does;
// the next one finds both.
func offsetSyncsAreTrue(e *Env) {
	topic := e.Topic("t")
	e.Create(e.Source, topic, 2)
	client := e.transactional("p")
	for range 3 {
		m := e.Start()
		e.transact(client, topic)
		m.CaughtUp(topic)
		m.WantSame(topic)
		m.WantSyncs(e.Target, "mm2-offset-syncs.src.internal", topic)
		m.Stop()
	}
}

// transact writes transactions to the two partitions of a topic, some aborted.
func (e *Env) transact(client *kgo.Client, topic string) {
	e.Helper()
	for i := range 20 {
		e.begin(client)
		for n := range 1 + rand.IntN(30) {
			e.PutWith(client, topic, &kgo.Record{Topic: topic, Partition: int32(n % 2), Value: fmt.Appendf(nil, "%d-%d", i, n)})
		}
		e.end(client, i%4 != 0)
	}
	e.Settled(topic)
}

// As MirrorMaker has it by default.
func offsetSyncsMayLiveAtTheSource(e *Env) {
	topic := e.Topic("t")
	e.Create(e.Source, topic, 1)
	load := e.Load(e.Source, topic, 1)
	// The alias of the target is in the topic's name: one that no other scenario has.
	m := e.Start(Flow{To: "far", Tables: "[flows.offset_syncs]\nlocation = \"source\"\n"})
	m.Progress(topic, 1000)
	load.Stop()
	m.CaughtUp(topic)
	m.WantSyncs(e.Source, "mm2-offset-syncs.far.internal", topic)
}

// What was stored and not told before a kill is told after it.
func offsetSyncsSurviveKills(e *Env) {
	topic := e.Topic("t")
	e.Create(e.Source, topic, 3)
	load := e.Load(e.Source, topic, 3)
	for i := range Kills(4) {
		flow := Flow{}
		if i%2 == 1 {
			flow.Keys = `commit_interval = "50ms"`
		}
		p := e.Launch(flow)
		p.Progress(topic, 500+rand.Int64N(1500))
		p.Kill()
	}
	load.Stop()
	p := e.Launch(Flow{Keys: `commit_interval = "1h"`}) // nothing is flushed any more
	p.CaughtUp(topic)
	p.Kill()
	p = e.Launch()
	p.CaughtUp(topic)
	p.WantSame(topic)
	p.WantSyncs(e.Target, "mm2-offset-syncs.src.internal", topic)
	p.Signal(syscall.SIGTERM)
	p.WantExit(0)
}

func noOffsetSyncsWhenSwitchedOff(e *Env) {
	topic := e.Topic("t")
	e.Create(e.Source, topic, 1)
	load := e.Load(e.Source, topic, 1)
	m := e.Start(Flow{From: "off", Tables: "[[flows.plugins]]\nname = \"offset-sync\"\nenabled = false\n"})
	m.Progress(topic, 1000)
	load.Stop()
	m.CaughtUp(topic)
	m.WantSame(topic)
	if e.Exists(e.Target, "mm2-offset-syncs.off.internal") {
		e.Error("there is a topic of offset syncs")
	}
}

// WantSyncs waits until the last pair of each partition is that of its last record,
// and checks that each pair is of one record: the same on both sides.
func (f *Flow) WantSyncs(c *Cluster, syncs, topic string) {
	f.e.Helper()
	source, target := f.e.Read(f.Source, topic), f.e.Read(f.Target, f.TargetName(topic))
	var pairs [][]offsets.Sync
	f.Wait("the last offset syncs of "+topic, func() string {
		if !f.e.Exists(c, syncs) {
			return "there is no topic " + syncs
		}
		pairs = f.e.syncs(c, syncs, topic, len(source))
		for p := range source {
			n, s, t := len(pairs[p]), source[p][len(source[p])-1].Offset, target[p][len(target[p])-1].Offset
			if n == 0 || pairs[p][n-1].Upstream != s || pairs[p][n-1].Downstream != t {
				return fmt.Sprintf("partition %d has %d pairs, want %d, %d at the end: %v", p, n, s, t, pairs[p][max(n-3, 0):])
			}
		}
		return ""
	})
	for p := range source {
		at := map[int64]*kgo.Record{}
		for _, r := range source[p] {
			at[r.Offset] = r
		}
		copied := map[int64]*kgo.Record{}
		for _, r := range target[p] {
			copied[r.Offset] = r
		}
		for _, s := range pairs[p] {
			a, b := at[s.Upstream], copied[s.Downstream]
			if a == nil || b == nil || !bytes.Equal(a.Value, b.Value) || !bytes.Equal(a.Key, b.Key) {
				f.e.Errorf("%s, partition %d: the pair %d, %d is not of one record", topic, p, s.Upstream, s.Downstream)
			}
		}
	}
}
