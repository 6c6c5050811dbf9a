package plugins

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"mirror/abi"
)

// testGuest is testdata/guest.c: its config says what it does.
func testGuest(t testing.TB) Binary {
	t.Helper()
	b, err := Read("testdata/guest.wasm", "")
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// does is a Spec of the test guest: pairs of config keys and values.
func does(t testing.TB, name string, pairs ...string) Spec {
	t.Helper()
	s := Spec{Name: name, Binary: testGuest(t), Config: map[string]any{}, Emit: Allow{Topics: []string{"frames"}, OffsetSyncs: true}}
	s.Limits.Call = 20 * time.Second // the machine may be busy
	for i := 0; i < len(pairs); i += 2 {
		s.Config[pairs[i]] = pairs[i+1]
	}
	return s
}

// record is what a test's plugins have written and said.
type record struct {
	mu    sync.Mutex
	emits map[string][]Emit // by plugin
	said  bytes.Buffer
	fail  func(plugin string, emits []Emit) error
}

// Produce keeps copies, and says yes unless fail says something else.
func (r *record) Produce(_ context.Context, plugin string, emits []Emit) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.fail != nil {
		if err := r.fail(plugin, emits); err != nil {
			return err
		}
	}
	for _, e := range emits {
		e.Record.Value = bytes.Clone(e.Record.Value)
		r.emits[plugin] = append(r.emits[plugin], e)
	}
	return nil
}

// Write is for the log.
func (r *record) Write(b []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.said.Write(b)
}

func (r *record) log() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.said.String()
}

// frames are those that a plugin was told and echoed since the last time, as text.
func (r *record) frames(t testing.TB, plugin string) (all []string) {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, e := range r.emits[plugin] {
		if e.Kind == abi.EmitRecord && e.Record.Topic == "frames" {
			all = append(all, describe(t, e.Record.Value))
		}
	}
	r.emits[plugin] = nil
	return all
}

// describe writes a frame in short: hook, flags, attempt, entries.
func describe(t testing.TB, b []byte) string {
	t.Helper()
	f, err := abi.ParseFrame(b)
	if err != nil {
		t.Fatal(err)
	}
	s := f.Hook().String()
	if f.Flags()&abi.Flush != 0 {
		s += " flush"
	}
	if f.Flags()&abi.Replay != 0 {
		s += " replay"
	}
	if a, ok := f.Extra(abi.TagAttempt); !ok {
		s += " no attempt"
	} else if a[0] > 0 {
		s += fmt.Sprintf(" attempt %d", a[0])
	}
	for i := range f.Count() {
		switch f.Hook() {
		case abi.OnCommit:
			c := f.Commit(i)
			s += fmt.Sprintf(" %s/%d:%d-%d", c.Topic, c.Partition, c.SrcFirst, c.SrcLast)
			if c.DstFirst >= 0 {
				s += fmt.Sprintf("→%d-%d", c.DstFirst, c.DstLast)
			}
		case abi.OnPartitions, abi.OnTick:
			p := f.Partition(i)
			s += fmt.Sprintf(" %s/%d=%d@%d", p.Topic, p.Partition, p.Event, p.Position)
		}
	}
	return s
}

// bench is a lane with plugins, and what they write.
type bench struct {
	*Lane
	*record
	t   testing.TB
	gen *Generation
}

// cacheDir is where the tests keep compiled guests.
var cacheDir string

func TestMain(m *testing.M) {
	var err error
	if cacheDir, err = os.MkdirTemp("", "plugins"); err != nil {
		panic(err)
	}
	code := m.Run()
	os.RemoveAll(cacheDir)
	os.Exit(code)
}

func newRecord() *record { return &record{emits: map[string][]Emit{}} }

func (r *record) options() Options {
	h := slog.NewTextHandler(r, &slog.HandlerOptions{Level: slog.LevelDebug, ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}})
	return Options{Flow: "a->b", From: "a", To: "b", Number: 7, CacheDir: cacheDir, Log: slog.New(h)}
}

func load(t testing.TB, r *record, specs ...Spec) *Generation {
	t.Helper()
	g, err := Load(t.Context(), r.options(), specs)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func instantiate(t testing.TB, g *Generation) *Set {
	t.Helper()
	s, err := g.Instantiate(t.Context(), 3)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func newBench(t testing.TB, specs ...Spec) *bench {
	t.Helper()
	r := newRecord()
	g := load(t, r, specs...)
	l := NewLane(instantiate(t, g), r)
	t.Cleanup(func() {
		l.Close(context.Background())
		g.Close()
	})
	return &bench{l, r, t, g}
}

func key(partition int32) Key { return Key{"t", partition} }

func (b *bench) assign(partitions ...int32) {
	for _, p := range partitions {
		b.Notify(Event{Key: key(p), Kind: abi.Assigned, TargetTopic: "a.t", LogStart: 0, Position: 9, TargetEnd: 10})
	}
}

// copied is what source offsets first to last have become: the same plus 100.
func copied(first, last int64) Range {
	return Range{First: first, Last: last, TargetFirst: first + 100, TargetLast: last + 100, MaxTimestamp: 5, Records: uint32(last - first + 1), LeaderEpoch: 1}
}

// empty is a range that left nothing.
func empty(first, last int64) Range {
	return Range{First: first, Last: last, TargetFirst: -1, TargetLast: -1, MaxTimestamp: -1, LeaderEpoch: 1}
}

func (b *bench) ack(partition int32, rs ...Range) {
	for _, r := range rs {
		b.Acknowledged(key(partition), r)
	}
}

func (b *bench) round(flush bool) {
	b.t.Helper()
	if err := b.Round(context.Background(), flush); err != nil {
		b.t.Fatal(err)
	}
}

// told compares what the plugin was told since the last time.
func (b *bench) told(plugin string, want ...string) {
	b.t.Helper()
	got := b.frames(b.t, plugin)
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		b.t.Errorf("%s was told\n\t%s\nwant\n\t%s", plugin, strings.Join(got, "\n\t"), strings.Join(want, "\n\t"))
	}
}

func (b *bench) safe(partition int32, want int64) {
	b.t.Helper()
	if got := b.Safe(key(partition)); got != want {
		b.t.Errorf("partition %d is safe up to %d, want %d", partition, got, want)
	}
}

func (b *bench) status(plugin string) Status {
	b.t.Helper()
	for _, s := range b.Status() {
		if s.Plugin == plugin {
			return s
		}
	}
	b.t.Fatalf("no plugin %s", plugin)
	return Status{}
}

// soon is Round at the time that Due says, without waiting for it.
func (b *bench) soon(flush bool) {
	b.t.Helper()
	b.Lane.mu.Lock()
	for _, m := range b.members {
		m.notBefore, m.tickAt = time.Time{}, time.Unix(1, 0)
		for _, f := range m.held {
			f.notBefore = time.Time{}
		}
		for _, q := range m.order {
			q.notBefore = time.Time{}
		}
	}
	b.Lane.mu.Unlock()
	b.round(flush)
}
