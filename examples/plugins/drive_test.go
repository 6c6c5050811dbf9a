// Package examples tests the example plugins in the real host: the committed
// modules, and those that the toolchains of this machine build.
package examples

import (
	"context"
	"fmt"
	"log/slog"
	"os/exec"
	"path/filepath"
	"testing"

	"mirror/abi"
	"mirror/plugins"
)

// each runs the test with the module that is committed beside a build.sh, and with
// the one that it makes now, where it can.
func each(t *testing.T, wasm string, tools []string, test func(*testing.T, plugins.Binary)) {
	t.Run("committed", func(t *testing.T) { test(t, read(t, wasm)) })
	t.Run("built", func(t *testing.T) {
		for _, tool := range tools {
			if _, err := exec.LookPath(tool); err != nil {
				t.Skip(err)
			}
		}
		test(t, build(t, filepath.Dir(wasm)))
	})
}

// build runs a folder's build.sh.
func build(t *testing.T, folder string) plugins.Binary {
	t.Helper()
	out := filepath.Join(t.TempDir(), "built.wasm")
	script := filepath.Join(folder, "build.sh")
	if said, err := exec.Command(script, out).CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", script, err, said)
	}
	return read(t, out)
}

func read(t *testing.T, path string) plugins.Binary {
	t.Helper()
	b, err := plugins.Read(path, "")
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// sink is a target that keeps what plugins emit, as text.
type sink struct{ written []string }

func (s *sink) Produce(_ context.Context, _ string, emits []plugins.Emit) error {
	for _, e := range emits {
		switch e.Kind {
		case abi.EmitOffsetSync:
			s.written = append(s.written, fmt.Sprintf("%s-%d %d:%d", e.About.Topic, e.About.Partition, e.Upstream, e.Downstream))
		case abi.EmitRecord:
			s.written = append(s.written, fmt.Sprintf("%s %s=%s", e.Record.Topic, e.Record.Key, e.Record.Value))
		}
	}
	return nil
}

// lane is one that the plugin of the spec has for itself.
type lane struct {
	t          *testing.T
	generation *plugins.Generation
	*plugins.Lane
	sink sink
}

func load(t *testing.T, spec plugins.Spec) (*lane, error) {
	t.Helper()
	g, err := plugins.Load(t.Context(), plugins.Options{Flow: "A->B", From: "A", To: "B", Number: 1, Log: slog.New(slog.DiscardHandler)}, []plugins.Spec{spec})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(g.Close)
	set, err := g.Instantiate(t.Context(), 0)
	if err != nil {
		return nil, err
	}
	l := &lane{t: t, generation: g}
	l.Lane = plugins.NewLane(set, &l.sink)
	t.Cleanup(func() { l.Close(context.Background()) })
	return l, nil
}

func mustLoad(t *testing.T, spec plugins.Spec) *lane {
	t.Helper()
	l, err := load(t, spec)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// assigned begins with partition 0 of t.
func (l *lane) assigned() {
	l.Notify(plugins.Event{Key: plugins.Key{Topic: "t"}, Kind: abi.Assigned, TargetTopic: "A.t", LogStart: -1, Position: -1, TargetEnd: -1})
}

// stored tells of records first to last of partition 0 of t, which are on the target
// from at on.
func (l *lane) stored(first, last, at int64) {
	n := last - first
	l.Acknowledged(plugins.Key{Topic: "t"}, plugins.Range{First: first, Last: last, TargetFirst: at, TargetLast: at + n, MaxTimestamp: 1700000000000, Records: uint32(n + 1), LeaderEpoch: -1})
}

// empty tells of offsets that left no record.
func (l *lane) empty(first, last int64) {
	l.Acknowledged(plugins.Key{Topic: "t"}, plugins.Range{First: first, Last: last, TargetFirst: -1, TargetLast: -1, MaxTimestamp: -1, LeaderEpoch: -1})
}

// round tells the plugin, and gives what it has written since the last.
func (l *lane) round() []string {
	l.t.Helper()
	if err := l.Round(l.t.Context(), true); err != nil {
		l.t.Fatal(err)
	}
	for _, s := range l.Status() {
		if s.State != plugins.Running {
			l.t.Fatalf("%s is %s: %s", s.Plugin, s.State, s.Reason)
		}
	}
	written := l.sink.written
	l.sink.written = nil
	return written
}
