package wasm

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
)

// assemble makes a module of sections; each is its id and its content.
func assemble(secs ...[]byte) []byte {
	b := []byte("\x00asm\x01\x00\x00\x00")
	for _, s := range secs {
		b = append(b, s[0])
		b = append(uleb(b, uint32(len(s)-1)), s[1:]...)
	}
	return b
}

func sec(id byte, content ...byte) []byte { return append([]byte{id}, content...) }

// one is a module with a memory and one exported function f, (i32) → i32.
func one(body ...byte) []byte {
	code := append([]byte{1}, uleb(nil, uint32(len(body)))...)
	return assemble(
		sec(secType, 1, 0x60, 1, 0x7f, 1, 0x7f),
		sec(secFunction, 1, 0),
		sec(secMemory, 1, 0, 1),
		sec(secExport, 1, 1, 'f', 0, 0),
		sec(secCode, append(code, body...)...),
	)
}

// units runs f(arg) of a module and counts what it was charged.
func units(t *testing.T, module []byte, arg uint64) int64 {
	t.Helper()
	ctx := context.Background()
	w := newWorld(t, ctx, true)
	m, err := w.module(ctx, module, "")
	if err != nil {
		t.Fatal(err)
	}
	const full = 1 << 40
	fuel := m.ExportedGlobal(FuelGlobal).(api.MutableGlobal)
	fuel.Set(full)
	if _, err := m.ExportedFunction("f").Call(ctx, arg); err != nil {
		t.Fatal(err)
	}
	if w.spent != 0 {
		t.Fatalf("out of fuel with %d", full)
	}
	return full - int64(fuel.Get())
}

// A unit is a byte of code that ran: what is in a loop counts once a turn, and a
// bulk operation as much as it works through.
func TestUnits(t *testing.T) {
	straight := one(0, opLocalGet, 0, opEnd)
	if n := units(t, straight, 1); n != 3 {
		t.Errorf("three bytes of code: %d units", n)
	}
	loop := one(0, opLoop, 0x40, opLocalGet, 0, opI32Const, 1, opI32Sub, opLocalTee, 0, opBrIf, 0, opEnd, opI32Const, 7, opEnd)
	inside := int64(10) // from behind the loop's head to its end
	if n := units(t, loop, 1000); n != 5+1000*inside {
		t.Errorf("1,000 turns of %d: %d units", inside, n)
	}
	// memory.fill(0, 0, n)
	fill := one(0, opI32Const, 0, opI32Const, 0, opLocalGet, 0, opMisc, 11, 0, opI32Const, 7, opEnd)
	if a, b := units(t, fill, 0), units(t, fill, 32768); a != 12 || b != a+32768/16 {
		t.Errorf("filling nothing, and 32 KiB: %d and %d units", a, b)
	}
	grow := one(0, opLocalGet, 0, opGrow, 0, opEnd)
	if n := units(t, grow, 0); n != 5+workGrow {
		t.Errorf("memory.grow: %d units", n)
	}
}

// A guest cannot use more stack than the bound: recursion without end stops there.
func TestDepth(t *testing.T) {
	ctx := context.Background()
	w := newWorld(t, ctx, true)
	m, err := w.module(ctx, one(0, opLocalGet, 0, opCall, 0, opEnd), "")
	if err != nil {
		t.Fatal(err)
	}
	m.ExportedGlobal(FuelGlobal).(api.MutableGlobal).Set(1 << 40)
	_, err = m.ExportedFunction("f").Call(ctx, 0)
	if !errors.Is(err, errDepth) {
		t.Fatalf("%v, want %v", err, errDepth)
	}
	frame := uint64(64 + 16*1 + 6)
	if s := m.ExportedGlobal(StackGlobal).Get(); s <= uint64(testBounds.Stack) || s > uint64(testBounds.Stack)+frame {
		t.Errorf("stopped at %d bytes of stack, the bound is %d", s, testBounds.Stack)
	}
}

func TestMeterRefuses(t *testing.T) {
	export := func(name string) []byte {
		return assemble(sec(secMemory, 1, 0, 1), sec(secExport, append(named([]byte{1}, name), byte(Memory), 0)...))
	}
	big := uleb([]byte{1, 0x70, 0}, testBounds.TableSize+1)
	for _, c := range []struct {
		name, want string
		module     []byte
	}{
		{"nothing", "does not begin", nil},
		{"another version", "does not begin", []byte("\x00asm\x02\x00\x00\x00")},
		{"fuel's name", ErrClash.Error(), export(FuelGlobal)},
		{"stack's name", ErrClash.Error(), export(StackGlobal)},
		{"the host's name", ErrClash.Error(), assemble(sec(secType, 1, 0x60, 0, 0),
			sec(secImport, append(named(named([]byte{1}, MeterModule), "x"), 0, 0)...))},
		{"start", "start section", assemble(sec(secType, 1, 0x60, 0, 0), sec(secFunction, 1, 0), sec(secStart, 0), sec(secCode, 1, 2, 0, opEnd))},
		{"table", "table of 1048577", assemble(sec(secTable, big...))},
		{"atomics", "instruction 0xfe", one(0, 0xfe, 3, 0, opEnd)},
		{"after the end", "after a function's end", one(0, opEnd, opEnd)},
		{"no end", "without an end", one(0, opLoop, 0x40, opEnd)},
	} {
		if _, err := Meter(c.module, testBounds); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
	}
}

// What Meter makes of a table is bounded, so that table.grow is.
func TestTablesAreBounded(t *testing.T) {
	// f(n): table.grow by n with null
	m := assemble(sec(secType, 1, 0x60, 1, 0x7f, 1, 0x7f), sec(secFunction, 1, 0), sec(secTable, 1, 0x70, 0, 1),
		sec(secExport, 1, 1, 'f', 0, 0), sec(secCode, 1, 9, 0, 0xd0, 0x70, opLocalGet, 0, opMisc, 15, 0, opEnd))
	ctx := context.Background()
	w := newWorld(t, ctx, true)
	mod, err := w.module(ctx, m, "")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ by, want uint64 }{{10, 1}, {uint64(testBounds.TableSize), 1<<32 - 1}, {uint64(testBounds.TableSize) - 11, 11}} {
		if r, err := mod.ExportedFunction("f").Call(ctx, c.by); err != nil || r[0] != c.want {
			t.Errorf("growing by %d: %d %v, want %d", c.by, r, err, c.want)
		}
	}
}

// So is what it makes of a memory.
func TestMemoriesAreBounded(t *testing.T) {
	defer func(b Bounds) { testBounds = b }(testBounds)
	testBounds.Memory = 3
	w := newWorld(t, t.Context(), true)
	mod, err := w.module(t.Context(), one(0, opLocalGet, 0, opGrow, 0, opEnd), "")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ by, want uint64 }{{1, 1}, {2, 1<<32 - 1}, {1, 2}, {1, 1<<32 - 1}} {
		if r, err := mod.ExportedFunction("f").Call(t.Context(), c.by); err != nil || r[0] != c.want {
			t.Errorf("growing by %d: %d %v, want %d", c.by, r, err, c.want)
		}
	}
	testBounds.Memory = 0
	if _, err := Meter(one(0, 0, opEnd), testBounds); err == nil || !strings.Contains(err.Error(), "memory of 1 pages") {
		t.Errorf("a memory that begins too large: %v", err)
	}
}

func TestScan(t *testing.T) {
	m := assemble(
		sec(secType, 2, 0x60, 2, 0x7f, 0x7e, 1, 0x7f, 0x60, 0, 0),
		sec(secImport, append(named(named([]byte{1}, "mirror_v1"), "emit"), 0, 0)...),
		sec(secFunction, 2, 1, 0),
		sec(secTable, 1, 0x70, 0, 9),
		sec(secMemory, 1, 0, 17),
		sec(secExport, append(named(append(named([]byte{2}, "memory"), 2, 0), "go"), 0, 2)...),
		sec(secStart, 1),
		sec(secCode, 2, 2, 0, opEnd, 6, 1, 100, 0x7f, opI32Const, 0, opEnd),
	)
	f, err := Scan(m)
	if err != nil {
		t.Fatal(err)
	}
	emit := Type{Params: I32 + I64, Results: I32}
	if len(f.Imports) != 1 || f.Imports[0] != (Import{"mirror_v1", "emit", Func, emit}) {
		t.Errorf("imports %+v", f.Imports)
	}
	if len(f.Exports) != 2 || f.Exports[0] != (Export{Name: "memory", Kind: Memory}) || f.Exports[1] != (Export{"go", Func, emit}) {
		t.Errorf("exports %+v", f.Exports)
	}
	if s := emit.String(); s != "(i32, i64) → i32" {
		t.Errorf("type %s", s)
	}
	if !f.Start || f.Functions != 2 || f.LargestFunction != 6 || f.MostLocals != 102 || f.MemoryPages != 17 || f.TableSize != 9 {
		t.Errorf("%+v", f)
	}
}

// Scan and Meter take whatever bytes there are. Of a valid module without a start
// section they make a valid one.
func FuzzMeter(f *testing.F) {
	for _, pattern := range []string{"v2/testdata/*.0.wasm", "v2/testdata/elem.*.wasm", "v2/testdata/binary.*.wasm"} {
		for _, file := range specFiles(f, pattern) {
			if b, err := os.ReadFile(file); err == nil && len(b) < 4096 {
				f.Add(b)
			}
		}
	}
	w := wazero.NewRuntimeWithConfig(context.Background(), wazero.NewRuntimeConfigInterpreter())
	f.Fuzz(func(t *testing.T, b []byte) {
		if what := meterAny(t, w, b); what != "" {
			t.Fatal(what)
		}
	})
}

// Every module that wazero is tested with, invalid and newer ones too.
func TestMeterTakesAnyModule(t *testing.T) {
	w := wazero.NewRuntimeWithConfig(t.Context(), wazero.NewRuntimeConfigInterpreter())
	defer w.Close(t.Context())
	n := 0
	for _, file := range specFiles(t, "*/testdata/*.wasm") {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		n++
		if what := meterAny(t, w, b); what != "" {
			t.Errorf("%s: %s", filepath.Base(file), what)
		}
	}
	if n < 5000 {
		t.Errorf("%d modules: there should be more", n)
	}
}

// meterAny says what is wrong with what Scan and Meter make of b.
func meterAny(t *testing.T, w wazero.Runtime, b []byte) string {
	ctx := t.Context()
	facts, unread := Scan(b)
	out, err := Meter(b, testBounds)
	if unread != nil || facts.MostLocals > 1000 {
		return "" // wazero may ask for any amount of memory
	}
	bare, bad := Strip(b)
	if bad != nil {
		return fmt.Sprintf("read, yet Strip says %v", bad)
	}
	c, invalid := w.CompileModule(ctx, bare)
	if invalid != nil {
		return ""
	}
	c.Close(ctx)
	if facts.Start || facts.TableSize > int(testBounds.TableSize) || errors.Is(err, ErrClash) {
		if err == nil {
			return "not refused"
		}
		return ""
	}
	if err != nil {
		return fmt.Sprintf("valid, yet Meter says %v", err)
	}
	m, err := w.CompileModule(ctx, out)
	if err != nil {
		return fmt.Sprintf("metered it is invalid: %v", err)
	}
	m.Close(ctx)
	return ""
}

// The names of functions are kept, with the numbers they have now.
func TestNames(t *testing.T) {
	names := append(named(nil, "name"), 1, 6, 1, 0, 3, 'f', 'u', 'n')
	m, err := Meter(append(one(0, 0x00, opEnd), assemble(sec(secCustom, names...))[8:]...), testBounds)
	if err != nil {
		t.Fatal(err)
	}
	w := newWorld(t, t.Context(), false)
	hostMeter(t, t.Context(), w.runtime, func(m api.Module) {})
	mod, err := w.module(t.Context(), m, "")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := mod.ExportedFunction("f").Call(t.Context(), 0); err == nil || !strings.Contains(err.Error(), "fun(") {
		t.Errorf("the trace does not name the function: %v", err)
	}
}

// How much a guest does between two looks at the clock is bounded, by what it really
// does: here long functions without a loop, in a loop.
func TestLooksAreNear(t *testing.T) {
	const long = 5000 // bytes of g
	g := append([]byte{0}, bytes.Repeat([]byte{0x01}, long)...)
	g = append(g, opEnd)
	f := []byte{0, opLoop, 0x40,
		opCall, 1,
		opI32Const, 0, opI32Const, 0, 0x28, 2, 0, opI32Const, 1, opI32Add, 0x36, 2, 0, // count it at address 0
		opLocalGet, 0, opI32Const, 1, opI32Sub, opLocalTee, 0, opBrIf, 0, opEnd, opI32Const, 0, opEnd}
	code := append(uleb([]byte{2}, uint32(len(f))), f...)
	code = append(uleb(code, uint32(len(g))), g...)
	m := assemble(
		sec(secType, 2, 0x60, 1, 0x7f, 1, 0x7f, 0x60, 0, 0),
		sec(secFunction, 2, 0, 1),
		sec(secMemory, 1, 0, 1),
		sec(secExport, append(named(append(named([]byte{2}, "f"), 0, 0), "memory"), 2, 0)...),
		sec(secCode, code...),
	)
	metered, err := Meter(m, testBounds)
	if err != nil {
		t.Fatal(err)
	}
	const slice = 1_000_000
	ctx := t.Context()
	w := newWorld(t, ctx, false)
	looks, last := 0, uint32(0)
	hostMeter(t, ctx, w.runtime, func(m api.Module) {
		n, _ := m.Memory().ReadUint32Le(0)
		if done := int(n-last) * long; done > slice+2*long {
			t.Errorf("%d bytes of code ran since the last look, %d are a slice", done, slice)
		}
		looks, last = looks+1, n
		m.ExportedGlobal(FuelGlobal).(api.MutableGlobal).Set(slice)
	})
	mod, err := w.module(ctx, metered, "")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := mod.ExportedFunction("f").Call(ctx, 2000); err != nil {
		t.Fatal(err)
	}
	if looks < 10 {
		t.Errorf("%d looks", looks)
	}
}
