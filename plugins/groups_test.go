package plugins

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"mirror/abi"
)

// translator is the test guest with the hook on_groups.
func translator(t testing.TB, name string, pairs ...string) Spec {
	t.Helper()
	s := does(t, name, pairs...)
	var err error
	if s.Binary, err = Read("testdata/groups.wasm", ""); err != nil {
		t.Fatal(err)
	}
	s.Emit.Groups = true
	return s
}

// asks is what a group has committed of a partition.
func asks(partition int32, group string, offset int64) GroupOffset {
	return GroupOffset{Key: key(partition), Group: group, Offset: offset, LeaderEpoch: -1, LogStart: 0}
}

// answers are what the plugin says, in short: offset, outcome, reason.
func (b *bench) answers(asked ...GroupOffset) (all []string) {
	b.t.Helper()
	answers, err := b.Groups(context.Background(), asked)
	if err != nil {
		b.t.Fatal(err)
	}
	for _, a := range answers {
		if a.Plugin != b.members[len(b.members)-1].p.spec.Name {
			b.t.Errorf("an answer of %q", a.Plugin)
		}
		all = append(all, fmt.Sprint(a.Offset, a.Outcome, a.Reason))
	}
	return all
}

func same(t testing.TB, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("answers %q, want %q", got, want)
	}
}

const (
	unknown  = "-1 0 5" // abi.NotKnown
	unsaid   = "-1 0 0"
	farAhead = "120 2 2" // of a partition that is copied up to 19
)

// The plugin is given what it has been told of the partition, and answers in order.
func TestGroups(t *testing.T) {
	b := newBench(t, does(t, "other"), translator(t, "p"))
	b.assign(0, 1)
	b.ack(0, copied(10, 19))
	same(t, b.answers(asks(0, "g", 15)), unknown) // nothing is told yet
	b.round(false)
	same(t, b.answers(asks(1, "g", 20), asks(0, "g", 15), asks(2, "g", 1), asks(0, "nobody", 15), asks(0, "h", 20), asks(0, "h", 30), asks(1, "i", 10)),
		"10 2 2", "115 1 0", unknown, unknown, "120 1 0", farAhead, "110 1 0")
	b.ack(0, copied(20, 29))
	same(t, b.answers(asks(0, "h", 30)), farAhead) // that is not told yet
	b.round(false)
	same(t, b.answers(asks(0, "h", 30)), "130 1 0")
	b.Notify(Event{Key: key(1), Kind: abi.Revoked})
	b.round(false)
	same(t, b.answers(asks(1, "i", 10)), unknown)
	same(t, b.answers())
	if s := b.status("p"); s.State != Running || s.Calls[abi.OnGroups] != 3 {
		t.Errorf("%+v", s)
	}
}

func TestNobodyTranslates(t *testing.T) {
	for _, b := range []*bench{newBench(t), newBench(t, does(t, "p"))} {
		if _, err := b.Groups(t.Context(), []GroupOffset{asks(0, "g", 1)}); !errors.Is(err, ErrNoGroups) {
			t.Errorf("%v", err)
		}
	}
}

// More than a frame holds is asked in several.
func TestManyGroups(t *testing.T) {
	b := newBench(t, translator(t, "p"))
	b.assign(0, 1)
	b.round(false)
	long := strings.Repeat("m", 100_000) // more than a text may have
	var asked []GroupOffset
	var want []string
	for n := range 2*abi.MaxEntries + 100 {
		g := asks(int32(n%2), fmt.Sprint("g", n), int64(n%10))
		if n < 50 {
			g.Metadata = long
		}
		asked, want = append(asked, g), append(want, fmt.Sprintf("%d 1 0", n%10+100))
	}
	same(t, b.answers(asked...), want...)
	if s := b.status("p"); s.State != Running || s.Calls[abi.OnGroups] < 5 { // fifteen of the long ones fill a frame
		t.Errorf("%+v", s)
	}
	small := newBench(t, translator(t, "p", "room", "900"))
	small.assign(0, 1)
	small.round(false)
	same(t, small.answers(asked[50:150]...), want[50:150]...)
	tiny := newBench(t, translator(t, "p", "room", "300", "partitions", "nothing"))
	tiny.assign(0)
	tiny.round(false)
	same(t, tiny.answers(asks(0, strings.Repeat("g", 200), 5)), unsaid)
	if s := tiny.status("p"); s.Failures[abi.NoMemory] != 1 {
		t.Errorf("%+v", s)
	}
}

// What fails together is asked again one by one, of instances that have been told
// again what was not flushed.
func TestGroupsFail(t *testing.T) {
	b := newBench(t, translator(t, "p", "groups", "return", "status", "-1", "only", "1"))
	b.assign(0, 1, 2)
	b.ack(0, copied(10, 19))
	b.round(false)
	b.frames(t, "p")
	asked := []GroupOffset{asks(0, "g", 15), asks(1, "g", 5), asks(2, "g", 5), asks(1, "h", 6), asks(0, "h", 30)}
	same(t, b.answers(asked...), "115 1 0", unsaid, "105 1 0", unsaid, farAhead)
	s := b.status("p")
	if s.Failures[abi.Fatal] != 2 || s.Discarded != 2 || len(s.Halted) != 0 {
		t.Errorf("%+v", s)
	}
	again := "on_partitions t/0=1@9 t/1=1@9 t/2=1@9"
	for _, f := range b.frames(t, "p") {
		if f != again && f != "on_commit t/0:10-19→110-119" {
			t.Errorf("it was told %s", f)
		}
	}
	b.round(true)
	b.safe(0, 19)
}

// A plugin that traps too often is not asked any more. Anybody may commit for a group, so
// that stops nothing else.
func TestGroupsTrap(t *testing.T) {
	b := newBench(t, translator(t, "p", "groups", "trap"))
	b.assign(0, 1)
	b.round(true)
	for range 3 {
		same(t, b.answers(asks(0, "g", 5), asks(1, "g", 5)), unsaid, unsaid)
	}
	b.ack(0, copied(10, 19))
	b.round(true)
	b.safe(0, 19)
	if s := b.status("p"); s.State != Retrying || s.Failures[abi.Trap] != breakAt || s.Calls[abi.OnGroups] != breakAt || !strings.Contains(s.Reason, "on_groups") {
		t.Errorf("%+v", s)
	}
}

func TestGroupsAgain(t *testing.T) {
	b := newBench(t, translator(t, "p", "groups", "return", "status", "-2"))
	b.assign(0)
	b.round(true)
	same(t, b.answers(asks(0, "g", 5)), unsaid)
	if s := b.status("p"); s.Discarded != 0 || s.Failures[abi.Retry] != 1 {
		t.Errorf("%+v", s)
	}
}

func TestHostileGroups(t *testing.T) {
	for what, text := range map[string]string{
		"answertwice": "a second translation for entry 0", "echo": "on_groups emits a record", "entry": "on_groups emits a offset sync", "garbage": "not an emit",
	} {
		b := newBench(t, translator(t, "p", "groups", what))
		b.assign(0)
		b.round(true)
		same(t, b.answers(asks(0, "g", 5)), unsaid)
		if s := b.status("p"); !strings.Contains(s.Reason, text) {
			t.Errorf("%s: %q, want %q", what, s.Reason, text)
		}
	}
}

// Who does not want the answer any more does not wait for it.
func TestGroupsEnd(t *testing.T) {
	s := translator(t, "p", "groups", "loop")
	b := newBench(t, s)
	b.assign(0)
	b.round(true)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if _, err := b.Groups(ctx, []GroupOffset{asks(0, "g", 5)}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v", err)
	}
	b.round(true)
	b.safe(0, 9)
}
