package wasm

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
)

// Names that Meter adds to a module.
const (
	// MeterModule and MeterFunc name the function () → () that a metered module
	// imports. It is called when FuelGlobal has fallen below zero, or StackGlobal is
	// above the bound. It looks at the clock, and either sets FuelGlobal for another
	// slice of work, or ends the call.
	MeterModule = "mirror_meter"
	MeterFunc   = "spent"
	// FuelGlobal is an exported global, i64: units that are left. A unit is about
	// a byte of code that is executed, or 16 bytes or elements of a bulk operation.
	FuelGlobal = "mirror_meter_fuel"
	// StackGlobal is an exported global, i32: bytes, estimated from above, that the
	// functions under way have on the engine's stack. It is zero between calls, unless
	// one ended in a trap.
	StackGlobal = "mirror_meter_stack"
)

// Bounds are what a metered module is held to.
type Bounds struct {
	Stack     uint32 // bytes of StackGlobal
	TableSize uint32 // elements of a table: no table grows beyond
	Memory    uint32 // pages of 64 KiB: no memory grows beyond
}

// ErrClash is the cause where a module has the name of something that Meter adds.
var ErrClash = errors.New("the module uses a name of the mirror's own")

// Meter returns a copy of a module that does the same and counts: on entering a
// function and at each turn of a loop the work up to the next such place is taken
// from FuelGlobal, bulk operations take as much as they work through, and nested
// calls add to StackGlobal.
//
// The module must be valid, or the result may be when the module is not. A start
// section is an error: it would run before anybody can set the fuel.
func Meter(module []byte, b Bounds) ([]byte, error) {
	secs, err := sections(module)
	if err != nil {
		return nil, err
	}
	m := meter{Bounds: b, results: map[string]uint32{}}
	for id := range order {
		if id != secStart && id != secDataCount && !slices.ContainsFunc(secs, func(s section) bool { return s.id == id }) && m.adds(id) {
			secs = append(secs, section{id: id, b: []byte{0}})
		}
	}
	slices.SortStableFunc(secs, func(a, b section) int { return place(a) - place(b) })
	out := make([]byte, 0, len(module)+len(module)/2)
	out = append(out, module[:8]...)
	for i := range secs {
		if err := m.rewrite(&secs[i]); err != nil {
			return nil, err
		}
	}
	// Types are added while code is read, so that section is finished last.
	for _, s := range secs {
		switch {
		case s.id == secType:
			s.b = m.typeSection()
		case s.id == secCustom && s.name != "name":
			continue
		case s.id == secCustom:
			s.b = append(named(nil, s.name), s.b...)
		}
		out = append(out, s.id)
		out = uleb(out, uint32(len(s.b)))
		out = append(out, s.b...)
	}
	return out, nil
}

// place sorts the custom sections behind the others.
func place(s section) int {
	if s.id == secCustom {
		return len(order) + 1
	}
	return order[s.id]
}

// meter is a Meter under way.
type meter struct {
	Bounds
	types    []byte // as they are in the section, without their number
	kinds    []Type
	added    []byte
	results  map[string]uint32 // types without parameters, by what they give
	imported uint32            // functions; the one that is added comes after them
	globals  uint32            // before those that are added
	funcs    []uint32          // types of those defined
}

// adds says that the module needs the section even if it has none.
func (m *meter) adds(id byte) bool {
	return id == secType || id == secImport || id == secGlobal || id == secExport
}

// index is what a function is called in the result.
func (m *meter) index(f uint32) uint32 {
	if f >= m.imported {
		return f + 1
	}
	return f
}

func (m *meter) rewrite(s *section) error {
	r := &reader{b: s.b}
	var out []byte
	switch s.id {
	case secType:
		m.kinds = readTypes(r)
		head := &reader{b: s.b}
		head.uint()
		m.types = s.b[head.i:]
		m.typeFor("")
		return r.err
	case secImport:
		out = m.imports(r)
	case secFunction:
		for n := r.count(); n > 0 && r.err == nil; n-- {
			m.funcs = append(m.funcs, r.uint())
		}
		return r.err
	case secTable:
		out = bounded(r, m.TableSize, "a table of %d elements, %d are the limit")
	case secMemory:
		out = bounded(r, m.Memory, "a memory of %d pages, %d are the limit")
	case secGlobal:
		out = m.globalSection(r)
	case secExport:
		out = m.exports(r)
	case secStart:
		return errors.New("the module has a start section: leave it out, and export _initialize instead")
	case secElement:
		out = m.elements(r)
	case secCode:
		out = m.code(r)
	case secCustom:
		if s.name == "name" {
			s.b = m.names(r)
		}
		return nil
	default:
		return nil
	}
	if r.err == nil && r.i != len(r.b) {
		r.fail("it goes on after its end")
	}
	if r.err != nil {
		return fmt.Errorf("section %d: %w", s.id, r.err)
	}
	s.b = out
	return nil
}

// typeFor gives the index of the type without parameters and with these results.
func (m *meter) typeFor(results string) uint32 {
	i, ok := m.results[results]
	if !ok {
		i = uint32(len(m.kinds))
		m.kinds = append(m.kinds, Type{Results: results})
		m.added = append(m.added, 0x60, 0)
		m.added = uleb(m.added, uint32(len(results)))
		m.added = append(m.added, results...)
		m.results[results] = i
	}
	return i
}

func (m *meter) typeSection() []byte {
	b := uleb(nil, uint32(len(m.kinds)))
	return append(append(b, m.types...), m.added...)
}

func (m *meter) imports(r *reader) []byte {
	n := r.count()
	start := r.i
	for i := 0; i < n && r.err == nil; i++ {
		module, name := r.name(), r.name()
		if module == MeterModule {
			r.clash(module + "." + name)
		}
		switch k := Kind(r.byte()); k {
		case Func:
			r.uint()
			m.imported++
		case Table:
			r.byte()
			r.limits()
		case Memory:
			r.limits()
		case Global:
			r.take(2)
			m.globals++
		default:
			r.fail("an import of %v", k)
		}
	}
	out := uleb(nil, uint32(n)+1)
	out = append(out, r.b[start:r.i]...)
	out = named(named(out, MeterModule), MeterFunc)
	return uleb(append(out, byte(Func)), m.typeFor(""))
}

func (r *reader) clash(name string) {
	if r.err == nil {
		r.err = fmt.Errorf("%w: %s", ErrClash, name)
	}
}

// bounded copies tables or memories with a bound where they have none, or one that
// is further than the mirror wants. (Tables have their type in front.)
func bounded(r *reader, most uint32, tooLarge string) []byte {
	n := r.count()
	out := uleb(nil, uint32(n))
	for ; n > 0 && r.err == nil; n-- {
		if r.more() && r.b[r.i] >= 0x40 {
			out = append(out, r.byte())
		}
		l := r.limits()
		if l.min > most {
			r.fail(tooLarge, l.min, most)
		}
		if !l.bounded || l.max > most {
			l.max = most
		}
		out = uleb(append(out, 1), l.min)
		out = uleb(out, l.max)
	}
	return out
}

func (m *meter) globalSection(r *reader) []byte {
	n := r.count()
	out := uleb(nil, uint32(n)+2)
	for i := 0; i < n && r.err == nil; i++ {
		out = append(out, r.take(2)...)
		out = m.expression(r, out)
		m.globals++
	}
	// Fuel begins below zero: whoever calls sets it, or is called for it at once.
	out = append(out, 0x7e, 1, opI64Const, 0x7f, opEnd)
	return append(out, 0x7f, 1, opI32Const, 0, opEnd)
}

// expression copies a constant one.
func (m *meter) expression(r *reader, out []byte) []byte {
	from := r.i
	for r.err == nil {
		o := r.instruction()
		if o.code == opRefFunc {
			out = append(out, r.b[from:o.arg]...)
			out = uleb(out, m.index(o.index))
			from = r.i
		}
		if o.code == opEnd {
			break
		}
	}
	return append(out, r.b[from:r.i]...)
}

func (m *meter) exports(r *reader) []byte {
	n := r.count()
	out := uleb(nil, uint32(n)+2)
	for ; n > 0 && r.err == nil; n-- {
		name, kind, index := r.name(), r.byte(), r.uint()
		if name == FuelGlobal || name == StackGlobal {
			r.clash(name)
		}
		if Kind(kind) == Func {
			index = m.index(index)
		}
		out = uleb(append(named(out, name), kind), index)
	}
	out = uleb(append(named(out, FuelGlobal), byte(Global)), m.globals)
	return uleb(append(named(out, StackGlobal), byte(Global)), m.globals+1)
}

func (m *meter) elements(r *reader) []byte {
	n := r.count()
	out := uleb(nil, uint32(n))
	for ; n > 0 && r.err == nil; n-- {
		e := r.element()
		out = uleb(out, e.flags)
		if e.table {
			out = uleb(out, r.uint())
		}
		if e.active {
			out = m.expression(r, out)
		}
		if e.typed {
			out = append(out, r.byte())
		}
		c := r.count()
		out = uleb(out, uint32(c))
		for ; c > 0 && r.err == nil; c-- {
			if e.exprs {
				out = m.expression(r, out)
			} else {
				out = uleb(out, m.index(r.uint()))
			}
		}
	}
	return out
}

// names keeps what the functions are called, for the traces of traps. Names that
// cannot be read are left out: nothing depends on them.
func (m *meter) names(r *reader) []byte {
	var out []byte
	for r.more() {
		id := r.byte()
		b := r.take(r.uint())
		if id != 1 {
			continue
		}
		f := &reader{b: b}
		n := f.count()
		list := uleb(nil, uint32(n))
		for ; n > 0 && f.err == nil; n-- {
			list = uleb(list, m.index(f.uint()))
			list = named(list, f.name())
		}
		if f.err == nil {
			out = append(out, id)
			out = append(uleb(out, uint32(len(list))), list...)
		}
	}
	return out
}

func uleb(b []byte, v uint32) []byte { return binary.AppendUvarint(b, uint64(v)) }

func sleb(b []byte, v int64) []byte {
	for {
		c := byte(v & 0x7f)
		v >>= 7
		if v == 0 && c&0x40 == 0 || v == -1 && c&0x40 != 0 {
			return append(b, c)
		}
		b = append(b, c|0x80)
	}
}

func named(b []byte, s string) []byte { return append(uleb(b, uint32(len(s))), s...) }

// patch writes v into the five bytes that sleb5 left for it.
func patch(b []byte, v uint32) {
	for i := range 5 {
		b[i] = byte(v>>(7*i))&0x7f | 0x80
	}
	b[4] &= 0x7f
}

var sleb5 = bytes.Repeat([]byte{0}, 5)
