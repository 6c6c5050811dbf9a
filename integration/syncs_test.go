package integration

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"mirror/abi"
	"mirror/integration/contract"
	"mirror/plugins"
	"mirror/plugins/offsetsync"
)

// syncRule has MirrorMaker's own OffsetSyncWriter decide on sequences that nobody has
// seen before, and the built-in plugin, in the host, on the same.
func (k *kafka) syncRule(e *contract.Env) {
	seed := strconv.FormatInt(rand.Int64(), 10)
	out := k.source.Nodes[0].Java(e, "../plugins/offsetsync/testdata/Decisions.java", seed)
	sequences := strings.Split(out, "lag ")[1:]
	if len(sequences) < 30 {
		e.Fatalf("seed %s: %d sequences", seed, len(sequences))
	}
	for _, s := range sequences {
		want := strings.Split(strings.TrimSpace(s), "\n")
		lag, err := strconv.ParseInt(want[0], 10, 64)
		if err != nil {
			e.Fatalf("seed %s: %v", seed, err)
		}
		if got := replaySyncs(e, lag, want[1:]); !slices.Equal(got, want[1:]) {
			e.Fatalf("seed %s, lag %d\nplugin      %v\nMirrorMaker %v", seed, lag, got, want[1:])
		}
	}
}

// replaySyncs tells the plugin the records and flushes of the lines of
// Decisions.java, and gives them back with its own syncs instead of MirrorMaker's.
func replaySyncs(t testing.TB, lag int64, lines []string) (out []string) {
	ctx := t.Context()
	binary, err := plugins.Embedded(offsetsync.Name, offsetsync.Wasm)
	if err != nil {
		t.Fatal(err)
	}
	g, err := plugins.Load(ctx, plugins.Options{Flow: "A->B", From: "A", To: "B", Number: 1, Log: slog.New(slog.DiscardHandler)}, []plugins.Spec{{
		Name: offsetsync.Name, Binary: binary, Config: map[string]any{"lag_max": lag}, Emit: plugins.Allow{OffsetSyncs: true},
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	set, err := g.Instantiate(ctx, 0)
	if err != nil {
		t.Fatal(err)
	}
	lane := plugins.NewLane(set, produced(func(emits []plugins.Emit) {
		for _, e := range emits {
			out = append(out, fmt.Sprintf("= %d %d", e.Upstream, e.Downstream))
		}
	}))
	defer lane.Close(context.Background())
	key := plugins.Key{Topic: "t"}
	lane.Notify(plugins.Event{Key: key, Kind: abi.Assigned, TargetTopic: "A.t", LogStart: -1, Position: -1, TargetEnd: -1})
	for _, line := range lines {
		if strings.HasPrefix(line, "=") {
			continue
		}
		out = append(out, line)
		if line != "flush" {
			var up, down int64
			if _, err := fmt.Sscan(line, &up, &down); err != nil {
				t.Fatalf("%q: %v", line, err)
			}
			lane.Acknowledged(key, plugins.Range{First: up, Last: up, TargetFirst: down, TargetLast: down, MaxTimestamp: -1, Records: 1, LeaderEpoch: -1})
		}
		if err := lane.Round(ctx, line == "flush"); err != nil {
			t.Fatal(err)
		}
		if s := lane.Status()[0]; s.State != plugins.Running {
			t.Fatalf("the plugin is %s: %s", s.State, s.Reason)
		}
	}
	return out
}

// produced is a target that hands over what plugins emit.
type produced func([]plugins.Emit)

func (p produced) Produce(_ context.Context, _ string, emits []plugins.Emit) error {
	p(emits)
	return nil
}
