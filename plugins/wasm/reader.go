// Package wasm reads the binary format of WebAssembly modules as far as the
// mirror has to look into them before it compiles them: what a module imports,
// exports and how large its parts are (Scan), and a copy of it that counts its
// work and its depth as it runs (Meter). It never runs anything.
//
// The format is that of the WebAssembly core specification 2.0, chapter 5.
package wasm

import (
	"errors"
	"fmt"
)

// ErrFormat is the cause of errors over bytes that are no module, or none of
// WebAssembly 2.0.
var ErrFormat = errors.New("not a WebAssembly 2.0 module")

// Sections of a module.
const (
	secCustom    = 0
	secType      = 1
	secImport    = 2
	secFunction  = 3
	secTable     = 4
	secMemory    = 5
	secGlobal    = 6
	secExport    = 7
	secStart     = 8
	secElement   = 9
	secCode      = 10
	secData      = 11
	secDataCount = 12
)

// order in which sections stand.
var order = map[byte]int{secType: 1, secImport: 2, secFunction: 3, secTable: 4, secMemory: 5, secGlobal: 6, secExport: 7, secStart: 8,
	secElement: 9, secDataCount: 10, secCode: 11, secData: 12}

// reader reads from b. The first thing that does not fit stays its error, and
// everything after it is zero, so that callers look once.
type reader struct {
	b   []byte
	i   int
	err error
}

func (r *reader) fail(format string, args ...any) {
	if r.err == nil {
		r.err = fmt.Errorf("%w: %s", ErrFormat, fmt.Sprintf(format, args...))
	}
}

func (r *reader) more() bool { return r.err == nil && r.i < len(r.b) }

func (r *reader) byte() byte {
	if !r.more() {
		r.fail("it ends early")
		return 0
	}
	r.i++
	return r.b[r.i-1]
}

// take is the next n bytes, which are r.b's.
func (r *reader) take(n uint32) []byte {
	if r.err != nil || uint64(n) > uint64(len(r.b)-r.i) {
		r.fail("it ends early")
		return nil
	}
	r.i += int(n)
	return r.b[r.i-int(n) : r.i]
}

// uint reads an unsigned LEB128 of 32 bits.
func (r *reader) uint() (v uint32) {
	for shift := 0; ; shift += 7 {
		c := r.byte()
		if shift == 28 && c > 0x0f {
			r.fail("a number of more than 32 bits")
		}
		if r.err != nil {
			return 0
		}
		v |= uint32(c&0x7f) << shift
		if c < 0x80 {
			return v
		}
	}
}

// count reads how many things follow. Each takes a byte at least, so that a number
// that cannot be right does not cost memory.
func (r *reader) count() int {
	n := r.uint()
	if uint64(n) > uint64(len(r.b)-r.i) {
		r.fail("%d things in %d bytes", n, len(r.b)-r.i)
		return 0
	}
	return int(n)
}

// skipInt passes a signed LEB128 of up to 64 bits.
func (r *reader) skipInt() {
	for range 10 {
		if r.byte() < 0x80 {
			return
		}
	}
	r.fail("a number of more than 64 bits")
}

func (r *reader) name() string { return string(r.take(r.uint())) }

// limits are how small and how large a memory or a table is.
type limits struct {
	min, max uint32
	bounded  bool
}

func (r *reader) limits() (l limits) {
	flag := r.byte()
	l.min = r.uint()
	switch flag {
	case 0:
	case 1:
		l.max, l.bounded = r.uint(), true
	default:
		r.fail("limits of kind %#x", flag)
	}
	return l
}

// section of a module; custom ones have a name.
type section struct {
	id   byte
	name string
	b    []byte
}

// sections splits a module.
func sections(module []byte) ([]section, error) {
	if len(module) < 8 || string(module[:8]) != "\x00asm\x01\x00\x00\x00" {
		return nil, fmt.Errorf("%w: it does not begin as one", ErrFormat)
	}
	r := &reader{b: module, i: 8}
	var all []section
	last := 0
	for r.more() {
		s := section{id: r.byte()}
		s.b = r.take(r.uint())
		if s.id == secCustom {
			c := &reader{b: s.b}
			s.name = c.name()
			s.b = s.b[c.i:]
			if c.err != nil {
				return nil, c.err
			}
		} else if at := order[s.id]; at <= last {
			r.fail("section %d is unknown, out of order or there twice", s.id)
		} else {
			last = at
		}
		all = append(all, s)
	}
	return all, r.err
}
