package contract

import (
	"fmt"
	"slices"
	"strings"

	"mirror/sidecar/status"
)

// What the mirror does when a log is not the one it knew, by the keys that say so.
// The flows have aliases of their own, and so positions topics of their own.
var gapScenarios = []Scenario{
	{Name: "loss-halts", Run: whatRetentionTookHaltsUntilItMayGoOn},
	{Name: "recreated-down-restart", Run: func(e *Env) { anotherTopicIsCopiedBehindTheOld(e, true) }},
	{Name: "recreated-live-restart", Run: func(e *Env) { anotherTopicIsCopiedBehindTheOld(e, false) }},
	{Name: "recreated-target", Run: somebodyElsesTargetTopic},
	{Name: "lost-positions", Run: positionsAreLostWhileStopped},
	{Name: "first-start-full-target", Run: firstStartFindsATargetWithRecords},
	{Name: "begun-is-not-lost", Run: whatWasBegunIsNotLost},
	{Name: "positions-deleted", Run: positionsTopicIsDeletedLive},
	{Name: "positions-not-compacted", Run: positionsTopicIsNotCompacted},
}

// texts are the values of what Numbered makes.
func texts(prefix string, n int) (vs []string) {
	for _, r := range Numbered(0, prefix, n) {
		vs = append(vs, string(r.Value))
	}
	return vs
}

// Counted waits until errors of the kind have been counted so often, and checks
// that it is not more.
func (f *Flow) Counted(kind string, want uint64) {
	f.e.Helper()
	f.Wait(fmt.Sprintf("%d errors of kind %s", want, kind), func() string {
		if n := f.Status().Errors[kind]; n < want {
			return fmt.Sprintf("there are %d", n)
		}
		return ""
	})
	if n := f.Status().Errors[kind]; n != want {
		f.e.Errorf("%d errors of kind %s, want %d", n, kind, want)
	}
}

func whatRetentionTookHaltsUntilItMayGoOn(e *Env) {
	topic := e.Topic("t")
	e.Create(e.Source, topic, 2)
	e.Put(e.Source, topic, append(Numbered(0, "a", 10), Numbered(1, "other", 1)...)...)
	m := e.Start()
	m.CaughtUp(topic)
	m.Stop()
	e.Put(e.Source, topic, append(Numbered(0, "b", 10), Numbered(1, "another", 1)...)...)
	e.Trim(e.Source, topic, 0, 16)

	m = e.Start(Flow{Keys: `on_data_loss = "halt"`})
	m.Stalled(topic, 0, 10, "offsets 10 to 15")
	m.Reached(topic, 1, 1) // it keeps nobody else
	m.Counted(status.ErrorDataLoss, 1)
	m.Stop()
	e.WantValues(e.Target, m.TargetName(topic), texts("a", 10), []string{"other-0", "another-0"})

	m = e.Start()
	m.CaughtUp(topic)
	m.Counted(status.ErrorDataLoss, 1)
	e.WantValues(e.Target, m.TargetName(topic), slices.Concat(texts("a", 10), texts("b", 10)[6:]), []string{"other-0", "another-0"})
	if p, _ := m.Partition(topic, 0); p.Lost != 6 {
		e.Errorf("%d offsets told lost, want 6", p.Lost)
	}
}

// With on_recreated = "restart" the new topic comes whole, however long it is, and
// after that the mirror knows it.
func anotherTopicIsCopiedBehindTheOld(e *Env, down bool) {
	topic := e.Topic("t")
	flow := Flow{Keys: `on_recreated = "restart"`}
	e.Create(e.Source, topic, 1)
	e.Put(e.Source, topic, Numbered(0, "old", 5)...)
	m := e.Start(flow)
	m.CaughtUp(topic)
	if down {
		m.Stop()
	}
	e.Delete(e.Source, topic)
	e.Create(e.Source, topic, 1)
	e.PutWith(e.Source.Client(e), topic, Numbered(0, "new", 20)...)
	if down {
		m = e.Start(flow)
	}
	want := slices.Concat(texts("old", 5), texts("new", 20))
	m.Wait("the new topic", func() string { return e.MissingRecords(e.Target, m.TargetName(topic), int64(len(want))) })
	m.Counted(status.ErrorRecreated, 1)
	m.Stop()
	if n := strings.Count(m.Log(), "was deleted and made again"); n != 1 {
		e.Errorf("the log says it %d times:\n%s", n, m.Log())
	}
	e.WantValues(e.Target, m.TargetName(topic), want)
	all, _ := e.Positions(topic, 0)
	if last := all[len(all)-1]; *last.Offset != 19 || *last.TargetOffset != 24 {
		e.Errorf("the last position is %d, at %d on the target; want 19 at 24", *last.Offset, *last.TargetOffset)
	}
	m = e.Start(flow)
	e.PutWith(e.Source.Client(e), topic, Values(0, "last")...)
	m.CaughtUp(topic)
	e.WantValues(e.Target, m.TargetName(topic), append(want, "last"))
}

func somebodyElsesTargetTopic(e *Env) {
	topic := e.Topic("t")
	e.Create(e.Source, topic, 1)
	e.Put(e.Source, topic, Numbered(0, "x", 5)...)
	m := e.Start()
	m.CaughtUp(topic)
	m.Stop()
	target := m.TargetName(topic)
	e.Delete(e.Target, target)
	e.Create(e.Target, target, 1)
	e.PutWith(e.Target.Client(e), target, Values(0, "theirs")...)

	m = e.Start()
	m.Stalled(topic, 0, 5, `on_lost_positions = "restart"`)
	m.Counted(status.ErrorLostPositions, 1)
	m.Stop()
	e.WantValues(e.Target, target, []string{"theirs"})

	m = e.Start(Flow{Keys: `on_lost_positions = "restart"`})
	m.Counted(status.ErrorLostPositions, 1)
	m.CaughtUp(topic)
	e.WantValues(e.Target, target, append([]string{"theirs"}, texts("x", 5)...))
}

// Without positions the mirror does not copy everything a second time unless it
// is told to.
func positionsAreLostWhileStopped(e *Env) {
	topic, empty := e.Topic("t"), e.Topic("empty")
	flow := Flow{From: "forgetful"}
	e.Create(e.Source, topic, 1)
	e.Create(e.Source, empty, 1)
	e.Put(e.Source, topic, Numbered(0, "x", 5)...)
	m := e.Start(flow)
	m.CaughtUp(topic, empty)
	m.Stop()
	e.Delete(e.Target, "mm2-offsets.forgetful.internal")

	m = e.Start(flow)
	m.Wait("the loss to be told", func() string {
		p, _ := m.Partition(topic, 0)
		if p.State != status.Stalled || !strings.Contains(p.Reason, "has no position") || !strings.Contains(p.Reason, `on_lost_positions = "restart"`) {
			return fmt.Sprintf("it is %s: %s", p.State, p.Reason)
		}
		return ""
	})
	m.Counted(status.ErrorLostPositions, 1)
	e.Put(e.Source, empty, Values(0, "v")...)
	m.CaughtUp(empty) // nothing of it can be there twice
	m.Stop()
	e.WantValues(e.Target, m.TargetName(topic), texts("x", 5))

	flow.Keys = `on_lost_positions = "restart"`
	m = e.Start(flow)
	m.CaughtUp(topic, empty)
	m.Counted(status.ErrorLostPositions, 1)
	m.Stop()
	m = e.Start(flow) // once
	m.CaughtUp(topic, empty)
	e.WantValues(e.Target, m.TargetName(topic), slices.Concat(texts("x", 5), texts("x", 5)))
	e.WantValues(e.Target, m.TargetName(empty), []string{"v"})
}

// A target topic that has records of somebody else is not written to unasked; one
// whose topic is deleted in answer is copied.
func firstStartFindsATargetWithRecords(e *Env) {
	topic := e.Topic("t")
	flow := Flow{From: "newcomer"}
	e.Create(e.Source, topic, 1)
	e.Put(e.Source, topic, Numbered(0, "x", 3)...)
	e.Create(e.Target, "newcomer."+topic, 1)
	e.Put(e.Target, "newcomer."+topic, Values(0, "theirs")...)
	m := e.Start(flow)
	m.Stalled(topic, 0, 0, "holds records")
	e.WantValues(e.Target, m.TargetName(topic), []string{"theirs"})
	e.Delete(e.Target, m.TargetName(topic))
	m.CaughtUp(topic)
	e.WantValues(e.Target, m.TargetName(topic), texts("x", 3))
}

// A position is there from before the first record on, wherever the flow starts,
// also of partitions that come later: a kill at any time loses none.
func whatWasBegunIsNotLost(e *Env) {
	topic := e.Topic("t")
	e.Create(e.Source, topic, 2)
	e.Put(e.Source, topic, Numbered(0, "old", 5)...)
	flow := Flow{From: "beginner", Keys: "start = \"latest\"\ncommit_interval = \"1h\""}
	p := e.Launch(flow)
	p.Reached(topic, 0, 4)
	e.Grow(e.Source, topic, 3)
	var want [3][]string
	for round := range 3 {
		for n := range int32(3) {
			v := fmt.Sprintf("v%d-%d", round, n)
			e.PutWith(e.Source.Client(e), topic, Values(n, v)...)
			want[n] = append(want[n], v)
		}
		p.CaughtUp(topic) // and saves no position
		p.Kill()
		p = e.Launch(flow)
	}
	p.CaughtUp(topic)
	e.WantValues(e.Target, p.TargetName(topic), want[:]...)
}

func positionsTopicIsDeletedLive(e *Env) {
	topic := e.Topic("t")
	flow := Flow{From: "robbed"}
	own := "mm2-offsets.robbed.internal"
	e.Create(e.Source, topic, 3)
	load := e.Load(e.Source, topic, 3)
	m := e.Start(flow)
	for range 2 {
		m.Progress(topic, 500)
		e.Delete(e.Target, own)
		m.Wait("the topic to be made again", func() string {
			if !e.Exists(e.Target, own) {
				return "it is not there"
			}
			return ""
		})
	}
	m.Progress(topic, 500)
	m.Wait("the topic to be in order", func() string { return m.Status().PositionsProblem })
	load.Stop()
	m.CaughtUp(topic)
	m.Stop()
	if got := e.Config(e.Target, own, "cleanup.policy"); got != "compact" {
		e.Errorf("made again with cleanup.policy %q", got)
	}
	m = e.Start(flow)
	e.Put(e.Source, topic, Numbered(1, "last", 10)...)
	m.CaughtUp(topic)
	m.WantSame(topic)
}

func positionsTopicIsNotCompacted(e *Env) {
	topic := e.Topic("t")
	flow := Flow{From: "careless"}
	own := "mm2-offsets.careless.internal"
	e.Create(e.Target, own, 5, "cleanup.policy", "delete")
	e.Create(e.Source, topic, 1)
	e.Put(e.Source, topic, Numbered(0, "x", 5)...)
	e.WantCommand(1, []string{own, "--add-config cleanup.policy=compact"}, "validate", "--connect", "-c", e.ConfigFile(configText(e.flows([]Flow{flow}), "")))
	m := e.Start(flow)
	m.CaughtUp(topic) // all the same
	if r := m.Flow.status(); r.Ready || !strings.Contains(strings.Join(r.Reasons, "\n"), "cleanup.policy") {
		e.Errorf("ready %v, because %v", r.Ready, r.Reasons)
	}
	e.SetConfig(e.Target, own, "cleanup.policy", "compact")
	m.Wait("the mirror to be ready", func() string { return strings.Join(m.Flow.status().Reasons, "\n") })
	e.WantCommand(0, nil, "validate", "--connect", "-c", e.ConfigFile(configText(e.flows([]Flow{flow}), "")))
}
