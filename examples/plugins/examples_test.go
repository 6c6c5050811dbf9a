package examples

import (
	"slices"
	"strings"
	"testing"

	"mirror/plugins"
)

func TestC(t *testing.T) {
	each(t, "c/sparse.wasm", []string{"clang-14", "wasm-ld-14"}, func(t *testing.T, b plugins.Binary) {
		spec := plugins.Spec{Name: "offset-sync", Binary: b, Emit: plugins.Allow{OffsetSyncs: true}}
		l := mustLoad(t, spec)
		l.stored(0, 2000, 500)
		l.empty(2001, 2004)
		l.stored(2005, 2999, 2501)
		l.stored(3000, 3000, 9000)
		if got, want := l.round(), []string{"t-0 0:500", "t-0 1000:1500", "t-0 2000:2500", "t-0 3000:9000"}; !slices.Equal(got, want) {
			t.Errorf("syncs %v, want %v", got, want)
		}
		l.stored(3001, 3999, 9001)
		if got := l.round(); got != nil {
			t.Errorf("syncs %v, want none", got)
		}

		spec.Config = map[string]any{"every": int64(400)}
		l = mustLoad(t, spec)
		l.stored(1, 1234, 0)
		if got, want := l.round(), []string{"t-0 400:399", "t-0 800:799", "t-0 1200:1199"}; !slices.Equal(got, want) {
			t.Errorf("every 400: syncs %v, want %v", got, want)
		}
		for _, bad := range []map[string]any{{"every": int64(99)}, {"every": int64(-1000)}, {"every": "many"}, {"every": 1.5}, {"every": int64(10000000000)}, {"evers": int64(500)}, {"every": int64(500), "more": true}} {
			spec.Config = bad
			if _, err := load(t, spec); err == nil || !strings.Contains(err.Error(), "config: want every = a whole number from 100 to 999999999, and nothing else") {
				t.Errorf("%v: %v", bad, err)
			}
		}
	})
}

func TestGo(t *testing.T) {
	spec := plugins.Spec{Name: "audit", Binary: build(t, "go"), Emit: plugins.Allow{Topics: []string{"log"}}, Config: map[string]any{"topic": "log"}}
	l := mustLoad(t, spec)
	l.assigned()
	l.stored(0, 99, 500)
	l.empty(100, 104)
	l.stored(105, 105, 600)
	want := []string{
		`log t-0={"topic":"t","target_topic":"A.t","partition":0,"first":0,"last":99,"target_first":500,"target_last":599,"records":100,"dropped":0}`,
		`log t-0={"topic":"t","target_topic":"A.t","partition":0,"first":105,"last":105,"target_first":600,"target_last":600,"records":1,"dropped":0}`,
	}
	if got := l.round(); !slices.Equal(got, want) {
		t.Errorf("wrote\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if got := l.round(); got != nil {
		t.Errorf("wrote %v, want nothing", got)
	}

	// Without topic it wants audit-log, which it may not write to.
	spec.Config = nil
	l = mustLoad(t, spec)
	l.stored(0, 0, 0)
	if err := l.Round(t.Context(), true); err != nil {
		t.Fatal(err)
	}
	if _, why := l.Halted(plugins.Key{Topic: "t"}); why == nil || !strings.Contains(why.Error(), "audit-log") || l.sink.written != nil {
		t.Errorf("halted: %v, wrote %v", why, l.sink.written)
	}
}

func TestRust(t *testing.T) {
	each(t, "rust/tail.wasm", []string{"/usr/bin/rustc", "wasm-ld-14"}, func(t *testing.T, b plugins.Binary) {
		l := mustLoad(t, plugins.Spec{Name: "offset-sync", Binary: b, Emit: plugins.Allow{OffsetSyncs: true}})
		l.stored(0, 2000, 500)
		l.empty(2001, 2004)
		l.stored(2005, 2999, 2501)
		if got, want := l.round(), []string{"t-0 2000:2500", "t-0 2999:3495"}; !slices.Equal(got, want) {
			t.Errorf("syncs %v, want %v", got, want)
		}
		if got := l.round(); got != nil {
			t.Errorf("syncs %v, want none", got)
		}
	})
}

func TestAssemblyScript(t *testing.T) {
	each(t, "assemblyscript/count.wasm", []string{"asc"}, func(t *testing.T, b plugins.Binary) {
		l := mustLoad(t, plugins.Spec{Name: "count", Binary: b, Failure: plugins.Skip})
		l.stored(0, 2000, 500)
		l.empty(2001, 2004)
		l.stored(2005, 2999, 2501)
		if got := l.round(); got != nil {
			t.Errorf("it wrote %v", got)
		}
		counted := map[string]int64{}
		for _, s := range l.generation.Metrics() {
			counted[s.Name] = s.Value
		}
		if len(counted) != 2 || counted["records"] != 2001+995 || counted["ranges"] != 2 {
			t.Errorf("counted %v", counted)
		}
	})
}
