package wasm

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
)

// wazero's module comes with the WebAssembly specification's tests, compiled.
var specDir = sync.OnceValues(func() (string, error) {
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/tetratelabs/wazero").Output()
	return filepath.Join(strings.TrimSpace(string(out)), "internal/integration_test/spectest"), err
})

func specFiles(t testing.TB, pattern string) []string {
	t.Helper()
	dir, err := specDir()
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(dir, pattern))
	if err != nil || len(files) == 0 {
		t.Fatalf("no %s in %s: %v", pattern, dir, err)
	}
	return files
}

// command of a specification's test.
type command struct {
	Type, Filename, Name, As string
	Line                     int
	Action                   struct {
		Type, Module, Field string
		Args                []value
	}
}

type value struct {
	Type     string
	LaneType string `json:"lane_type"`
	Value    any
}

// world is a place where the modules of a file live; two of them are compared.
type world struct {
	runtime wazero.Runtime
	metered bool
	current api.Module
	named   map[string]api.Module
	spent   int
}

var (
	testBounds = Bounds{Stack: 64 << 10, TableSize: 1 << 20, Memory: 1 << 16}
	errDepth   = errors.New("too deep")
)

const testSlice = 100 // so that hardly a test does not run out of it

func newWorld(t *testing.T, ctx context.Context, metered bool) *world {
	t.Helper()
	w := &world{runtime: wazero.NewRuntimeWithConfig(ctx, config()), metered: metered, named: map[string]api.Module{}}
	t.Cleanup(func() { w.runtime.Close(ctx) })
	if metered {
		hostMeter(t, ctx, w.runtime, func(m api.Module) {
			w.spent++
			if s := m.ExportedGlobal(StackGlobal).Get(); uint32(s) > testBounds.Stack {
				panic(errDepth)
			}
			m.ExportedGlobal(FuelGlobal).(api.MutableGlobal).Set(testSlice)
		})
	}
	b, err := os.ReadFile(specFiles(t, "testdata/spectest.wasm")[0])
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.module(ctx, b, "spectest"); err != nil {
		t.Fatal(err)
	}
	return w
}

func hostMeter(t testing.TB, ctx context.Context, r wazero.Runtime, spent func(api.Module)) {
	t.Helper()
	_, err := r.NewHostModuleBuilder(MeterModule).NewFunctionBuilder().
		WithGoModuleFunction(api.GoModuleFunc(func(_ context.Context, m api.Module, _ []uint64) { spent(m) }), nil, nil).
		Export(MeterFunc).Instantiate(ctx)
	if err != nil {
		t.Fatal(err)
	}
}

func (w *world) module(ctx context.Context, b []byte, name string) (api.Module, error) {
	if w.metered {
		var err error
		if b, err = Meter(b, testBounds); err != nil {
			return nil, fmt.Errorf("meter: %w", err)
		}
	}
	c, err := w.runtime.CompileModule(ctx, b)
	if err != nil {
		return nil, err
	}
	return w.runtime.InstantiateModule(ctx, c, wazero.NewModuleConfig().WithName(name).WithStartFunctions())
}

// forget what a trap left: the mirror discards an instance after one, here it is
// used again.
func (w *world) forget() {
	for _, m := range append(slices.Collect(maps.Values(w.named)), w.current) {
		if m != nil {
			m.ExportedGlobal(StackGlobal).(api.MutableGlobal).Set(0)
		}
	}
}

// do is what an action gives: values, or an error.
func (w *world) do(ctx context.Context, c command) ([]uint64, []api.ValueType, error) {
	m := w.current
	if c.Action.Module != "" {
		m = w.named[c.Action.Module]
	}
	if m == nil {
		return nil, nil, errors.New("no module")
	}
	if c.Action.Type == "get" {
		g := m.ExportedGlobal(c.Action.Field)
		return []uint64{g.Get()}, []api.ValueType{g.Type()}, nil
	}
	var args []uint64
	for _, a := range c.Action.Args {
		args = append(args, bits(a)...)
	}
	f := m.ExportedFunction(c.Action.Field)
	res, err := f.Call(ctx, args...)
	if g := m.ExportedGlobal(StackGlobal); w.metered && err == nil && g.Get() != 0 {
		err = fmt.Errorf("%d bytes of stack are left over", g.Get())
	}
	return res, f.Definition().ResultTypes(), err
}

func bits(v value) []uint64 {
	parse := func(s string) uint64 {
		if s == "null" {
			return 0
		}
		n, err := strconv.ParseUint(s, 10, 64)
		if err != nil {
			panic(err)
		}
		return n
	}
	if v.Type != "v128" {
		return []uint64{parse(v.Value.(string))}
	}
	lanes := v.Value.([]any)
	width := 128 / len(lanes)
	var out [2]uint64
	for i, l := range lanes {
		at := i * width
		out[at/64] |= parse(l.(string)) << (at % 64)
	}
	return out[:]
}

// A metered module gives the same results and traps where the original does. What
// runs out of stack does so early.
func TestMeteredModulesDoTheSame(t *testing.T) {
	var mu sync.Mutex
	total, spent := 0, 0
	t.Run("files", func(t *testing.T) {
		for _, file := range specFiles(t, "v2/testdata/*.json") {
			t.Run(strings.TrimSuffix(filepath.Base(file), ".json"), func(t *testing.T) {
				t.Parallel()
				n, s := compareFile(t, file)
				mu.Lock()
				total, spent = total+n, spent+s
				mu.Unlock()
			})
		}
	})
	t.Logf("%d actions compared, %d times out of fuel", total, spent)
	if total < 40_000 || spent < 10_000 {
		t.Errorf("%d actions compared, %d times out of fuel: there should be more", total, spent)
	}
}

func compareFile(t *testing.T, file string) (actions, spent int) {
	var test struct{ Commands []command }
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(b, &test); err != nil {
		t.Fatal(err)
	}
	ctx := context.Background()
	plain, metered := newWorld(t, ctx, false), newWorld(t, ctx, true)
	for i, c := range test.Commands {
		switch c.Type {
		case "module":
			load(t, ctx, plain, metered, filepath.Dir(file), test.Commands[i:])
		case "assert_exhaustion":
			if _, _, err := metered.do(ctx, c); !errors.Is(err, errDepth) {
				t.Errorf("line %d: %v, want an end by depth", c.Line, err)
			}
			metered.forget()
		case "assert_return", "assert_trap", "action":
			if plain.current == nil && c.Action.Module == "" {
				continue // a module with a start section
			}
			actions++
			want, types, wantErr := plain.do(ctx, c)
			got, _, err := metered.do(ctx, c)
			if (err == nil) != (wantErr == nil) || err != nil && cause(err) != cause(wantErr) {
				t.Errorf("line %d, %s: metered %v, plain %v", c.Line, c.Action.Field, err, wantErr)
			} else if !same(want, got, types) {
				t.Errorf("line %d, %s: metered %v, plain %v", c.Line, c.Action.Field, got, want)
			}
			if err != nil {
				metered.forget()
			}
		}
	}
	return actions, metered.spent
}

// cause is the first line of an error, without the trace.
func cause(err error) string {
	s, _, _ := strings.Cut(err.Error(), "\n")
	return s
}

func same(a, b []uint64, types []api.ValueType) bool {
	const funcref = 0x70
	if slices.Contains(types, funcref) { // addresses
		return slices.EqualFunc(a, b, func(x, y uint64) bool { return (x == 0) == (y == 0) })
	}
	return slices.Equal(a, b)
}

// load instantiates the module of the first command in both worlds, under the name
// that it is registered with.
func load(t *testing.T, ctx context.Context, plain, metered *world, dir string, cs []command) {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(dir, cs[0].Filename))
	if err != nil {
		t.Fatal(err)
	}
	name := ""
	for _, c := range cs[1:] {
		if c.Type == "register" && (c.Name == cs[0].Name || c.Name == "") {
			name = c.As
		}
		if c.Type == "module" && cs[0].Name == "" || c.Type == "register" {
			break
		}
	}
	plain.current, metered.current = nil, nil
	f, err := Scan(b)
	if err != nil {
		t.Errorf("%s: %v", cs[0].Filename, err)
	}
	if f.Start {
		if _, err := Meter(b, testBounds); err == nil || !strings.Contains(err.Error(), "start section") {
			t.Errorf("%s: %v, want a refusal of its start section", cs[0].Filename, err)
		}
		return
	}
	p, wantErr := plain.module(ctx, b, name)
	m, err := metered.module(ctx, b, name)
	if (err == nil) != (wantErr == nil) {
		t.Errorf("%s: metered %v, plain %v", cs[0].Filename, err, wantErr)
	}
	if err != nil || wantErr != nil {
		return
	}
	plain.current, metered.current = p, m
	if cs[0].Name != "" {
		plain.named[cs[0].Name], metered.named[cs[0].Name] = p, m
	}
}
