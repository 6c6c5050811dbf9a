package failover

import (
	"testing"

	"mirror/abi"
	"mirror/plugins"
	"mirror/sidecar/status"
)

func TestCheckpointsFollowGroups(t *testing.T) {
	l := newLab(t)
	l.mirrors("orders", 2)
	l.source.create("local", 1)
	l.source.commit("one", "orders", 0, 10, "")
	l.source.commit("one", "orders", 1, 20, "of one")
	l.source.commit("two", "orders", 0, 30, "")
	l.source.commit("two", "local", 0, 5, "") // is not mirrored
	l.source.commit("three", "local", 0, 5, "")
	l.source.commit("tmp-1", "orders", 0, 40, "") // is excluded
	e := l.engine()
	l.once(e)
	last, records := l.checkpoints()
	want := map[string]string{"one/A.orders-0": "10>7", "one/A.orders-1": "20>17 of one", "two/A.orders-0": "30>27"}
	if len(last) != len(want) || records != len(want) {
		t.Errorf("%d records: %v", records, last)
	}
	for key, checkpoint := range want {
		if last[key] != checkpoint {
			t.Errorf("%s: %q, want %q", key, last[key], checkpoint)
		}
	}
	s := e.Status()
	if s.Groups[status.OutcomeExact] != 2 || s.Offsets[status.OutcomeExact] != 3 || s.Checkpoints != 3 || s.Written != 3 || s.Updated.IsZero() || s.Problem != "" {
		t.Errorf("status %+v", s)
	}

	l.once(e) // nothing has changed
	if _, n := l.checkpoints(); n != records {
		t.Errorf("%d records were written again", n-records)
	}
	l.source.commit("two", "orders", 0, 31, "")
	l.source.commit("one", "orders", 1, 20, "other metadata")
	l.once(e)
	if _, n := l.checkpoints(); n != records+2 {
		t.Errorf("%d records for two changes", n-records)
	}
	l.has("two", "orders", "31>28")
	if last, _ := l.checkpoints(); last["one/A.orders-1"] != "20>17 other metadata" {
		t.Errorf("metadata: %v", last)
	}
}

// Checkpoints go back with the group, and with nothing else.
func TestCheckpointsAreMonotonic(t *testing.T) {
	l := newLab(t)
	l.mirrors("orders", 1)
	e := l.engine()
	for _, step := range []struct {
		name   string
		offset int64
		answer plugins.Translation
		want   string
	}{
		{"the first", 100, bound(90, abi.Ahead), "100>90"},
		{"better known", 100, exact(97), "100>97"},
		{"less is known now", 100, bound(50, abi.Thinned), "100>97"},
		{"nothing is known now", 100, none(abi.NotKnown), "100>97"},
		{"further, and less is known", 120, bound(60, abi.Thinned), "100>97"},
		{"further", 120, exact(117), "120>117"},
		{"the group went back", 50, exact(47), "50>47"},
		{"and further back, with a bound", 40, bound(30, abi.InUnknown), "40>30"},
		{"to where nothing is known", 5, none(abi.BeforeFirst), "40>30"},
		{"forward again", 41, exact(38), "41>38"},
		{"in a gap, to the same record", 45, exact(38), "45>38"},
		{"the exact answer is lower: the log is another", 45, exact(2), "45>2"},
		{"past the target's end", 60, exact(1_000_001), "45>2"},
	} {
		l.source.commit("g", "orders", 0, step.offset, "")
		l.with(func(l *lab) { l.answers = func(plugins.GroupOffset) plugins.Translation { return step.answer } })
		l.once(e)
		last, _ := l.checkpoints()
		if got := last["g/A.orders-0"]; got != step.want {
			t.Errorf("%s: %s, want %s", step.name, got, step.want)
		}
	}
	if s := e.Status(); s.Inexact[status.InexactPastEnd] != 1 || s.Groups[status.OutcomeNone] != 1 {
		t.Errorf("an answer past the end: %+v", s)
	}
}

// What was written before is read at the start: it is not written again, and is not
// gone behind.
func TestRestartsGoOn(t *testing.T) {
	l := newLab(t)
	l.mirrors("orders", 1)
	l.source.commit("g", "orders", 0, 100, "m")
	l.once(l.engine())
	_, records := l.checkpoints()
	l.once(l.engine())
	if _, n := l.checkpoints(); n != records {
		t.Errorf("%d records were written again", n-records)
	}
	l.with(func(l *lab) {
		l.answers = func(plugins.GroupOffset) plugins.Translation { return bound(1, abi.Thinned) }
	})
	l.once(l.engine())
	l.has("g", "orders", "100>97 m")
}

// A group that is selected later is not gone behind what an earlier process wrote for
// it.
func TestGroupsThatAreSelectedLater(t *testing.T) {
	l := newLab(t)
	l.mirrors("orders", 1)
	l.source.commit("g", "orders", 0, 100, "")
	l.once(l.engine())
	all := l.config.Groups
	l.with(func(l *lab) { l.config.Groups = patterns(t, "other") })
	e := l.engine()
	l.once(e)
	if s := e.Status(); s.Checkpoints != 0 {
		t.Errorf("%d checkpoints of other groups are remembered", s.Checkpoints)
	}
	l.with(func(l *lab) {
		l.config.Groups = all
		l.answers = func(plugins.GroupOffset) plugins.Translation { return bound(1, abi.Thinned) }
	})
	l.once(e)
	l.has("g", "orders", "100>97")
}

func TestGroupsThatAreDeleted(t *testing.T) {
	l := newLab(t)
	l.mirrors("orders", 1)
	l.source.commit("g", "orders", 0, 100, "")
	l.source.commit("stays", "orders", 0, 100, "")
	e := l.engine()
	l.once(e)
	if _, err := l.source.admin.DeleteGroups(t.Context(), "g"); err != nil {
		t.Fatal(err)
	}
	l.once(e)
	l.once(e)
	if s := e.Status(); s.Deleted != 1 || s.Checkpoints != 1 || s.Groups[status.OutcomeExact] != 1 {
		t.Errorf("status %+v", s)
	}
	if n := l.log.Count("group is gone from the source"); n != 1 {
		t.Errorf("said %d times", n)
	}
	l.has("g", "orders", "100>97") // nothing is removed
	// One of the same name is another one: it begins where it begins.
	l.source.commit("g", "orders", 0, 20, "")
	l.once(e)
	l.has("g", "orders", "20>17")
	// Those that were gone before the start are not worth a word.
	if _, err := l.source.admin.DeleteGroups(t.Context(), "g"); err != nil {
		t.Fatal(err)
	}
	e = l.engine()
	l.once(e)
	if s := e.Status(); s.Deleted != 0 || s.Checkpoints != 1 || l.log.Count("group is gone from the source") != 1 {
		t.Errorf("status after a restart %+v", s)
	}
}

// A topic that is made again is another one, on either side: what was written of the
// old one holds nothing back.
func TestTopicsThatAreMadeAgain(t *testing.T) {
	l := newLab(t)
	l.mirrors("orders", 1)
	l.source.commit("g", "orders", 0, 100, "")
	e := l.engine()
	l.once(e)
	for _, side := range []struct {
		*side
		topic string
	}{{l.source, "orders"}, {l.target, "A.orders"}} {
		if err := side.DeleteTopic(side.topic); err != nil {
			t.Fatal(err)
		}
		side.create(side.topic, 1)
	}
	l.follow("orders", 1)
	l.source.commit("g", "orders", 0, 200, "")
	l.with(func(l *lab) { l.answers = func(plugins.GroupOffset) plugins.Translation { return bound(4, abi.Ahead) } })
	l.once(e)
	l.has("g", "orders", "200>4")
}

// The topic of checkpoints is made again, with all of them, when it is deleted; one
// that forgets is said.
func TestTheTopicIsLookedAfter(t *testing.T) {
	l := newLab(t)
	l.mirrors("orders", 1)
	l.source.commit("g", "orders", 0, 100, "")
	l.config.Refresh = 0
	e := l.engine()
	l.once(e)
	if err := l.target.DeleteTopic(topicName); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the checkpoints", func() string {
		err := e.round(t.Context(), e.o.Config())
		if last, _ := l.checkpoints(); last["g/A.orders-0"] != "100>97" {
			return "not there: " + textOf(err)
		}
		return ""
	})
	if l.log.Count("topic of checkpoints was deleted or made again") != 1 {
		t.Error("it is not said")
	}
	described, err := l.target.admin.DescribeTopicConfigs(t.Context(), topicName)
	if err != nil || len(described) != 1 {
		t.Fatal(err)
	}
	for _, k := range described[0].Configs {
		if k.Key == "cleanup.policy" && k.MaybeValue() != "compact" {
			t.Errorf("it is made with cleanup.policy %s", k.MaybeValue())
		}
	}
}

func TestATopicThatIsNotCompactedIsSaid(t *testing.T) {
	l := newLab(t)
	l.mirrors("orders", 1)
	l.target.create(topicName, 1)
	l.source.commit("g", "orders", 0, 100, "")
	e := l.engine()
	l.once(e)
	l.has("g", "orders", "100>97")
	if s := e.Status(); s.Problem == "" || l.log.Count("cleanup.policy=compact") != 1 {
		t.Errorf("problem %q", s.Problem)
	}
}

func textOf(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
