package plugins

import (
	"encoding/binary"
	"testing"

	"mirror/plugins/wasm"
)

// module is put together by hand, for what no compiler would make.
type module struct {
	types   []wasm.Type
	imports []wasm.Import
	funcs   []function
	exports []export
	memory  int // pages; -1: none
	table   int // elements, 0: none
	start   bool
}

type function struct {
	t      wasm.Type
	locals int // of type i32
	code   []byte
	name   string // exported as
}

type export struct {
	name  string
	kind  wasm.Kind
	index int
}

func i32s(params int, results int) wasm.Type {
	t := wasm.Type{}
	for range params {
		t.Params += i32
	}
	for range results {
		t.Results += i32
	}
	return t
}

// minimal is the smallest plugin: it has the hook commit, and does nothing there.
func minimal() *module {
	return &module{memory: 1, funcs: []function{
		{t: i32s(0, 1), code: []byte{0x41, 1}, name: "mirror_abi_1"},
		{t: i32s(1, 1), code: []byte{0x41, 8}, name: "mirror_alloc"},
		{t: i32s(2, 1), code: []byte{0x41, 0}, name: "mirror_on_commit"},
	}}
}

func (m *module) with(f function) *module {
	m.funcs = append(m.funcs, f)
	return m
}

func (m *module) typeIndex(t wasm.Type) int {
	for i, x := range m.types {
		if x == t {
			return i
		}
	}
	m.types = append(m.types, t)
	return len(m.types) - 1
}

func num(b []byte, v int) []byte { return binary.AppendUvarint(b, uint64(v)) }

func str(b []byte, s string) []byte { return append(num(b, len(s)), s...) }

func (m *module) bytes() []byte {
	var imports, funcs, exports, code []byte
	for _, i := range m.imports {
		imports = append(str(str(imports, i.Module), i.Name), byte(i.Kind))
		switch i.Kind {
		case wasm.Func:
			imports = num(imports, m.typeIndex(i.Type))
		case wasm.Memory:
			imports = append(imports, 0, 1)
		case wasm.Table:
			imports = append(imports, 0x70, 0, 1)
		case wasm.Global:
			imports = append(imports, 0x7f, 0)
		}
	}
	n, imported := 0, 0
	for _, i := range m.imports {
		if i.Kind == wasm.Func {
			imported++
		}
	}
	add := func(name string, kind wasm.Kind, index int) {
		exports = num(append(str(exports, name), byte(kind)), index)
		n++
	}
	if m.memory >= 0 {
		add("memory", wasm.Memory, 0)
	}
	for i, f := range m.funcs {
		funcs = num(funcs, m.typeIndex(f.t))
		var body []byte
		if f.locals > 0 {
			body = append(num([]byte{1}, f.locals), 0x7f)
		} else {
			body = []byte{0}
		}
		body = append(append(body, f.code...), 0x0b)
		code = append(num(code, len(body)), body...)
		if f.name != "" {
			add(f.name, wasm.Func, imported+i)
		}
	}
	for _, e := range m.exports {
		add(e.name, e.kind, e.index)
	}
	var types []byte
	for _, t := range m.types {
		types = str(str(append(types, 0x60), t.Params), t.Results)
	}
	b := []byte("\x00asm\x01\x00\x00\x00")
	section := func(id byte, count int, content []byte) {
		content = append(num(nil, count), content...)
		b = append(num(append(b, id), len(content)), content...)
	}
	section(1, len(m.types), types)
	section(2, len(m.imports), imports)
	section(3, len(m.funcs), funcs)
	if m.table > 0 {
		section(4, 1, num([]byte{0x70, 0}, m.table))
	}
	if m.memory >= 0 {
		section(5, 1, num([]byte{0}, m.memory))
	}
	section(7, n, exports)
	if m.start {
		b = append(b, 8, 1, byte(imported+len(m.funcs)-1))
	}
	section(10, len(m.funcs), code)
	return b
}

func (m *module) binary(t testing.TB) Binary {
	t.Helper()
	b, err := Embedded("by hand", m.bytes())
	if err != nil {
		t.Fatal(err)
	}
	return b
}
