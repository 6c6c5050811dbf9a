package offsetsync

import (
	"context"
	"fmt"
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
	h := host(t, map[string]any{"lag_max": int64(100)})
	copied := func(first, last int64) []string {
		t.Helper()
		h.Acknowledged(plugins.Key{Topic: "t", Partition: 7}, stored(first, last, first+5))
		h.syncs = nil
		h.round(true)
		return h.syncs
	}
	if got, want := copied(0, 20), []string{"t-7 0:5", "t-7 20:25"}; !slices.Equal(got, want) {
		t.Errorf("syncs %v, want %v", got, want)
	}
	h.spec.Config = map[string]any{"lag_max": int64(30)}
	if err := h.Swap(t.Context(), h.load()); err != nil {
		t.Fatal(err)
	}
	if got, want := copied(21, 70), []string{"t-7 31:36", "t-7 62:67", "t-7 70:75"}; !slices.Equal(got, want) {
		t.Errorf("syncs after a reload %v, want %v", got, want)
	}
}
