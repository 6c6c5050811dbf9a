package contract

import (
	"fmt"
	"slices"

	"mirror/sidecar/status"
)

var topicScenarios = []Scenario{
	{Name: "discovery", Run: topicsAreFoundAsMirrorMakerDoes},
	{Name: "creation", Run: topicsAreMadeLikeTheSource},
	{Name: "naming", Run: namesFollowThePolicy},
	{Name: "growth", Run: targetGrowsWithItsSource},
	{Name: "deleted", Run: deletedTopicDisturbsNoOther},
	{Name: "several-flows", Run: flowsShareAProcess},
}

// missingTopics says which of the topics a cluster has not got yet.
func (e *Env) missingTopics(c *Cluster, topics ...string) string {
	have := e.Topics(c)
	for _, t := range topics {
		if !slices.Contains(have, t) {
			return fmt.Sprintf("no %s among %v", t, have)
		}
	}
	return ""
}

// MissingRecords says which partitions of a topic end before records.
func (e *Env) MissingRecords(c *Cluster, topic string, records int64) string {
	e.Helper()
	for p, end := range e.Ends(c, topic) {
		if end < records {
			return fmt.Sprintf("partition %d ends at %d", p, end)
		}
	}
	return ""
}

func topicsAreFoundAsMirrorMakerDoes(e *Env) {
	mirrored := []string{e.Topic("plain"), e.Topic("foo.internal"), e.Topic("bar-internal")}
	// Internal by their names, and excluded by MirrorMaker's own list or ours.
	others := []string{"mm2-" + e.Topic("x") + ".internal", "x." + e.Topic("x") + ".checkpoints.internal", "__" + e.Topic("x"),
		"." + e.Topic("x"), e.Topic("no-thanks")}
	for _, t := range slices.Concat(mirrored, others) {
		e.Create(e.Source, t, 1)
		e.Put(e.Source, t, Values(0, t)...)
	}
	m := e.Start(Flow{Topics: ".*" + e.Topic(".*"), Keys: "exclude_topics = ['" + e.Topic("no-.*") + "']"})
	m.CaughtUp(mirrored...)

	late := e.Topic("late")
	e.Create(e.Source, late, 1)
	e.Put(e.Source, late, Values(0, late)...)
	m.CaughtUp(late) // and with it, one more look at all topics is over

	var want []string
	for _, t := range append(mirrored, late) {
		want = append(want, m.TargetName(t))
		e.WantValues(e.Target, m.TargetName(t), []string{t})
	}
	got := e.Topics(e.Target)
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		e.Errorf("the target has %v, want %v", got, want)
	}
}

func topicsAreMadeLikeTheSource(e *Env) {
	topic := e.Topic("t")
	e.Create(e.Source, topic, 5, "retention.ms", "123456789", "cleanup.policy", "compact,delete", "segment.bytes", "2000000",
		"min.insync.replicas", "1", "unclean.leader.election.enable", "true")
	m := e.Start(Flow{Tables: "[flows.create]\nreplication_factor = 1\nconfigs = { \"segment.bytes\" = \"3000000\", \"max.message.bytes\" = \"2000000\" }"})
	target := m.TargetName(topic)
	e.Eventually(target, func() string { return e.missingTopics(e.Target, target) })
	if n := len(e.Describe(e.Target, target).Partitions); n != 5 {
		e.Errorf("%d partitions, want 5", n)
	}
	for name, want := range map[string]string{
		"retention.ms":                   "123456789",
		"cleanup.policy":                 "compact,delete",
		"segment.bytes":                  "3000000", // ours over the source's
		"max.message.bytes":              "2000000",
		"unclean.leader.election.enable": "false", // MirrorMaker leaves it out
	} {
		if got := e.Config(e.Target, target, name); got != want && !(name == "unclean.leader.election.enable" && got == "") {
			e.Errorf("%s is %q on the target, want %q", name, got, want)
		}
	}
}

func namesFollowThePolicy(e *Env) {
	topic := e.Topic("t")
	e.Create(e.Source, topic, 1)
	e.Put(e.Source, topic, Values(0, "x")...)
	m := e.Start(
		Flow{From: "one", To: "two", Keys: `naming = { separator = "-" }`},
		Flow{From: "three", To: "four", Identity: true},
	)
	m.Flows[0].CaughtUp(topic)
	m.Flows[1].CaughtUp(topic)
	e.WantValues(e.Target, "one-"+topic, []string{"x"})
	e.WantValues(e.Target, topic, []string{"x"})
}

func targetGrowsWithItsSource(e *Env) {
	topic := e.Topic("t")
	e.Create(e.Source, topic, 1)
	e.Put(e.Source, topic, Values(0, "zero")...)
	m := e.Start()
	m.CaughtUp(topic)
	e.Grow(e.Source, topic, 4)
	client := e.Source.Client(e) // it knows of the new partitions
	for p := range int32(4) {
		e.PutWith(client, topic, Values(p, fmt.Sprintf("new-%d", p))...)
	}
	m.CaughtUp(topic)
	e.WantValues(e.Target, m.TargetName(topic), []string{"zero", "new-0"}, []string{"new-1"}, []string{"new-2"}, []string{"new-3"})
}

// A topic that is deleted, and one that is made again under its name, are that
// topic's trouble alone; what the target holds of the old one stays.
func deletedTopicDisturbsNoOther(e *Env) {
	gone, again, other := e.Topic("gone"), e.Topic("again"), e.Topic("other")
	for _, t := range []string{gone, again, other} {
		e.Create(e.Source, t, 1)
		e.Put(e.Source, t, Values(0, "first", "second")...)
	}
	m := e.Start()
	m.CaughtUp(gone, again, other)
	e.Delete(e.Source, gone)
	e.Delete(e.Source, again)
	e.Create(e.Source, again, 1)
	e.PutWith(e.Source.Client(e), again, Values(0, "of another topic")...)
	e.Put(e.Source, other, Values(0, "third")...)
	m.CaughtUp(other)
	m.Wait("the recreated topic to be told", func() string {
		s := m.Status()
		for _, t := range s.Topics {
			if t.Source == again && t.Reason != "" {
				return ""
			}
		}
		p, _ := m.Partition(again, 0)
		if p.State == status.Stalled && p.Reason != "" {
			return ""
		}
		return "nothing is said of it"
	})
	e.WantValues(e.Target, m.TargetName(other), []string{"first", "second", "third"})
	e.WantValues(e.Target, m.TargetName(gone), []string{"first", "second"})
	e.WantValues(e.Target, m.TargetName(again), []string{"first", "second"})

	// Who deletes the target topic says that the old one is not needed any more.
	e.Delete(e.Target, m.TargetName(again))
	m.Wait("the new topic's record", func() string {
		if !e.Exists(e.Target, m.TargetName(again)) {
			return "no topic"
		}
		return e.MissingRecords(e.Target, m.TargetName(again), 1)
	})
	e.WantValues(e.Target, m.TargetName(again), []string{"of another topic"})
}

func flowsShareAProcess(e *Env) {
	for _, t := range []string{"a", "b", "c"} {
		e.Create(e.Source, e.Topic(t), 2)
		e.Put(e.Source, e.Topic(t), slices.Concat(Numbered(0, t, 100), Numbered(1, t, 100))...)
	}
	m := e.Start(
		Flow{From: "west", To: "east", Topics: e.Topic("[ab]")},
		Flow{From: "north", To: "east", Topics: e.Topic("[bc]")},
	)
	west, north := m.Flows[0], m.Flows[1]
	west.CaughtUp(e.Topic("a"), e.Topic("b"))
	north.CaughtUp(e.Topic("b"), e.Topic("c"))
	west.WantSame(e.Topic("a"), e.Topic("b"))
	north.WantSame(e.Topic("b"), e.Topic("c"))
	got := e.Topics(e.Target)
	slices.Sort(got)
	if want := []string{"north." + e.Topic("b"), "north." + e.Topic("c"), "west." + e.Topic("a"), "west." + e.Topic("b")}; !slices.Equal(got, want) {
		e.Errorf("the target has %v, want %v", got, want)
	}
}
