package wasm

import (
	"fmt"
	"strings"
)

// Kind is what is imported or exported.
type Kind byte

// The kinds.
const (
	Func   Kind = 0
	Table  Kind = 1
	Memory Kind = 2
	Global Kind = 3
)

func (k Kind) String() string {
	switch k {
	case Func:
		return "function"
	case Table:
		return "table"
	case Memory:
		return "memory"
	case Global:
		return "global"
	}
	return fmt.Sprintf("kind %d", byte(k))
}

// Type is a function's: value types as the format's bytes.
type Type struct {
	Params, Results string
}

// I32 is the format's byte for the value type i32, I64 for i64.
const (
	I32 = "\x7f"
	I64 = "\x7e"
)

var valueNames = map[byte]string{0x7f: "i32", 0x7e: "i64", 0x7d: "f32", 0x7c: "f64", 0x7b: "v128", 0x70: "funcref", 0x6f: "externref"}

func (t Type) String() string {
	list := func(s string) string {
		var names []string
		for i := range len(s) {
			names = append(names, valueNames[s[i]])
		}
		return strings.Join(names, ", ")
	}
	if t.Results == "" {
		return fmt.Sprintf("(%s)", list(t.Params))
	}
	return fmt.Sprintf("(%s) → %s", list(t.Params), list(t.Results))
}

// Import is something that a module needs.
type Import struct {
	Module, Name string
	Kind         Kind
	Type         Type // of a function
}

// Export is something that it has to offer.
type Export struct {
	Name string
	Kind Kind
	Type Type // of a function
}

// Facts are what Scan finds.
type Facts struct {
	Imports []Import
	Exports []Export
	Start   bool // it has a start section

	Functions       int   // defined, without imports
	LargestFunction int   // bytes of code
	MostLocals      int   // of a function, with parameters
	MostBranches    int   // places of a function where control may go elsewhere
	MostWork        int64 // to compile a function: branches times locals
	Work            int64 // to compile them all

	MemoryPages int // that it begins with, 64 KiB each
	TableSize   int // elements of the largest table that it begins with
}

// Scan reads a module. It takes time and memory in proportion to its size, whatever
// the bytes are: no number in it is believed that the bytes do not bear out. (wazero
// makes room first, and a few bytes can have it ask for more memory than there is,
// which ends the process. So Scan comes first.) It does not say that the module is
// valid.
func Scan(module []byte) (Facts, error) {
	secs, err := sections(module)
	if err != nil {
		return Facts{}, err
	}
	s := scan{}
	for _, sec := range secs {
		r := &reader{b: sec.b}
		switch sec.id {
		case secType:
			s.types = readTypes(r)
		case secImport:
			s.imports(r)
		case secFunction:
			s.functions(r)
		case secTable:
			for n := r.count(); n > 0 && r.err == nil; n-- {
				r.byte()
				s.TableSize = max(s.TableSize, int(r.limits().min))
			}
		case secMemory:
			for n := r.count(); n > 0 && r.err == nil; n-- {
				s.MemoryPages += int(r.limits().min)
			}
		case secGlobal:
			for n := r.count(); n > 0 && r.err == nil; n-- {
				r.take(2)
				r.expression()
			}
		case secExport:
			s.exports(r)
		case secStart:
			s.Start = true
			r.uint()
		case secElement:
			readElements(r)
		case secDataCount:
			if n := r.uint(); int(n) > len(module) {
				r.fail("%d pieces of data", n)
			}
		case secCode:
			s.code(r)
		case secData:
			readData(r)
		case secCustom:
			continue
		}
		if r.more() {
			r.fail("it goes on after its end")
		}
		if r.err != nil {
			return Facts{}, fmt.Errorf("section %d: %w", sec.id, r.err)
		}
	}
	return s.Facts, nil
}

// scan is a Scan under way.
type scan struct {
	Facts
	types    []Type
	funcs    []uint32 // type of each function, imported ones first
	imported int      // functions
}

func readTypes(r *reader) (types []Type) {
	for n := r.count(); n > 0 && r.err == nil; n-- {
		if c := r.byte(); c != 0x60 {
			r.fail("a type of kind %#x", c)
		}
		types = append(types, Type{string(r.take(r.uint())), string(r.take(r.uint()))})
	}
	return types
}

func (s *scan) typeOf(r *reader, function uint32) Type {
	if int64(function) >= int64(len(s.funcs)) {
		r.fail("there is no function %d", function)
		return Type{}
	}
	t := s.funcs[function]
	if int64(t) >= int64(len(s.types)) {
		r.fail("there is no type %d", t)
		return Type{}
	}
	return s.types[t]
}

func (s *scan) imports(r *reader) {
	for n := r.count(); n > 0 && r.err == nil; n-- {
		i := Import{Module: r.name(), Name: r.name(), Kind: Kind(r.byte())}
		switch i.Kind {
		case Func:
			s.funcs = append(s.funcs, r.uint())
			i.Type = s.typeOf(r, uint32(len(s.funcs)-1))
			s.imported++
		case Table:
			r.byte()
			r.limits()
		case Memory:
			r.limits()
		case Global:
			r.take(2)
		default:
			r.fail("an import of %v", i.Kind)
		}
		s.Imports = append(s.Imports, i)
	}
}

func (s *scan) functions(r *reader) {
	for n := r.count(); n > 0 && r.err == nil; n-- {
		s.funcs = append(s.funcs, r.uint())
		s.Functions++
	}
}

func (s *scan) exports(r *reader) {
	for n := r.count(); n > 0 && r.err == nil; n-- {
		e := Export{Name: r.name(), Kind: Kind(r.byte())}
		index := r.uint()
		if e.Kind == Func {
			e.Type = s.typeOf(r, index)
		}
		s.Exports = append(s.Exports, e)
	}
}

func (s *scan) code(r *reader) {
	for i, n := 0, r.count(); i < n && r.err == nil; i++ {
		body := &reader{b: r.take(r.uint())}
		locals := uint64(len(s.typeOf(r, uint32(s.imported+i)).Params))
		for g := body.count(); g > 0 && body.err == nil; g-- {
			locals += uint64(body.uint())
			body.byte()
		}
		branches := 0
		for body.more() {
			branches += body.instruction().branches
		}
		if body.err != nil {
			r.err = body.err
		}
		work := int64(branches) * int64(min(locals, 1<<32))
		s.MostLocals = int(max(uint64(s.MostLocals), locals))
		s.LargestFunction = max(s.LargestFunction, len(body.b))
		s.MostBranches = max(s.MostBranches, branches)
		s.MostWork = max(s.MostWork, work)
		s.Work = min(s.Work+work, 1<<60)
	}
}

// expression passes a constant one.
func (r *reader) expression() {
	for r.err == nil && r.instruction().code != opEnd {
	}
}

// element is what a segment of elements begins with.
type element struct {
	flags  uint32
	active bool
	table  bool // it names the table
	typed  bool // it says of which kind its elements are
	exprs  bool // they are expressions, not functions
}

func (r *reader) element() element {
	f := r.uint()
	if f > 7 {
		r.fail("elements of kind %d", f)
	}
	return element{flags: f, active: f&1 == 0, table: f&1 == 0 && f&2 != 0, typed: f&3 != 0, exprs: f&4 != 0}
}

func readElements(r *reader) {
	for n := r.count(); n > 0 && r.err == nil; n-- {
		e := r.element()
		if e.table {
			r.uint()
		}
		if e.active {
			r.expression()
		}
		if e.typed {
			r.byte()
		}
		for c := r.count(); c > 0 && r.err == nil; c-- {
			if e.exprs {
				r.expression()
			} else {
				r.uint()
			}
		}
	}
}

func readData(r *reader) {
	for n := r.count(); n > 0 && r.err == nil; n-- {
		flags := r.uint()
		if flags > 2 {
			r.fail("data of kind %d", flags)
		}
		if flags == 2 {
			r.uint()
		}
		if flags != 1 {
			r.expression()
		}
		r.take(r.uint())
	}
}

// Strip leaves out the custom sections: names and whatever else tools put there.
func Strip(module []byte) ([]byte, error) {
	secs, err := sections(module)
	if err != nil {
		return nil, err
	}
	out := append(make([]byte, 0, len(module)), module[:8]...)
	for _, s := range secs {
		if s.id != secCustom {
			out = append(uleb(append(out, s.id), uint32(len(s.b))), s.b...)
		}
	}
	return out, nil
}
