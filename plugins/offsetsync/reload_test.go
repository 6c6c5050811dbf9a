package offsetsync

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"testing"

	"mirror/plugins"
)

// sink is a target that keeps the syncs.
type sink struct{ syncs []string }

func (s *sink) Produce(_ context.Context, _ string, emits []plugins.Emit) error {
	for _, e := range emits {
		s.syncs = append(s.syncs, fmt.Sprintf("%s-%d %s", e.About.Topic, e.About.Partition, pair(e.Emit)))
	}
	return nil
}

// In the host: a reload with another config carries over what is known of
// partitions, so that they do not begin with a sync again.
func TestReload(t *testing.T) {
	load := func(number uint64, lag int64) *plugins.Set {
		binary, err := plugins.Embedded(Name, Wasm)
		if err != nil {
			t.Fatal(err)
		}
		g, err := plugins.Load(t.Context(), plugins.Options{Flow: "A->B", From: "A", To: "B", Number: number, Log: slog.New(slog.DiscardHandler)},
			[]plugins.Spec{{Name: Name, Binary: binary, Config: map[string]any{"lag_max": lag}, Emit: plugins.Allow{OffsetSyncs: true}}})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(g.Close)
		set, err := g.Instantiate(t.Context(), 0)
		if err != nil {
			t.Fatal(err)
		}
		return set
	}
	var s sink
	lane := plugins.NewLane(load(1, 100), &s)
	defer lane.Close(context.Background())
	copied := func(first, last int64) []string {
		t.Helper()
		lane.Acknowledged(plugins.Key{Topic: "t", Partition: 7}, plugins.Range{First: first, Last: last, TargetFirst: first + 5, TargetLast: last + 5,
			Records: uint32(last - first + 1), MaxTimestamp: -1, LeaderEpoch: -1})
		s.syncs = nil
		if err := lane.Round(t.Context(), true); err != nil {
			t.Fatal(err)
		}
		if is := lane.Status()[0]; is.State != plugins.Running {
			t.Fatalf("%s: %s", is.State, is.Reason)
		}
		return s.syncs
	}
	if got, want := copied(0, 20), []string{"t-7 0:5", "t-7 20:25"}; !slices.Equal(got, want) {
		t.Errorf("syncs %v, want %v", got, want)
	}
	if err := lane.Swap(t.Context(), load(2, 30)); err != nil {
		t.Fatal(err)
	}
	if got, want := copied(21, 70), []string{"t-7 31:36", "t-7 62:67", "t-7 70:75"}; !slices.Equal(got, want) {
		t.Errorf("syncs after a reload %v, want %v", got, want)
	}
}
