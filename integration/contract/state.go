package contract

import (
	encoding "encoding/binary"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"syscall"

	"github.com/twmb/franz-go/pkg/kgo"

	"mirror/plugins"
	"mirror/sidecar/cluster"
	"mirror/sidecar/config"
	"mirror/sidecar/state"
)

var stateScenarios = []Scenario{
	{Name: "state-kill", Run: stateSurvivesKills},
	{Name: "state-paused", Run: stateIsNotSpoiledByAPredecessor},
	{Name: "state-recreated", Run: stateOfATopicThatIsMadeAgain},
}

// remembers is the table of a plugin whose state says of each partition how far it has
// been told; it halts a partition that begins after that, or where another topic's
// state is.
func (e *Env) remembers() string {
	e.Helper()
	return fmt.Sprintf("[[flows.plugins]]\nname = \"remembers\"\npath = %q\nconfig = { schema = \"v1\", partitions = \"remember\", commit = \"remember\" }\n",
		e.above("plugins", "testdata", "guest.wasm"))
}

// remembered is what the state of a partition says, -1: there is none.
func (f *Flow) remembered(topic string, partition int32) int64 {
	e := f.e
	e.Helper()
	log := slog.New(slog.DiscardHandler)
	c, err := cluster.Open(config.Cluster{Alias: f.To, Bootstrap: f.Target.Bootstrap, ClientID: "test"}, log)
	if err != nil {
		e.Fatal(err)
	}
	defer c.Close()
	s, err := state.Open(e.Context(), state.Options{Cluster: c, Name: state.TopicName(f.From, "remembers", "."), Schema: "v1", Log: log})
	if err != nil {
		e.Fatal(err)
	}
	defer s.Close()
	for key, value := range s.Take(plugins.Key{Topic: topic, Partition: partition}).Pairs() {
		if string(key) == "last" {
			return int64(encoding.LittleEndian.Uint64(value))
		}
	}
	return -1
}

// wantRemembered checks that the state says for each partition what its end is.
func (f *Flow) wantRemembered(topic string) {
	f.e.Helper()
	for n, end := range f.e.Ends(f.Source, topic) {
		if last := f.remembered(topic, int32(n)); last != end-1 {
			f.e.Errorf("partition %d: its last offset is %d, and the state says %d", n, end-1, last)
		}
	}
}

// A plugin's state is never behind a position, whenever the mirror is killed: the
// plugin itself would say so.
func stateSurvivesKills(e *Env) {
	topic := e.Topic("t")
	e.Create(e.Source, topic, 5)
	load := e.Load(e.Source, topic, 5)
	flow := Flow{From: "stated", Tables: e.remembers()}
	for i := range Kills(4) {
		if i%2 == 1 {
			flow.Keys = `commit_interval = "50ms"` // so that state is on its way, too
		}
		p := e.Launch(flow)
		p.Progress(topic, 500+rand.Int64N(1500))
		p.Kill()
	}
	load.Stop()
	p := e.Launch(flow)
	p.CaughtUp(topic)
	p.WantSame(topic)
	p.Signal(syscall.SIGTERM)
	p.WantExit(0)
	p.wantRemembered(topic)
}

// A mirror that wakes up after another has taken its place stops, and what it still
// wrote is written over.
func stateIsNotSpoiledByAPredecessor(e *Env) {
	topic := e.Topic("t")
	e.Create(e.Source, topic, 5)
	load := e.Load(e.Source, topic, 5)
	flow := Flow{From: "followed", Keys: `commit_interval = "50ms"`, Tables: e.remembers()}
	old := e.Launch(flow)
	old.Progress(topic, 1000)
	old.Signal(syscall.SIGSTOP)
	next := e.Launch(flow)
	next.Progress(topic, 1000)
	old.Signal(syscall.SIGCONT)
	old.WantExit(1)
	next.Progress(topic, 1000)
	load.Stop()
	next.CaughtUp(topic)
	next.WantSame(topic)
	next.Kill()
	last := e.Launch(flow)
	last.CaughtUp(topic)
	last.WantSame(topic)
	last.Signal(syscall.SIGTERM)
	last.WantExit(0)
	last.wantRemembered(topic)
}

// Of a topic that was made again nothing is known, whether the mirror ran or not.
func stateOfATopicThatIsMadeAgain(e *Env) {
	topic := e.Topic("t")
	flow := Flow{From: "renewed", Keys: `on_recreated = "restart"`, Tables: e.remembers()}
	put := func(n int) {
		e.Create(e.Source, topic, 1)
		for range n {
			e.Put(e.Source, topic, &kgo.Record{Topic: topic, Value: []byte("v")})
		}
	}
	put(30)
	m := e.Start(flow)
	remembers := func(want int64) {
		e.Eventually("the plugin's state", func() string {
			if last := m.remembered(topic, 0); last != want {
				return fmt.Sprintf("it says %d, want %d", last, want)
			}
			return ""
		})
	}
	remembers(29)
	m.Saved()
	e.Delete(e.Source, topic)
	put(20)
	remembers(19)
	m.Saved()
	m.Stop()
	e.Delete(e.Source, topic)
	put(10)
	m = e.Start(flow)
	remembers(9)
	m.Stop()
}
