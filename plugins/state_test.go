package plugins

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"mirror/abi"
)

// newStateBench is a bench whose first plugin's state is kept in a store.
func newStateBench(t testing.TB, store Store, specs ...Spec) *bench {
	t.Helper()
	r := newRecord()
	g := load(t, r, specs...)
	set := instantiate(t, g)
	g.Keep(specs[0].Name, store)
	l := NewLane(set, r)
	t.Cleanup(func() {
		l.Close(context.Background())
		g.Close()
	})
	return &bench{l, r, t, g}
}

// counting is a guest whose state says what it was told.
func counting(t testing.TB, pairs ...string) Spec {
	return does(t, "p", append([]string{"schema", "v1", "partitions", "count", "commit", "count"}, pairs...)...)
}

// keeps compares what the store has of a partition: keys and values in short.
func (s *logStore) keeps(t testing.TB, partition int32, want map[string]string) {
	t.Helper()
	kept := s.reload().Take(key(partition))
	got := map[string]string{}
	for _, p := range kept.pairs {
		got[string(p.name())] = short(p.value())
	}
	if !maps.Equal(got, want) {
		t.Errorf("partition %d: the store has %v, want %v", partition, got, want)
	}
}

func short(b []byte) string {
	if len(b) == 8 {
		n := int64(0)
		for i := range b {
			n |= int64(b[i]) << (8 * i)
		}
		return fmt.Sprint(n)
	}
	return string(b)
}

// What is put is seen at once, and kept with the flush: each key once, however often
// it was put.
func TestStateIsFlushed(t *testing.T) {
	s := newLogStore()
	b := newStateBench(t, s, counting(t))
	b.assign(0, 1)
	for n := range int64(5) {
		b.ack(0, copied(10+n, 10+n))
		b.round(false)
	}
	if len(s.log) != 0 {
		t.Errorf("written before a flush: %v", s.log)
	}
	b.ack(1, copied(10, 19))
	b.round(true)
	if len(s.log) != 4 {
		t.Errorf("%d changes are written, want 4: two keys of two partitions", len(s.log))
	}
	s.keeps(t, 0, map[string]string{"last": "14", "sum": "5"})
	s.keeps(t, 1, map[string]string{"last": "19", "sum": "10"})
	b.safe(0, 14)
	b.round(true)
	if len(s.log) != 4 {
		t.Error("what has not changed is written again")
	}
	if st := b.status("p"); st.StateKeys != 4 || st.StateBytes != 2*(4+8+3+8+2*abi.StateCost) || st.State != Running {
		t.Errorf("%+v", st)
	}
}

// An instance that takes the place of another sees what was flushed, and is told the
// rest again.
func TestStateOfAFreshInstance(t *testing.T) {
	s := newLogStore()
	b := newStateBench(t, s, counting(t))
	b.assign(0)
	b.ack(0, copied(10, 19))
	b.round(true)
	b.ack(0, copied(20, 29))
	b.round(false)
	b.fail = func(string, []Emit) error { return errStore }
	b.ack(0, copied(30, 39))
	b.round(false)
	b.fail = nil
	s.keeps(t, 0, map[string]string{"last": "19", "sum": "10"})
	b.soon(true)
	s.keeps(t, 0, map[string]string{"last": "39", "sum": "30"}) // not 40: 20 to 29 count once
	b.safe(0, 39)
	if st := b.status("p"); st.Discarded != 1 || st.State != Running {
		t.Errorf("%+v", st)
	}
}

// What cannot be kept moves no position, and is written again, also what may have been
// written and was never to be.
func TestStateThatCannotBeWritten(t *testing.T) {
	s := newLogStore()
	b := newStateBench(t, s, counting(t))
	b.assign(0)
	b.ack(0, copied(10, 19))
	s.part = func(int) int { return 1 }
	b.round(true)
	b.safe(0, 9)
	if st := b.status("p"); st.State != Retrying || !strings.Contains(st.Reason, "its state cannot be written: the store is down") {
		t.Errorf("%+v", st)
	}
	s.part = nil
	b.soon(true)
	b.safe(0, 19)
	var written []string
	for _, c := range s.log {
		written = append(written, fmt.Sprintf("%s=%s %v", c.Name, short(c.Value), c.Value != nil))
	}
	if want := []string{"last=19 true", "sum= false", "last= false", "last=19 true", "sum=10 true"}; !slices.Equal(written, want) {
		t.Errorf("written %q, want %q", written, want)
	}
	s.keeps(t, 0, map[string]string{"last": "19", "sum": "10"})
}

// What is put where there is nothing to flush is kept all the same.
func TestStateThatIsPutByATick(t *testing.T) {
	for _, commit := range []string{"echo", "nothing"} {
		s := newLogStore()
		spec := does(t, "p", "schema", "v1", "tick", "state", "commit", commit)
		spec.Tick = time.Hour
		b := newStateBench(t, s, spec)
		b.assign(0)
		b.round(true)
		b.soon(false)
		if len(s.log) != 0 {
			t.Error("written without a flush")
		}
		b.round(true)
		s.keeps(t, 0, map[string]string{"a": "", "ab": "three"})
	}
}

// A call that fails has put nothing.
func TestStateOfAFailedCall(t *testing.T) {
	s := newLogStore()
	b := newStateBench(t, s, counting(t))
	b.assign(0)
	b.ack(0, copied(10, 19))
	b.round(true)
	q := b.members[0].queues[key(0)]
	was := q.state.content()
	var undos []undo
	for _, p := range []struct{ key, value string }{{"last", "x"}, {"new", "y"}, {"new", ""}, {"last", ""}, {"new", "z"}, {"last", "w"}} {
		u, status := q.state.put([]byte(p.key), []byte(p.value), p.value == "")
		if status != abi.OK {
			t.Fatal(status)
		}
		undos = append(undos, u)
	}
	for _, u := range slices.Backward(undos) {
		u.back()
	}
	if now := q.state.content(); !maps.Equal(now, was) || q.state.size != q.state.kept.size || q.state.pending() {
		t.Errorf("%v, %d bytes, was %v", now, q.state.size, was)
	}
}

// A swap hands the state over without asking the store; another schema has its own.
func TestStateIsHandedOver(t *testing.T) {
	s, other := newLogStore(), newLogStore()
	b := newStateBench(t, s, counting(t))
	b.assign(0)
	b.ack(0, copied(10, 19))
	b.round(true)
	swap := func(store Store, spec Spec) {
		t.Helper()
		g := load(t, b.record, spec)
		set := instantiate(t, g)
		g.Keep("p", store)
		if err := b.Swap(t.Context(), set); err != nil {
			t.Fatal(err)
		}
		old := b.gen
		b.gen = g
		old.Close()
		t.Cleanup(func() {
			b.Lane.Close(context.Background())
			g.Close()
		})
	}
	kept := b.members[0].queues[key(0)].state.kept
	swap(s, counting(t, "n", "2"))
	if b.members[0].queues[key(0)].state.kept != kept {
		t.Error("the state was taken from the store again")
	}
	b.ack(0, copied(20, 29))
	b.round(true)
	s.keeps(t, 0, map[string]string{"last": "29", "sum": "20"})
	swap(other, counting(t, "schema", "v2"))
	b.ack(0, copied(30, 39))
	b.round(true)
	s.keeps(t, 0, map[string]string{"last": "29", "sum": "20"})
	other.keeps(t, 0, map[string]string{"last": "39", "sum": "10"})
}

// Of a topic that is made again nothing is seen; where there are no ids the event says so.
func TestStateOfAnotherTopic(t *testing.T) {
	for name, ids := range map[string][2][16]byte{"with ids": {{1}, {2}}, "without": {}} {
		s := newLogStore()
		b := newStateBench(t, s, counting(t))
		b.Notify(Event{Key: key(0), Kind: abi.Assigned, TargetTopic: "a.t", Position: -1, TopicID: ids[0]})
		b.ack(0, copied(0, 9))
		b.round(true)
		b.Notify(Event{Key: key(0), Kind: abi.Recreated, TargetTopic: "a.t", Position: -1, TopicID: ids[1]})
		b.round(true)
		s.keeps(t, 0, map[string]string{})
		b.ack(0, copied(0, 4))
		b.round(true)
		s.keeps(t, 0, map[string]string{"last": "4", "sum": "5"})
		if st := b.status("p"); st.State != Running {
			t.Errorf("%s: %+v", name, st)
		}
		// The next process finds yet another one.
		next := s.reload()
		b = newStateBench(t, next, counting(t))
		b.Notify(Event{Key: key(0), Kind: abi.Assigned, TargetTopic: "a.t", Position: 99, TopicID: [16]byte{3}})
		b.round(true)
		if _, why := b.Halted(key(0)); (why != nil) != (name == "without") { // without an id nobody can tell
			t.Errorf("%s: %v", name, why)
		}
	}
}

// A partition that has left has its state when it comes back, and a plugin without a
// schema has none.
func TestStateComesBack(t *testing.T) {
	s := newLogStore()
	b := newStateBench(t, s, counting(t), does(t, "without"))
	b.assign(0)
	b.ack(0, copied(10, 19))
	b.round(true)
	b.Notify(Event{Key: key(0), Kind: abi.Revoked, Position: 19})
	b.round(true)
	if n := len(b.members[0].queues); n != 0 {
		t.Errorf("%d partitions are kept", n)
	}
	b.Notify(Event{Key: key(0), Kind: abi.Assigned, TargetTopic: "a.t", Position: 19, TargetEnd: 20})
	b.ack(0, copied(20, 24))
	b.round(true)
	s.keeps(t, 0, map[string]string{"last": "24", "sum": "15"})
	if b.members[1].queues[key(0)].state != nil || b.members[1].p.store != nil {
		t.Error("a plugin without a schema has state")
	}
	if all := b.gen.Schemas(); !maps.Equal(all, map[string]string{"p": "v1"}) {
		t.Errorf("schemas %v", all)
	}
}

func TestStateLimit(t *testing.T) {
	s := &state{kept: &Kept{}, limit: 1000}
	put := func(key string, n int, want abi.Status) {
		t.Helper()
		if _, got := s.put([]byte(key), make([]byte, n), n < 0); got != want {
			t.Errorf("%s with %d bytes: %v, want %v; %d bytes by now", key, n, got, want, s.size)
		}
	}
	put("a", 1000-abi.StateCost, abi.StateFull)
	put("a", 1000-abi.StateCost-1, abi.OK)
	put("b", 0, abi.StateFull)
	put("a", 100, abi.OK)
	put("b", 0, abi.OK)
	put("b", 1000, abi.StateFull)
	s.limit = 100 // by a reload
	put("a", 99, abi.OK)
	put("a", 100, abi.StateFull)
	if want := int64(99 + 1 + 1 + 2*abi.StateCost); s.size != want {
		t.Errorf("%d bytes, want %d", s.size, want)
	}
}

// What is loaded is what was written last, in any order and number.
func TestKept(t *testing.T) {
	k, want := &Kept{}, map[string]string{}
	seed := uint32(1)
	for n := range 20_000 {
		seed = seed*1664525 + 1013904223
		key, value := fmt.Sprint(seed>>20%3000), fmt.Sprint(n)
		if seed>>8%5 == 0 {
			k.Load([16]byte{1}, []byte(key), nil)
			delete(want, key)
			continue
		}
		k.Load([16]byte{1}, []byte(key), []byte(value))
		want[key] = value
	}
	k.Loaded()
	size := int64(0)
	got := map[string]string{}
	for i, p := range k.pairs {
		got[string(p.name())] = string(p.value())
		size += p.cost()
		if i > 0 && bytes.Compare(k.pairs[i-1].name(), p.name()) >= 0 {
			t.Fatalf("%q after %q", p.name(), k.pairs[i-1].name())
		}
	}
	if !maps.Equal(got, want) || size != k.size {
		t.Errorf("%d keys of %d, %d bytes of %d", len(got), len(want), k.size, size)
	}
	k.Load([16]byte{2}, []byte("x"), []byte("y"))
	k.Loaded()
	if len(k.pairs) != 1 || len(k.doubts) != len(want) {
		t.Errorf("%d keys of the next topic, %d of the one before to be removed", len(k.pairs), len(k.doubts))
	}
}

// A plugin that is new to a lane does not see the state of a topic that is gone.
func TestStateOfAPluginThatIsNew(t *testing.T) {
	s := newLogStore()
	old := [16]byte{1}
	s.log = []Change{{Key: key(0), TopicID: old, Name: []byte("last"), Value: []byte("12345678")}, {Key: key(1), TopicID: old, Name: []byte("last"), Value: make([]byte, 8)}}
	s = s.reload()
	b := newBench(t)
	b.Notify(Event{Key: key(0), Kind: abi.Assigned, TargetTopic: "a.t", Position: 9, TopicID: [16]byte{2}})
	b.Notify(Event{Key: key(1), Kind: abi.Assigned, TargetTopic: "a.t", Position: 0, TopicID: old})
	g := load(t, b.record, counting(t))
	set := instantiate(t, g)
	g.Keep("p", s)
	if err := b.Swap(t.Context(), set); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		b.Lane.Close(context.Background())
		g.Close()
	})
	b.ack(0, copied(10, 19))
	b.ack(1, copied(1, 9))
	b.round(true)
	s.keeps(t, 0, map[string]string{"last": "19", "sum": "10"})
	s.keeps(t, 1, map[string]string{"last": "9", "sum": "9"})
	if st := b.status("p"); st.State != Running {
		t.Errorf("%+v", st)
	}
}

// A plugin that is told events alone has its state kept before anything is safe.
func TestStateWithoutRanges(t *testing.T) {
	s := newLogStore()
	p := &program{Module: Module{Hooks: []abi.Hook{abi.OnPartitions}}, spec: Spec{Name: "p", Limits: Limits{}.withDefaults()},
		lines: &lines{log: slog.New(slog.DiscardHandler)}, board: newBoard(), store: s}
	l := NewLane(&Set{members: []*member{newMember(p, 0, nil)}}, nil)
	m := l.members[0]
	l.Notify(Event{Key: key(0), Kind: abi.Assigned, Position: 9})
	m.seal()
	f := m.next(time.Now(), false)
	if _, status := m.queues[key(0)].state.put([]byte("k"), []byte("v"), false); status != abi.OK {
		t.Fatal(status)
	}
	f.done()
	l.Acknowledged(key(0), copied(10, 19))
	m.seal()
	if f := m.next(time.Now(), false); f != nil || l.Safe(key(0)) != 9 {
		t.Errorf("%+v to be told, safe up to %d", f, l.Safe(key(0)))
	}
	s.part = func(int) int { return 0 }
	for range 2 {
		m.notBefore = time.Time{}
		if f = m.next(time.Now(), true); f == nil || f.hook != 0 {
			break
		}
		l.mu.Lock()
		if err := l.write(t.Context(), m, f, nil); err != nil {
			t.Error(err)
		}
		l.mu.Unlock()
		s.part = nil
	}
	if f == nil || f.hook != abi.OnPartitions || l.Safe(key(0)) != 9 {
		t.Fatalf("%+v to be told, safe up to %d: want the partition once more", f, l.Safe(key(0)))
	}
	if _, status := m.queues[key(0)].state.put([]byte("k"), []byte("w"), false); status != abi.OK {
		t.Fatal(status)
	}
	f.done()
	for f := m.next(time.Now(), true); f != nil; f = m.next(time.Now(), true) {
		l.mu.Lock()
		if err := l.write(t.Context(), m, f, nil); err != nil {
			t.Error(err)
		}
		l.mu.Unlock()
	}
	s.keeps(t, 0, map[string]string{"k": "w"})
	if safe := l.Safe(key(0)); safe != 19 {
		t.Errorf("safe up to %d, want 19", safe)
	}
}
