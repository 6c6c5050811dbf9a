package contract

import (
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

var startScenarios = []Scenario{
	{Name: "start-latest", Run: startLatest},
	{Name: "start-at-time", Run: startAtTime},
}

// With start = "latest" what is there is left out; what appears later, new
// partitions and topics too, is copied from its beginning.
func startLatest(e *Env) {
	topic, later := e.Topic("t"), e.Topic("later")
	e.Create(e.Source, topic, 1)
	e.Put(e.Source, topic, Values(0, "old-0", "old-1")...)
	flow := Flow{From: "latest", Keys: `start = "latest"`} // no other flow from there has positions
	m := e.Start(flow)
	m.Reached(topic, 0, 1)
	e.Put(e.Source, topic, Values(0, "new-0")...)
	m.CaughtUp(topic)

	e.Create(e.Source, later, 1)
	e.Put(e.Source, later, Values(0, "first", "second")...)
	e.Grow(e.Source, topic, 2)
	e.PutWith(e.Source.Client(e), topic, Values(1, "of the new partition")...)
	m.CaughtUp(topic, later)
	m.Stop()
	e.Put(e.Source, topic, Values(0, "while stopped")...)

	// The first start is over: from now on the position counts.
	m = e.Start(flow)
	m.CaughtUp(topic, later)
	e.WantValues(e.Target, m.TargetName(topic), []string{"new-0", "while stopped"}, []string{"of the new partition"})
	e.WantValues(e.Target, m.TargetName(later), []string{"first", "second"})
}

// A time is found in each partition on its own: in the middle, before all, after all.
func startAtTime(e *Env) {
	topic := e.Topic("t")
	e.Create(e.Source, topic, 3)
	at := time.Now().Add(-time.Hour).Truncate(time.Second)
	put := func(p int32, after ...time.Duration) {
		for i, d := range after {
			e.Put(e.Source, topic, &kgo.Record{Partition: p, Timestamp: at.Add(d), Value: fmt.Appendf(nil, "%d-%d", p, i)})
		}
	}
	put(0, -2*time.Minute, -time.Millisecond, 0, time.Minute)
	put(1, time.Minute, 2*time.Minute)
	put(2, -2*time.Minute, -time.Minute)
	m := e.Start(Flow{From: "at-time", Keys: fmt.Sprintf("start = %q", at.UTC().Format(time.RFC3339))})
	m.CaughtUp(topic)
	put(2, 5*time.Minute)
	m.CaughtUp(topic)
	e.WantValues(e.Target, m.TargetName(topic), []string{"0-2", "0-3"}, []string{"1-0", "1-1"}, []string{"2-0"})
}
