package offsetsync

import (
	"context"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"mirror/abi"
	"mirror/plugins"
)

// hosted is a lane of the real host with the plugin, or with what takes its place.
type hosted struct {
	*plugins.Lane
	sink
	t      testing.TB
	spec   plugins.Spec
	store  *countingStore
	number uint64
}

// countingStore is a store in memory that counts what is written and what is there.
type countingStore struct {
	*plugins.MemoryStore
	there   map[string]int // bytes of keys and values
	records int
	bytes   int
}

func (s *countingStore) Write(ctx context.Context, changes []plugins.Change) error {
	for _, c := range changes {
		key := fmt.Sprint(c.Key, c.Name)
		s.records++
		s.bytes += len(c.Name) + len(c.Value)
		if delete(s.there, key); c.Value != nil {
			s.there[key] = len(c.Name) + len(c.Value)
		}
	}
	return s.MemoryStore.Write(ctx, changes)
}

// size is how many keys there are, and the bytes of them and their values.
func (s *countingStore) size() (keys, bytes int) {
	for _, n := range s.there {
		bytes += n
	}
	return len(s.there), bytes
}

// host starts one.
func host(t testing.TB, config map[string]any) *hosted {
	t.Helper()
	binary, err := plugins.Embedded(Name, Wasm)
	if err != nil {
		t.Fatal(err)
	}
	h := &hosted{t: t, store: &countingStore{MemoryStore: plugins.NewMemoryStore(), there: map[string]int{}}}
	h.spec = plugins.Spec{Name: Name, Binary: binary, Config: config, Emit: plugins.Allow{OffsetSyncs: true, Groups: true}}
	h.spec.Limits.Call = 20 * time.Second // the machine may be busy
	h.start()
	return h
}

// start has a lane of its own, with what the store has.
func (h *hosted) start() {
	h.t.Helper()
	lane := plugins.NewLane(h.load(), &h.sink)
	h.t.Cleanup(func() { lane.Close(context.Background()) })
	h.Lane = lane
}

// load makes an instance of the next generation.
func (h *hosted) load() *plugins.Set {
	h.t.Helper()
	h.number++
	g, err := plugins.Load(h.t.Context(), plugins.Options{Flow: "A->B", From: "A", To: "B", Number: h.number, Log: slog.New(slog.DiscardHandler)}, []plugins.Spec{h.spec})
	if err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(g.Close)
	set, err := g.Instantiate(h.t.Context(), 0)
	if err != nil {
		h.t.Fatal(err)
	}
	g.Keep(Name, h.store)
	return set
}

func (h *hosted) round(flush bool) {
	h.t.Helper()
	if err := h.Round(h.t.Context(), flush); err != nil {
		h.t.Fatal(err)
	}
	if is := h.Status()[0]; is.State != plugins.Running {
		h.t.Fatalf("%s: %s", is.State, is.Reason)
	}
}

func (h *hosted) assign(k plugins.Key, position, end int64) {
	h.Notify(plugins.Event{Key: k, Kind: abi.Assigned, TargetTopic: k.Topic, LogStart: 0, Position: position, TargetEnd: end})
}

// stored is a run of records.
func stored(first, last, target int64) plugins.Range {
	return plugins.Range{First: first, Last: last, TargetFirst: target, TargetLast: target + last - first, Records: uint32(last - first + 1), MaxTimestamp: -1, LeaderEpoch: -1}
}

// marker is a range that left nothing.
func marker(first, last int64) plugins.Range {
	return plugins.Range{First: first, Last: last, TargetFirst: -1, TargetLast: -1, MaxTimestamp: -1, LeaderEpoch: -1}
}

// transactions tells n of ten records and a marker, from the first on, with a flush after
// each so many.
func (h *hosted) transactions(k plugins.Key, first, n, each int64) {
	h.t.Helper()
	for i := first; i < first+n; i++ {
		h.Acknowledged(k, stored(11*i, 11*i+9, 10*i))
		h.Acknowledged(k, marker(11*i+10, 11*i+10))
		if i%each == each-1 {
			h.round(true)
		}
	}
	h.round(true)
}

// exactly asks about offsets of n transactions.
func (h *hosted) exactly(k plugins.Key, n int64, offsets ...int64) {
	h.t.Helper()
	var asked []plugins.GroupOffset
	for _, o := range offsets {
		asked = append(asked, plugins.GroupOffset{Key: k, Group: "g", Offset: o, LeaderEpoch: -1})
	}
	got, err := h.Groups(h.t.Context(), asked)
	if err != nil {
		h.t.Fatal(err)
	}
	for i, o := range offsets {
		by := min((o+1)/11, n-1) // a marker goes to the one after it
		want := plugins.Translation{Offset: 10*(o/11) + o%11, Outcome: abi.Exact, Run: of(11*by, 11*by+9, 10*by), Plugin: Name}
		if got[i] != want {
			h.t.Errorf("offset %d becomes %+v, want %+v", o, got[i], want)
		}
	}
}

// In the host: a group that is a hundred thousand runs behind goes on at the right
// record, also after a reload, and after a restart.
func TestDaysBehind(t *testing.T) {
	n := int64(100_000)
	if interpreted {
		n = 2_500
	}
	h, k := host(t, nil), plugins.Key{Topic: "t", Partition: 7}
	h.assign(k, -1, 0)
	h.transactions(k, 0, n, 500)
	check := func(n int64) {
		t.Helper()
		var offsets []int64
		for o := int64(0); o < 11*n; o += 1 + n/70 {
			offsets = append(offsets, o)
		}
		h.exactly(k, n, append(offsets, 11*n-1, 11*n)...)
	}
	check(n)
	if err := h.Swap(t.Context(), h.load()); err != nil {
		t.Fatal(err)
	}
	h.round(false)
	check(n)
	h.start()
	h.assign(k, 11*n-1, 10*n)
	h.round(false)
	check(n)
	h.transactions(k, n, 300, 100)
	check(n + 300)
	if keys, bytes := h.store.size(); float64(bytes) > 2.5*float64(n+300) || keys > int(n)/1000+20 {
		t.Errorf("%d keys, %d bytes for %d runs", keys, bytes, n+300)
	}
}

// Whoever takes the built-in's name takes its place, state and all. This one says of no
// answer which run it goes by.
func TestReplaced(t *testing.T) {
	h, k := host(t, nil), plugins.Key{Topic: "t"}
	h.assign(k, -1, 0)
	h.transactions(k, 0, 10, 100)
	h.exactly(k, 10, 15)
	var err error
	if h.spec.Binary, err = plugins.Read("../testdata/nearest.wasm", ""); err != nil {
		t.Fatal(err)
	}
	h.store = &countingStore{MemoryStore: plugins.NewMemoryStore(), there: map[string]int{}} // a schema has its own
	if err := h.Swap(t.Context(), h.load()); err != nil {
		t.Fatal(err)
	}
	h.transactions(k, 10, 10, 100)
	for o, want := range map[int64]plugins.Translation{
		15:      {Offset: -1, Reason: abi.BeforeFirst},
		11 * 10: {Offset: -1, Reason: abi.BeforeFirst},
		135:     {Offset: 120, Outcome: abi.Bound, Reason: abi.InUnknown},
		11 * 20: {Offset: 200, Outcome: abi.Bound, Reason: abi.InUnknown},
		500:     {Offset: 200, Outcome: abi.Bound, Reason: abi.Ahead},
	} {
		want.Plugin = Name
		got, err := h.Groups(t.Context(), []plugins.GroupOffset{{Key: k, Group: "g", Offset: o, LeaderEpoch: -1}})
		if err != nil || got[0] != want {
			t.Errorf("offset %d becomes %+v, want %+v; %v", o, got, want, err)
		}
	}
}
