package contract

import (
	"fmt"
	"slices"

	"mirror/sidecar/status"
)

var restartScenarios = []Scenario{
	{Name: "restart", Run: restartUnderLoadLosesAndRepeatsNothing},
	{Name: "idle-restart", Run: restartWithNothingNewCopiesNothing},
}

// Progress waits until the mirror has copied this many records more of a topic
// than when it was called.
func (f *Flow) Progress(topic string, records int64) {
	f.e.Helper()
	f.ProgressAll([]string{topic}, records)
}

// ProgressAll is Progress on each of the topics.
func (f *Flow) ProgressAll(topics []string, records int64) {
	f.e.Helper()
	f.progress(topics, records, func(p status.Partition) string { return p.Topic })
}

// ProgressEverywhere is Progress on each partition of the topics.
func (f *Flow) ProgressEverywhere(topics []string, records int64) {
	f.e.Helper()
	f.progress(topics, records, func(p status.Partition) string { return fmt.Sprintf("%s/%d", p.Topic, p.Partition) })
}

// progress waits until so many records more are copied of each group of partitions.
func (f *Flow) progress(topics []string, records int64, group func(status.Partition) string) {
	f.e.Helper()
	copied := func() map[string]int64 {
		n := map[string]int64{}
		for _, p := range f.Status().Partitions {
			if slices.Contains(topics, p.Topic) {
				n[group(p)] += p.Position + 1
			}
		}
		return n
	}
	var start map[string]int64
	f.Wait(fmt.Sprintf("%d more records of %v", records, topics), func() string {
		now := copied()
		if len(now) < len(topics) {
			return fmt.Sprintf("only %d are copied", len(now))
		}
		if start == nil {
			start = now
		}
		for g, n := range now {
			if n < start[g]+records {
				return fmt.Sprintf("%s was at %d, is at %d", g, start[g], n)
			}
		}
		return ""
	})
}

// Saved waits until the mirror has saved positions once more.
func (f *Flow) Saved() {
	f.e.Helper()
	before := f.Status().PositionsSave
	f.Wait("positions to be saved", func() string {
		if now := f.Status().PositionsSave; !now.After(before) {
			return fmt.Sprintf("the last time was %v", now)
		}
		return ""
	})
}

func restartUnderLoadLosesAndRepeatsNothing(e *Env) {
	topic := e.Topic("t")
	e.Create(e.Source, topic, 3)
	load := e.Load(e.Source, topic, 3)
	m := e.Start()
	for range 3 {
		m.Progress(topic, 1500)
		m.Stop()
		m = e.Start()
	}
	m.Progress(topic, 1500)
	load.Stop()
	m.CaughtUp(topic)
	m.WantSame(topic)
}

func restartWithNothingNewCopiesNothing(e *Env) {
	topic := e.Topic("t")
	e.Create(e.Source, topic, 3)
	for p := range int32(3) {
		e.Put(e.Source, topic, Numbered(p, "x", 200)...)
	}
	m := e.Start()
	m.CaughtUp(topic)
	m.Stop()
	want := e.Ends(e.Target, m.TargetName(topic))
	m = e.Start()
	m.CaughtUp(topic)
	for _, p := range m.Status().Partitions {
		if p.Records != 0 {
			e.Errorf("%d records of partition %d were copied again", p.Records, p.Partition)
		}
	}
	m.Stop()
	if got := e.Ends(e.Target, m.TargetName(topic)); !slices.Equal(got, want) {
		e.Errorf("the target's partitions end at %d, before the restart at %d", got, want)
	}
}
