package contract

import (
	"fmt"
	"math/rand/v2"
	"syscall"

	"github.com/twmb/franz-go/pkg/kgo"
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
		m.WantSyncs(e.Target, "mm2-offset-syncs.src.internal", topic).WantGaps(e)
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

// WantSyncs is Env.WantSyncs of what the flow has copied and written to syncs on c.
func (f *Flow) WantSyncs(c *Cluster, syncs, topic string) *Syncs {
	f.e.Helper()
	return f.e.WantSyncs(Synced{Source: f.Source, Target: f.Target, Topic: topic, Copy: f.TargetName(topic), Syncs: syncs, On: c})
}
