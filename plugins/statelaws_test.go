package plugins

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"mirror/abi"
)

// logStore is a Store that writes to a log, of which a write that fails leaves a part.
type logStore struct {
	MemoryStore
	log  []Change
	part func(n int) int // how many of so many changes of a write are written; fewer: it fails
}

var errStore = errors.New("the store is down")

func newLogStore() *logStore { return &logStore{MemoryStore: MemoryStore{kept: map[Key]*Kept{}}} }

func (s *logStore) Write(_ context.Context, changes []Change) error {
	n := len(changes)
	if s.part != nil {
		n = s.part(n)
	}
	s.log = append(s.log, changes[:n]...)
	if n < len(changes) {
		return errStore
	}
	return nil
}

// reload is the store as the next process finds it.
func (s *logStore) reload() *logStore {
	next := newLogStore()
	next.log = slices.Clone(s.log)
	for _, c := range next.log {
		next.Take(c.Key).Load(c.TopicID, c.Name, c.Value)
	}
	for _, k := range next.kept {
		k.Loaded()
	}
	return next
}

// content is what is seen of a state.
func (s *state) content() map[string]string {
	all := map[string]string{}
	for key := s.next(nil); key != nil; key = s.next(key) {
		value, _ := s.get(key)
		all[string(key)] = string(value)
	}
	return all
}

// stateModel is a partition's state as it should be.
type stateModel struct {
	flushed, now map[string]string
	puts         []string            // keys in the order of their last put, since the flush
	wiped        bool                // since the flush
	may          []map[string]string // what the store may have, beside flushed, after writes that failed
	topic        [16]byte            // of flushed
	told         [16]byte            // of now
	head, saved  int64
}

func (m *stateModel) forget() {
	m.now, m.puts, m.wiped, m.told = maps.Clone(m.flushed), nil, false, m.topic
}

func (m *stateModel) set(key, value string) {
	m.puts = append(slices.DeleteFunc(m.puts, func(k string) bool { return k == key }), key)
	if value == "" {
		delete(m.now, key)
	} else {
		m.now[key] = value
	}
}

// steps are what the store has after each change of a flush. Those that take away what
// belongs to another topic may come one by one in any order: of them nobody is told.
func (m *stateModel) steps() (all []map[string]string) {
	at := maps.Clone(m.flushed)
	if m.wiped {
		at = map[string]string{}
		all = append(all, at)
	}
	for _, key := range m.puts {
		at = maps.Clone(at)
		if v, ok := m.now[key]; ok {
			at[key] = v
		} else {
			delete(at, key)
		}
		all = append(all, at)
	}
	return all
}

// Whatever fails and whenever: an instance sees what was flushed and what itself has
// put; a crash leaves what some of the puts came to, in order, all of them where a
// flush went well; nothing is lost that a saved position is about; and nothing of a
// topic is seen by another of its name.
func TestStateLaws(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) { newStateRun(t).run() })
}

type stateRun struct {
	*rapid.T
	store   *logStore
	program *program
	lane    *Lane
	model   map[Key]*stateModel
	now     time.Time
	topics  byte
}

func newStateRun(t *rapid.T) *stateRun {
	r := &stateRun{T: t, store: newLogStore(), model: map[Key]*stateModel{}, now: time.Unix(1_000_000, 0)}
	r.begin()
	return r
}

// begin is a process that has just started.
func (r *stateRun) begin() {
	limits := Limits{}.withDefaults()
	r.program = &program{Module: Module{Hooks: []abi.Hook{abi.OnPartitions, abi.OnCommit}}, spec: Spec{Name: "p", Limits: limits},
		lines: &lines{log: slog.New(slog.DiscardHandler)}, board: newBoard(), store: r.store}
	r.lane = NewLane(&Set{members: []*member{newMember(r.program, 0, nil)}}, nil)
	for _, k := range r.keys() {
		m := r.model[k]
		r.lane.Notify(Event{Key: k, Kind: abi.Assigned, Position: m.saved, TopicID: m.topic})
		if m.head > m.saved {
			r.lane.Acknowledged(k, Range{First: m.saved + 1, Last: m.head, TargetFirst: -1, TargetLast: -1})
		}
	}
}

func (r *stateRun) keys() []Key {
	return slices.SortedFunc(maps.Keys(r.model), func(a, b Key) int { return int(a.Partition - b.Partition) })
}

func (r *stateRun) run() {
	for range rapid.IntRange(1, 40).Draw(r.T, "steps") {
		k := key(rapid.Int32Range(0, 2).Draw(r.T, "partition"))
		switch rapid.IntRange(0, 9).Draw(r.T, "what") {
		case 0, 1, 2:
			r.copied(k)
		case 3, 4, 5, 6:
			r.round(rapid.Bool().Draw(r.T, "flush"))
			r.save()
		case 7:
			r.recreated(k)
		case 8:
			r.swap()
		case 9:
			r.crash()
		}
		r.now = r.now.Add(time.Minute)
	}
	for range 3 {
		r.now = r.now.Add(time.Hour)
		r.well()
	}
	r.crash()
	for _, k := range r.keys() {
		if m := r.model[k]; m.saved != m.head {
			r.Fatalf("%v is saved up to %d of %d", k, m.saved, m.head)
		}
	}
}

func (r *stateRun) copied(k Key) {
	m := r.model[k]
	if m == nil {
		r.topics++
		m = &stateModel{flushed: map[string]string{}, topic: [16]byte{r.topics}, head: -1, saved: -1}
		m.forget()
		r.model[k] = m
		r.lane.Notify(Event{Key: k, Kind: abi.Assigned, Position: -1, TopicID: m.topic})
	}
	n := rapid.Int64Range(1, 5).Draw(r.T, "offsets")
	r.lane.Acknowledged(k, Range{First: m.head + 1, Last: m.head + n, TargetFirst: m.head + 1, TargetLast: m.head + n})
	m.head += n
}

// recreated: everything before it has been flushed, as the pipeline sees to.
func (r *stateRun) recreated(k Key) {
	m := r.model[k]
	if m == nil {
		return
	}
	r.well()
	r.save()
	r.topics++
	m.head, m.saved = -1, -1
	r.lane.Notify(Event{Key: k, Kind: abi.Recreated, Position: -1, TopicID: [16]byte{r.topics}})
}

// well is a round in which nothing fails.
func (r *stateRun) well() {
	r.store.part = nil
	r.tell(true, func(*frame) abi.Status { return abi.OK })
	r.save()
}

// round is one in which anything may.
func (r *stateRun) round(flush bool) {
	left := rapid.IntRange(0, 6).Draw(r.T, "writes until one fails")
	r.store.part = func(n int) int {
		if left--; left >= 0 {
			return n
		}
		return rapid.IntRange(0, n-1).Draw(r.T, "written")
	}
	left2 := rapid.IntRange(0, 6).Draw(r.T, "frames until one fails")
	what := rapid.SampledFrom([]abi.Status{abi.Retry, abi.Fatal, abi.Limit}).Draw(r.T, "how")
	r.tell(flush, func(*frame) abi.Status {
		if left2--; left2 != 0 {
			return abi.OK
		}
		return what
	})
	r.store.part = nil
}

func (r *stateRun) tell(flush bool, outcome func(*frame) abi.Status) {
	m := r.lane.members[0]
	m.seal()
	for {
		f := m.next(r.now, flush)
		if f == nil {
			return
		}
		status := abi.OK
		if f.hook != 0 {
			status = outcome(f)
		}
		undos := r.hook(f, status == abi.OK)
		switch status {
		case abi.OK:
			if failed := r.write(m, f); failed {
				return
			}
		case abi.Retry:
			for _, u := range slices.Backward(undos) {
				u.back()
			}
			m.failed(f, &Failure{Hook: f.hook, Status: status}, r.now)
			if len(m.held) == 0 {
				r.lost()
			}
		case abi.Limit: // its emits were not written
			m.discard()
			r.lost()
		default:
			m.discard() // without the policy, which is another test's
			r.lost()
		}
		m.sweep()
		if status != abi.OK {
			return
		}
	}
}

// lost is the end of an instance.
func (r *stateRun) lost() {
	for _, m := range r.model {
		m.forget()
	}
}

// hook is a guest that is told a frame: it looks at its state, and puts.
func (r *stateRun) hook(f *frame, counts bool) (undos []undo) {
	for i, q := range f.about {
		m := r.model[q.key]
		if f.hook == abi.OnPartitions {
			if id := f.partitions[i].TopicID; id != m.told {
				m.told, m.wiped, m.now, m.puts = id, true, map[string]string{}, nil
			}
		}
	}
	told := map[*queue]int64{} // the last offset
	for i, q := range f.about {
		told[q] = -1
		if f.hook == abi.OnCommit {
			told[q] = f.ranges[i].Last
		}
	}
	for _, q := range slices.SortedFunc(maps.Keys(told), func(a, b *queue) int { return int(a.key.Partition - b.key.Partition) }) {
		m := r.model[q.key]
		if got := q.state.content(); !maps.Equal(got, m.now) {
			r.Fatalf("%v sees %v, want %v (flushed %v)", q.key, got, m.now, m.flushed)
		}
		puts := map[string]string{}
		if f.hook == abi.OnCommit {
			puts["last"] = fmt.Sprint(max(told[q], number(m.now["last"])) + 1)
		}
		for range rapid.IntRange(0, 3).Draw(r.T, "puts") {
			puts[rapid.SampledFrom([]string{"a", "ab", "b", "c"}).Draw(r.T, "key")] = rapid.SampledFrom([]string{"", "1", "22", "333"}).Draw(r.T, "value")
		}
		for _, key := range slices.Sorted(maps.Keys(puts)) {
			u, status := q.state.put([]byte(key), []byte(puts[key]), puts[key] == "")
			if status != abi.OK {
				r.Fatalf("put: %v", status)
			}
			undos = append(undos, u)
			if counts {
				m.set(key, puts[key])
			}
		}
	}
	return undos
}

// number is the offset that a value of "last" says, which is one less.
func number(s string) (n int64) {
	fmt.Sscan(s, &n)
	return n - 1
}

// write does what is done with what a hook has emitted and put. It says whether that
// failed.
func (r *stateRun) write(m *member, f *frame) (failed bool) {
	fails := m.fails
	m.fails = 0
	r.lane.mu.Lock()
	err := r.lane.write(context.Background(), m, f, nil)
	r.lane.mu.Unlock()
	if err != nil {
		r.Fatal(err)
	}
	failed = m.fails > 0
	m.fails, m.notBefore = fails, time.Time{}
	if f.flags&abi.Flush == 0 {
		return false
	}
	for _, p := range f.parts {
		s := r.model[p.q.key]
		if failed {
			s.may = append(s.may, s.steps()...)
			continue
		}
		s.flushed, s.puts, s.wiped, s.topic, s.may = maps.Clone(s.now), nil, false, s.told, nil
	}
	if failed {
		r.lost()
	}
	return failed
}

// save saves the positions that may be.
func (r *stateRun) save() {
	for k, m := range r.model {
		if safe := r.lane.Safe(k); safe > m.saved {
			m.saved = safe
			if last := number(m.flushed["last"]); last < safe {
				r.Fatalf("%v is saved up to %d, its state knows up to %d", k, safe, last)
			}
		}
	}
}

// swap gives the partitions to the same plugin of the next generation.
func (r *stateRun) swap() {
	old := r.lane.members[0]
	next := newMember(r.program, 0, nil)
	r.lane.hand(old, next)
	r.lane.members = []*member{next}
	r.lost()
}

// crash ends the process, and begins the next with what the store has.
func (r *stateRun) crash() {
	r.store = r.store.reload()
	for k, m := range r.model {
		kept := r.store.Take(k)
		if another(kept.topicID, m.topic) { // the position of the new topic may be saved, or not
			m.flushed = map[string]string{}
		}
		s := &state{kept: kept}
		s.drop()
		got := s.content()
		if !maps.Equal(got, m.flushed) && !slices.ContainsFunc(m.may, func(may map[string]string) bool { return maps.Equal(got, may) }) && !m.wiped {
			r.Fatalf("%v: the store has %v, want %v or one of %v", k, got, m.flushed, m.may)
		}
		if m.saved >= 0 && number(got["last"]) < m.saved {
			r.Fatalf("%v: the store knows up to %v, the position is %d", k, got["last"], m.saved)
		}
		m.flushed, m.may = got, nil
		if kept.topicID != [16]byte{} {
			m.topic = kept.topicID
		}
		m.forget()
	}
	r.begin()
}
