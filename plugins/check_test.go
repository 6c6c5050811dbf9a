package plugins

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"mirror/abi"
	"mirror/plugins/wasm"
)

func TestInspect(t *testing.T) {
	m, err := Inspect(testGuest(t))
	if err != nil {
		t.Fatal(err)
	}
	if want := []abi.Hook{abi.OnInit, abi.OnPartitions, abi.OnCommit, abi.OnTick, abi.OnSave, abi.OnRestore, abi.OnClose}; !slices.Equal(m.Hooks, want) {
		t.Errorf("hooks %v, want %v", m.Hooks, want)
	}
	if !slices.Contains(m.Imports, "mirror_v1.state_next") || !slices.Contains(m.Imports, "wasi_snapshot_preview1.fd_write") || m.Has(abi.OnGroups) || !m.Has(abi.OnTick) {
		t.Errorf("%+v", m)
	}
	file, err := os.ReadFile("testdata/guest.wasm")
	if err != nil {
		t.Fatal(err)
	}
	if m.Size != len(file) || m.Digest != sha256.Sum256(file) {
		t.Errorf("size %d, digest %x", m.Size, m.Digest)
	}
}

func TestModulesThatAreRefused(t *testing.T) {
	nop := function{t: i32s(0, 0)}
	exporting := func(name string, f wasm.Type) *module {
		code := []byte{0x41, 0}
		if f.Results == "" {
			code = nil
		}
		return minimal().with(function{t: f, code: code, name: name})
	}
	importing := func(i wasm.Import) *module {
		m := minimal()
		m.imports = append(m.imports, i)
		return m
	}
	without := func(n int) *module {
		m := minimal()
		m.funcs = slices.Delete(m.funcs, n, n+1)
		return m
	}
	start := minimal().with(nop)
	start.start = true
	noMemory := minimal()
	noMemory.memory = -1
	noMemory.exports = []export{{"memory", wasm.Func, 0}}
	aGlobal := minimal()
	aGlobal.exports = []export{{"mirror_tick", wasm.Memory, 0}}
	meters := minimal()
	meters.exports = []export{{wasm.FuelGlobal, wasm.Func, 0}}
	table := minimal()
	table.table = maxTable + 1
	for _, c := range []struct {
		name, want string
		m          *module
	}{
		{"misspelt", "exports mirror_on_comit, which minor version 1 does not know: is it misspelt?", exporting("mirror_on_comit", hook)},
		{"reserved", "exports mirror_on_records, which minor version 1", exporting("mirror_on_records", hook)},
		{"hook's type", "exports mirror_tick as (i32) → i32, it should be (i32, i32) → i32", exporting("mirror_tick", i32s(1, 1))},
		{"hook is a memory", "mirror_tick is a memory, it should be a function", aGlobal},
		{"initialize", "exports _initialize as () → i32, it should be ()", exporting("_initialize", i32s(0, 1))},
		{"no version", "does not export mirror_abi_1: is it a plugin", without(0)},
		{"no alloc", "does not export mirror_alloc", without(1)},
		{"no memory", "its export memory is a function", noMemory},
		{"start", "start section", start},
		{"unknown import", "imports mirror_v1.emits, which minor version 1", importing(wasm.Import{Module: "mirror_v1", Name: "emits", Type: i32s(2, 1)})},
		{"import's type", "imports mirror_v1.emit as (i32) → i32, it is (i32, i32) → i32", importing(wasm.Import{Module: "mirror_v1", Name: "emit", Type: i32s(1, 1)})},
		{"env", "imports env.abort: there are only mirror_v1 and wasi_snapshot_preview1", importing(wasm.Import{Module: "env", Name: "abort", Type: i32s(4, 0)})},
		{"the meter", "imports mirror_meter.spent", importing(wasm.Import{Module: wasm.MeterModule, Name: wasm.MeterFunc})},
		{"the meter's global", "exports mirror_meter_fuel, which minor version 1", meters},
		{"memory import", "imports the memory mirror_v1.memory", importing(wasm.Import{Module: "mirror_v1", Name: "memory", Kind: wasm.Memory})},
		{"global import", "imports the global env.x", importing(wasm.Import{Module: "env", Name: "x", Kind: wasm.Global})},
		{"table import", "imports the table env.x", importing(wasm.Import{Module: "env", Name: "x", Kind: wasm.Table})},
		{"huge function", "bytes in a function, 262144 are the limit", minimal().with(function{code: bytes.Repeat([]byte{0x01}, maxFunctionSize)})},
		{"many locals", "it has 1001 locals in a function, 1000 are the limit", minimal().with(function{locals: 1001})},
		{"many branches", "it has 3001 branches in a function", minimal().with(function{code: bytes.Repeat([]byte{0x02, 0x40, 0x0b}, maxBranches+1)})},
		{"a large br_table", "branches in a function", minimal().with(function{code: append(num([]byte{0x41, 0, 0x0e}, maxBranches), make([]byte, maxBranches+1)...)})},
		{"branches and locals", "branches times locals in a function", minimal().with(function{locals: 900, code: bytes.Repeat([]byte{0x02, 0x40, 0x0b}, 400)})},
		{"table", "elements in a table", table},
	} {
		_, err := Inspect(c.m.binary(t))
		if err == nil || !strings.Contains(err.Error(), c.want) || !strings.HasPrefix(err.Error(), "plugin by hand: ") {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
	}
	many := minimal()
	for range maxFunctions {
		many.funcs = append(many.funcs, nop)
	}
	if _, err := Inspect(many.binary(t)); err == nil || !strings.Contains(err.Error(), "functions, 50000 are the limit") {
		t.Errorf("many functions: %v", err)
	}
	work := minimal()
	for range 1 + maxModuleWork/(400*700) {
		work.funcs = append(work.funcs, function{locals: 700, code: bytes.Repeat([]byte{0x02, 0x40, 0x0b}, 400)})
	}
	if _, err := Inspect(work.binary(t)); err == nil || !strings.Contains(err.Error(), "branches times locals in all") {
		t.Errorf("much work: %v", err)
	}
	if _, err := Inspect(minimal().binary(t)); err != nil {
		t.Errorf("the smallest plugin: %v", err)
	}
}

// What only compiling or running tells.
func TestPluginsThatAreRefused(t *testing.T) {
	version := func(v byte) *module {
		m := minimal()
		m.funcs[0].code[1] = v
		return m
	}
	large := minimal()
	large.memory = 33
	groups := func() *module {
		return minimal().with(function{t: hook, code: []byte{0x41, 0}, name: "mirror_on_groups"})
	}
	translates := Allow{Groups: true}
	small := Limits{Memory: 2 << 20}
	for _, c := range []struct {
		name, want string
		specs      []Spec
	}{
		{"invalid", "the module is not valid: ", []Spec{{Name: "p", Binary: minimal().with(function{code: []byte{0x6a}}).binary(t)}}},
		{"version 0", "built for minor version 0, there are 1 to 1", []Spec{{Name: "p", Binary: version(0).binary(t)}}},
		{"version 2", "built for minor version 2, there are 1 to 1", []Spec{{Name: "p", Binary: version(2).binary(t)}}},
		{"wasi", "is not exported in module", []Spec{{Name: "p", Binary: func() Binary {
			m := minimal()
			m.imports = []wasm.Import{{Module: wasi, Name: "fd_teleport"}}
			return m.binary(t)
		}()}}},
		{"memory", "begins with 2112 KiB of memory, limits.memory is 2048 KiB", []Spec{{Name: "p", Binary: large.binary(t), Limits: small}}},
		{"two of a name", "there are two plugins p", []Spec{{Name: "p", Binary: minimal().binary(t)}, {Name: "p", Binary: minimal().binary(t)}}},
		{"two translators", "plugins p (mirror.toml:7, by hand) and q (by hand) both export mirror_on_groups",
			[]Spec{{Name: "p", Where: "mirror.toml:7", Binary: groups().binary(t), Emit: translates}, {Name: "q", Binary: groups().binary(t), Emit: translates}}},
		{"a translator that may not", "plugin p (by hand): it exports mirror_on_groups, and the config does not let it translate: set emit.groups", []Spec{{Name: "p", Binary: groups().binary(t)}}},
		{"no name", "a plugin without a name", []Spec{{Binary: minimal().binary(t)}}},
		{"memory limit", "limits.memory is 1 bytes", []Spec{{Name: "p", Binary: minimal().binary(t), Limits: Limits{Memory: 1}}}},
		{"call limit", "limits.call is 1h0m0s", []Spec{{Name: "p", Binary: minimal().binary(t), Limits: Limits{Call: time.Hour}}}},
		{"tick", "tick is -1s", []Spec{{Name: "p", Binary: minimal().binary(t), Tick: -time.Second}}},
		{"config", `config: a: a plugin cannot be given a struct {}`, []Spec{{Name: "p", Binary: minimal().binary(t), Config: map[string]any{"a": struct{}{}}}}},
		{"large config", "it has to fit into a frame", []Spec{{Name: "p", Binary: minimal().binary(t), Config: map[string]any{"a": strings.Repeat("a", 600<<10)}}}},
	} {
		r := newRecord()
		g, err := Load(t.Context(), r.options(), c.specs)
		if err == nil {
			_, err = g.Instantiate(t.Context(), 0)
			g.Close()
		}
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
	}
	r := newRecord()
	g, err := Load(t.Context(), r.options(), []Spec{{Name: "p", Binary: groups().binary(t), Emit: translates}, {Name: "q", Binary: minimal().binary(t)}})
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	if ms := g.Modules(); len(ms) != 2 || !ms[0].Has(abi.OnGroups) {
		t.Errorf("%+v", ms)
	}
}

func TestRead(t *testing.T) {
	dir := t.TempDir()
	write := func(name string, b []byte) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	zip := func(b []byte) []byte {
		var z bytes.Buffer
		w := gzip.NewWriter(&z)
		w.Write(b)
		w.Close()
		return z.Bytes()
	}
	plain := minimal().bytes()
	zipped := zip(plain)
	pin := func(b []byte) string { return fmt.Sprintf("%x", sha256.Sum256(b)) }
	for _, path := range []string{write("p.wasm", plain), write("p.wasm.gz", zipped)} {
		file, _ := os.ReadFile(path)
		for _, pin := range []string{"", pin(file), strings.ToUpper(pin(file))} {
			b, err := Read(path, pin)
			if err != nil || !bytes.Equal(b.wasm, plain) || b.Size != len(file) || hex.EncodeToString(b.Digest[:]) != fmt.Sprintf("%x", sha256.Sum256(file)) {
				t.Errorf("%s, pinned to %q: %v", path, pin, err)
			}
			if _, err := Inspect(b); err != nil {
				t.Error(err)
			}
		}
	}
	for _, c := range []struct{ path, pin, want string }{
		{filepath.Join(dir, "none.wasm"), "", "no such file"},
		{dir, "", "read plugin"},
		{write("large.wasm", make([]byte, MaxFile+1)), "", "the file is larger than 8 MiB"},
		{write("bomb.wasm.gz", zip(make([]byte, MaxInflated+1))), "", "inflates to more than 32 MiB"},
		{write("cut.wasm.gz", zipped[:len(zipped)-9]), "", "inflate: unexpected EOF"},
		{write("p2.wasm.gz", zipped), pin(plain), "its SHA-256 is " + pin(zipped)},
	} {
		if _, err := Read(c.path, c.pin); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.path, err, c.want)
		}
	}
}

func TestConfig(t *testing.T) {
	at := time.Date(2026, 1, 31, 1, 2, 3, 0, time.UTC)
	object, flat, err := encodeConfig(map[string]any{
		"lag_max": int64(100), "on": true, "names": []any{"a", "b"}, "sample": 0.1, "large": 1e21, "since": at, "none": []any{}, "empty": map[string]any{},
		"in": map[string]any{"b": "x", "a": int64(-1)}, "each": []map[string]any{{"k": "v"}}, "text": "a \"b\"\n",
	})
	if err != nil {
		t.Fatal(err)
	}
	if want := `{"each":[{"k":"v"}],"empty":{},"in":{"a":-1,"b":"x"},"lag_max":100,"large":1e+21,"names":["a","b"],"none":[],"on":true,"sample":0.1,"since":"2026-01-31T01:02:03Z","text":"a \"b\"\n"}`; string(object) != want {
		t.Errorf("object %s\nwant %s", object, want)
	}
	want := "each.0.k\x00v\x00in.a\x00-1\x00in.b\x00x\x00lag_max\x00100\x00large\x001e+21\x00names.0\x00a\x00names.1\x00b\x00on\x00true\x00sample\x000.1\x00since\x002026-01-31T01:02:03Z\x00text\x00a \"b\"\n\x00"
	if string(flat) != want {
		t.Errorf("flat %q\nwant %q", flat, want)
	}
	if object, flat, err := encodeConfig(nil); err != nil || string(object) != "{}" || len(flat) != 0 {
		t.Errorf("no config: %s %q %v", object, flat, err)
	}
	for want, c := range map[string]map[string]any{
		"NUL":                      {"a": "x\x00y"},
		"has a NUL":                {"a\x00": "y"},
		"there twice":              {"a.b": "x", "a": map[string]any{"b": "y"}},
		"unsupported value":        {"a": []any{math.NaN()}},
		"cannot be given a <nil>":  {"a": nil},
		"cannot be given a []byte": {"a": []byte{1}},
	} {
		if _, _, err := encodeConfig(c); err == nil || !strings.Contains(strings.ReplaceAll(err.Error(), "[]uint8", "[]byte"), want) {
			t.Errorf("%v: %v, want %q", c, err, want)
		}
	}
}

// Compiled code is kept where nobody else can write, and nowhere if that is not so.
func TestCache(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "cache")
	load := func(want string) {
		t.Helper()
		r := newRecord()
		o := r.options()
		o.CacheDir = dir
		g, err := Load(t.Context(), o, []Spec{does(t, "p")})
		if err != nil {
			t.Fatal(err)
		}
		g.Close()
		if !strings.Contains(r.log(), want) || want == "" && r.log() != "" {
			t.Errorf("log %q, want %q", r.log(), want)
		}
	}
	load("")
	if s, err := os.Stat(dir); err != nil || s.Mode().Perm() != 0o700 {
		t.Errorf("%v %v", s.Mode(), err)
	}
	if files, _ := filepath.Glob(dir + "/*/*"); len(files) == 0 && !interpreted {
		t.Error("nothing is kept")
	}
	load("")
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	load("is open to others (mode 0755): make it 0700")
	dir = "/dev/null/cache"
	load("compiled plugins are not kept for the next start")
}
