package contract

import (
	"fmt"
	"strings"

	"mirror/sidecar/status"
)

var lossScenarios = []Scenario{
	{Name: "lost-while-stopped", Run: whatRetentionTookIsCountedAndSaid},
	{Name: "recreated-while-stopped", Run: anotherTopicOfTheNameIsNotTakenForTheOld},
	{Name: "target-trimmed", Run: targetForgetsAllRecords},
	{Name: "target-deleted", Run: targetTopicIsDeleted},
}

func whatRetentionTookIsCountedAndSaid(e *Env) {
	topic := e.Topic("t")
	e.Create(e.Source, topic, 1)
	e.Put(e.Source, topic, Numbered(0, "first", 10)...)
	m := e.Start()
	m.CaughtUp(topic)
	m.Stop()
	e.Put(e.Source, topic, Numbered(0, "second", 10)...)
	e.Trim(e.Source, topic, 0, 16) // six of these

	m = e.Start()
	m.CaughtUp(topic)
	var want []string
	for _, r := range append(Numbered(0, "first", 10), Numbered(0, "second", 10)[6:]...) {
		want = append(want, string(r.Value))
	}
	e.WantValues(e.Target, m.TargetName(topic), want)
	if p, _ := m.Partition(topic, 0); p.Lost != 6 || p.State != status.Running {
		e.Errorf("%d offsets told lost, state %s; want 6, running", p.Lost, p.State)
	}
	if !strings.Contains(m.Log(), "deleted records before they were copied") {
		e.Errorf("the log says nothing of the loss:\n%s", m.Log())
	}
}

// The new topic has more records than were copied of the old one: only its id
// tells that the position is not its own.
func anotherTopicOfTheNameIsNotTakenForTheOld(e *Env) {
	topic := e.Topic("t")
	e.Create(e.Source, topic, 1)
	e.Put(e.Source, topic, Numbered(0, "old", 5)...)
	m := e.Start()
	m.CaughtUp(topic)
	m.Stop()
	e.Delete(e.Source, topic)
	e.Create(e.Source, topic, 1)
	e.PutWith(e.Source.Client(e), topic, Numbered(0, "new", 20)...)

	m = e.Start()
	m.Wait("the other topic to be told", func() string {
		s := m.Status()
		for _, p := range s.Partitions {
			if p.Topic == topic && p.State == status.Stalled && p.Reason != "" {
				return ""
			}
		}
		return fmt.Sprintf("nothing is said of it: %+v", s.Topics)
	})
	var old, renewed []string
	for _, r := range Numbered(0, "old", 5) {
		old = append(old, string(r.Value))
	}
	for _, r := range Numbered(0, "new", 20) {
		renewed = append(renewed, string(r.Value))
	}
	e.WantValues(e.Target, m.TargetName(topic), old)

	e.Delete(e.Target, m.TargetName(topic))
	m.Wait("a copy of the new topic", func() string {
		if !e.Exists(e.Target, m.TargetName(topic)) {
			return "no topic"
		}
		return e.MissingRecords(e.Target, m.TargetName(topic), 20)
	})
	e.WantValues(e.Target, m.TargetName(topic), renewed)
}

// A broker that has no record of a producer left takes any sequence from it.
func targetForgetsAllRecords(e *Env) {
	topic := e.Topic("t")
	e.Create(e.Source, topic, 2)
	load := e.Load(e.Source, topic, 2)
	m := e.Start()
	target := m.TargetName(topic)
	for range 4 {
		m.Progress(topic, 500)
		for p, end := range e.Ends(e.Target, target) {
			e.Trim(e.Target, target, int32(p), end)
		}
	}
	m.Progress(topic, 500)
	load.Stop()
	m.CaughtUp(topic)
	// What is left is the end of the source, each record once: offsets on both
	// sides are the same as nothing was skipped or repeated before.
	source, left := e.Read(e.Source, topic), e.Read(e.Target, target)
	for p := range source {
		if len(left[p]) == 0 {
			e.Errorf("partition %d: nothing is left on the target", p)
		}
		if got, want := e.Ends(e.Target, target)[p], int64(len(source[p])); got != want {
			e.Errorf("partition %d: the target ends at %d, the source at %d", p, got, want)
			continue
		}
		for _, r := range left[p] {
			if want := string(source[p][r.Offset].Value); string(r.Value) != want {
				e.Errorf("partition %d: the target has %s at %d, want %s", p, r.Value, r.Offset, want)
				break
			}
		}
	}
}

// A target topic that is deleted under the mirror is made again and gets all that
// the source has, or its partitions are told; no record is left out silently.
func targetTopicIsDeleted(e *Env) {
	topic := e.Topic("t")
	e.Create(e.Source, topic, 2)
	load := e.Load(e.Source, topic, 2)
	m := e.Start()
	m.Progress(topic, 500)
	e.Delete(e.Target, m.TargetName(topic))
	load.Stop()
	want := e.Ends(e.Source, topic)
	m.Wait("the whole topic", func() string {
		if !e.Exists(e.Target, m.TargetName(topic)) {
			return "no topic"
		}
		for p, end := range e.Ends(e.Target, m.TargetName(topic)) {
			if end < want[p] {
				return fmt.Sprintf("partition %d ends at %d, its source at %d", p, end, want[p])
			}
		}
		return ""
	})
	m.WantSame(topic)
}
