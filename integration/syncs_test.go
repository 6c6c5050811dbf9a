package integration

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"mirror/abi"
	"mirror/integration/contract"
	"mirror/plugins"
	"mirror/plugins/offsetsync"
)

// ruleSequences is how many sequences syncRule has decided; it takes a second or two
// of its own for them.
const ruleSequences = 1000

// syncRule has MirrorMaker's own OffsetSyncWriter decide on sequences that nobody has
// seen before, and the built-in plugin, in the host, on the same. They are drawn by a
// seed, which the test says; MIRROR_TEST_SEED=that draws them again.
func (k *kafka) syncRule(e *contract.Env) {
	seed := os.Getenv("MIRROR_TEST_SEED")
	if seed == "" {
		seed = strconv.FormatUint(uint64(rand.Uint32()), 10)
	}
	e.Logf("seed %s", seed)
	out := k.source.Nodes[0].Java(e, "../plugins/offsetsync/testdata/Decisions.java", seed, strconv.Itoa(ruleSequences))
	sequences := strings.Split(out, "lag ")[1:]
	if len(sequences) != ruleSequences {
		e.Fatalf("%d sequences, want %d", len(sequences), ruleSequences)
	}
	byLag := map[int64]*ruled{}
	for _, s := range sequences {
		want := strings.Split(strings.TrimSpace(s), "\n")
		lag, err := strconv.ParseInt(want[0], 10, 64)
		if err != nil {
			e.Fatal(err)
		}
		if byLag[lag] == nil {
			byLag[lag] = newRuled(e, lag)
		}
		if got := byLag[lag].replay(e, want[1:]); !slices.Equal(got, want[1:]) {
			e.Fatalf("lag %d\nplugin      %v\nMirrorMaker %v", lag, got, want[1:])
		}
	}
}

// ruled is the built-in plugin, in the host, with one lag; each sequence that it
// replays is a partition of its own.
type ruled struct {
	lane *plugins.Lane
	key  plugins.Key // of the sequence that is replayed
	out  []string
}

func newRuled(t testing.TB, lag int64) *ruled {
	t.Helper()
	binary, err := plugins.Embedded(offsetsync.Name, offsetsync.Wasm)
	if err != nil {
		t.Fatal(err)
	}
	g, err := plugins.Load(t.Context(), plugins.Options{Flow: "A->B", From: "A", To: "B", Number: 1, Log: slog.New(slog.DiscardHandler)}, []plugins.Spec{{
		Name: offsetsync.Name, Binary: binary, Config: map[string]any{"lag_max": lag}, Emit: plugins.Allow{OffsetSyncs: true, Groups: true},
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(g.Close)
	set, err := g.Instantiate(t.Context(), 0)
	if err != nil {
		t.Fatal(err)
	}
	r := &ruled{key: plugins.Key{Topic: "t"}}
	r.lane = plugins.NewLane(set, r)
	t.Cleanup(func() { r.lane.Close(context.Background()) })
	return r
}

// Produce is the target that the plugin emits to. A flush is one of all sequences so
// far: what was held back at the end of an earlier one is none of this one's.
func (r *ruled) Produce(_ context.Context, _ string, emits []plugins.Emit) error {
	for _, e := range emits {
		if e.About.Partition != r.key.Partition {
			continue
		}
		r.out = append(r.out, fmt.Sprintf("= %d %d", e.Upstream, e.Downstream))
	}
	return nil
}

// replay tells the plugin the records and flushes of the lines of Decisions.java,
// and gives them back with its own syncs instead of MirrorMaker's.
func (r *ruled) replay(t testing.TB, lines []string) []string {
	t.Helper()
	r.key.Partition, r.out = r.key.Partition+1, nil
	r.lane.Notify(plugins.Event{Key: r.key, Kind: abi.Assigned, TargetTopic: "A.t", LogStart: -1, Position: -1, TargetEnd: -1})
	for _, line := range lines {
		if strings.HasPrefix(line, "=") {
			continue
		}
		r.out = append(r.out, line)
		if line != "flush" {
			var up, down int64
			if _, err := fmt.Sscan(line, &up, &down); err != nil {
				t.Fatalf("%q: %v", line, err)
			}
			r.lane.Acknowledged(r.key, plugins.Range{First: up, Last: up, TargetFirst: down, TargetLast: down, MaxTimestamp: -1, Records: 1, LeaderEpoch: -1})
		}
		if err := r.lane.Round(t.Context(), line == "flush"); err != nil {
			t.Fatal(err)
		}
		if s := r.lane.Status()[0]; s.State != plugins.Running {
			t.Fatalf("the plugin is %s: %s", s.State, s.Reason)
		}
	}
	return r.out
}
