package plugins

import (
	"fmt"
	"slices"
	"strings"

	"mirror/abi"
	"mirror/plugins/wasm"
)

// What a module may be like, so that compiling it ends: wazero's time for a function
// grows with the square of its branches, and with its locals. A Go program with fmt,
// encoding/json, regexp and text/template has at most 1,475 branches in a function,
// and 13,090 as branches times locals.
const (
	maxFunctions    = 50_000
	maxFunctionSize = 256 << 10  // bytes
	maxLocals       = 1000       // of a function
	maxBranches     = 3000       // of a function
	maxWork         = 300_000    // of a function: branches times locals
	maxModuleWork   = 20_000_000 // of all of them
	maxTable        = 1 << 20    // elements of a table
)

// wasi is the one module beside abi.Module that a guest may import from.
const wasi = "wasi_snapshot_preview1"

var (
	i32     = wasm.I32
	hook    = wasm.Type{Params: i32 + i32, Results: i32}
	imports = map[string]wasm.Type{
		"emit":          {Params: i32 + i32, Results: i32},
		"log":           {Params: i32 + i32 + i32, Results: i32},
		"fail":          {Params: i32 + i32 + i32, Results: i32},
		"state_get":     {Params: i32 + i32 + i32 + i32 + i32, Results: i32},
		"state_put":     {Params: i32 + i32 + i32 + i32 + i32, Results: i32},
		"state_next":    {Params: i32 + i32 + i32 + i32 + i32, Results: i32},
		"metric_define": {Params: i32 + i32 + i32, Results: i32},
		"metric":        {Params: i32 + i32 + wasm.I64, Results: i32},
	}
	required = map[string]wasm.Type{
		abi.ExportVersion: {Results: i32},
		abi.ExportAlloc:   {Params: i32, Results: i32},
	}
)

// Module is what can be said of a plugin without running it.
type Module struct {
	Binary
	Hooks   []abi.Hook // that it exports, in the order of their numbers
	Imports []string   // "module.name", sorted
	wasm.Facts
}

// Has says whether the plugin exports the hook.
func (m Module) Has(h abi.Hook) bool { return slices.Contains(m.Hooks, h) }

// Inspect checks a plugin's outline: that it exports and imports what the contract
// asks for and nothing that it does not know, and that it can be compiled in
// reasonable time. It does not run it, nor see to it that its code is valid.
func Inspect(b Binary) (Module, error) {
	m := Module{Binary: b}
	var err error
	if m.Facts, err = wasm.Scan(b.wasm); err == nil {
		err = m.check()
	}
	if err != nil {
		return Module{}, fmt.Errorf("plugin %s: %w", b.Path, err)
	}
	return m, nil
}

func (m *Module) check() error {
	if m.Start {
		return fmt.Errorf("it has a start section, which would run before it can be limited: export _initialize instead")
	}
	if err := m.checkSizes(); err != nil {
		return err
	}
	if err := m.checkImports(); err != nil {
		return err
	}
	return m.checkExports()
}

func (m *Module) checkSizes() error {
	for _, l := range []struct {
		what      string
		has, most int64
	}{
		{"functions", int64(m.Functions), maxFunctions},
		{"bytes in a function", int64(m.LargestFunction), maxFunctionSize},
		{"locals in a function", int64(m.MostLocals), maxLocals},
		{"branches in a function", int64(m.MostBranches), maxBranches},
		{"branches times locals in a function", m.MostWork, maxWork},
		{"branches times locals in all", m.Work, maxModuleWork},
		{"elements in a table", int64(m.TableSize), maxTable},
	} {
		if l.has > l.most {
			return fmt.Errorf("it has %d %s, %d are the limit: compiling it would take too long", l.has, l.what, l.most)
		}
	}
	return nil
}

func (m *Module) checkImports() error {
	for _, i := range m.Facts.Imports {
		name := i.Module + "." + i.Name
		if i.Kind != wasm.Func {
			return fmt.Errorf("it imports the %v %s: only functions can be", i.Kind, name)
		}
		if i.Module != abi.Module && i.Module != wasi {
			return fmt.Errorf("it imports %s: there are only %s and %s", name, abi.Module, wasi)
		}
		if want, ok := imports[i.Name]; i.Module == abi.Module && !ok {
			return fmt.Errorf("it imports %s, which minor version %d does not have", name, abi.Minor)
		} else if i.Module == abi.Module && i.Type != want {
			return fmt.Errorf("it imports %s as %v, it is %v", name, i.Type, want)
		}
		m.Imports = append(m.Imports, name)
	}
	slices.Sort(m.Imports)
	m.Imports = slices.Compact(m.Imports)
	return nil
}

func (m *Module) checkExports() error {
	found := map[string]bool{}
	for _, e := range m.Exports {
		if e.Name == abi.ExportMemory {
			if e.Kind != wasm.Memory {
				return fmt.Errorf("its export %s is a %v", e.Name, e.Kind)
			}
			found[e.Name] = true
			continue
		}
		want, ok := required[e.Name]
		if h := hookOf(e.Name); h != 0 {
			want, ok = hook, true
			m.Hooks = append(m.Hooks, h)
		}
		if e.Name == abi.ExportInitialize {
			ok = true
		}
		switch {
		case !ok && strings.HasPrefix(e.Name, abi.Prefix):
			return fmt.Errorf("it exports %s, which minor version %d does not know: is it misspelt?", e.Name, abi.Minor)
		case !ok:
			continue
		case e.Kind != wasm.Func:
			return fmt.Errorf("its export %s is a %v, it should be a function", e.Name, e.Kind)
		case e.Type != want:
			return fmt.Errorf("it exports %s as %v, it should be %v", e.Name, e.Type, want)
		}
		found[e.Name] = true
	}
	for _, name := range []string{abi.ExportMemory, abi.ExportVersion, abi.ExportAlloc} {
		if !found[name] {
			return fmt.Errorf("it does not export %s: is it a plugin for the mirror?", name)
		}
	}
	slices.Sort(m.Hooks)
	return nil
}

// hookOf is the hook that is exported under the name, 0: none.
func hookOf(name string) abi.Hook {
	for _, h := range abi.Hooks() {
		if h.Export() == name {
			return h
		}
	}
	return 0
}
