package wasm

import (
	"slices"
)

// Work that is more than its bytes, in units.
const (
	workCall = 32   // of an imported function
	workGrow = 1024 // of memory.grow
	workBulk = 4    // log2 of the bytes or elements a unit is
)

// code rewrites the bodies of functions.
func (m *meter) code(r *reader) []byte {
	n := r.count()
	if n != len(m.funcs) {
		r.fail("%d bodies of %d functions", n, len(m.funcs))
		return nil
	}
	out := uleb(make([]byte, 0, len(r.b)*3/2), uint32(n))
	var b body
	for i := 0; i < n && r.err == nil; i++ {
		if int64(m.funcs[i]) >= int64(len(m.kinds)) {
			r.fail("there is no type %d", m.funcs[i])
			break
		}
		b.reset(m, m.kinds[m.funcs[i]], r.take(r.uint()))
		if b.rewrite(); b.r.err != nil {
			r.err = b.r.err
			break
		}
		out = uleb(out, uint32(len(b.out)))
		out = append(out, b.out...)
	}
	return out
}

// body is a function on its way.
type body struct {
	m       *meter
	kind    Type
	r       reader
	out     []byte
	open    []bool // control frames; true: a loop
	regions []region
	nested  bool   // it calls others, so it counts its depth
	temp    uint32 // local of its own, for bulk operations
	from    int    // what of r is not copied yet
}

// region is code that is charged for at one place: a function, or a loop, without
// the loops inside.
type region struct {
	at    int // in out, where the charge belongs
	units int
}

func (b *body) reset(m *meter, kind Type, code []byte) {
	*b = body{m: m, kind: kind, r: reader{b: code}, out: b.out[:0], open: b.open[:0], regions: b.regions[:0]}
}

// look finds out before anything is written what the function does.
func (b *body) look() (bulk bool) {
	ahead := b.r
	for ahead.more() {
		switch o := ahead.instruction(); {
		case o.code == opCall || o.code == opIndirect:
			b.nested = true
		case o.bulk():
			bulk = true
		}
	}
	return bulk
}

func (b *body) rewrite() {
	r := &b.r
	groups := r.count()
	start := r.i
	locals := uint64(len(b.kind.Params))
	for g := groups; g > 0 && r.err == nil; g-- {
		locals += uint64(r.uint())
		r.byte()
	}
	if locals >= 1<<32-1 {
		r.fail("%d locals", locals)
	}
	decls := r.b[start:r.i]
	bulk := b.look()
	if r.err != nil {
		return
	}
	b.temp = uint32(locals)
	if bulk {
		b.out = append(append(uleb(b.out, uint32(groups)+1), decls...), 1, 0x7f)
	} else {
		b.out = append(uleb(b.out, uint32(groups)), decls...)
	}
	// An estimate from above: a slot for each local, and no more temporary values
	// than there are bytes of code.
	frame := min(64+16*locals+uint64(len(r.b)), 1<<30)
	b.charge(int64(frame))
	if b.nested {
		b.out = append(b.out, opBlock)
		b.out = b.blockType(b.out)
	}
	b.from = r.i
	for r.err == nil && r.more() {
		b.next()
	}
	if r.err == nil && (len(b.regions) != 0 || len(b.open) != 0) {
		r.fail("a function without an end")
	}
	if r.err != nil || !b.nested {
		return
	}
	// The function's last end closes the block; here both ways out meet.
	b.out = b.depth(b.out, opI32Sub, int64(frame))
	b.out = append(b.out, opEnd)
}

// blockType is that of a block which gives what the function gives.
func (b *body) blockType(out []byte) []byte {
	switch len(b.kind.Results) {
	case 0:
		return append(out, 0x40)
	case 1:
		return append(out, b.kind.Results[0])
	}
	return sleb(out, int64(b.m.typeFor(b.kind.Results)))
}

// next copies an instruction, with what Meter adds.
func (b *body) next() {
	r := &b.r
	at := r.i
	o := r.instruction()
	if len(b.regions) == 0 {
		r.fail("code after a function's end")
		return
	}
	here := &b.regions[len(b.regions)-1]
	here.units += r.i - at
	switch {
	case o.code == opBlock || o.code == opIf:
		b.open = append(b.open, false)
	case o.code == opLoop:
		b.open = append(b.open, true)
		b.copy(r.i)
		b.charge(-1)
	case o.code == opEnd:
		b.end()
	case o.code == opReturn && b.nested:
		b.copy(at)
		b.out = uleb(append(b.out, opBr), uint32(len(b.open)))
		b.from = r.i
	case o.code == opCall || o.code == opRefFunc:
		if o.code == opCall && o.index < b.m.imported {
			here.units += workCall
		}
		b.copy(o.arg)
		b.out = uleb(b.out, b.m.index(o.index))
		b.from = r.i
	case o.code == opGrow:
		here.units += workGrow
	case o.bulk():
		b.copy(at)
		b.bulk()
	}
}

// copy takes over what has not been yet, up to there.
func (b *body) copy(to int) {
	b.out = append(b.out, b.r.b[b.from:to]...)
	b.from = to
}

func (b *body) end() {
	b.copy(b.r.i)
	if n := len(b.open); n > 0 {
		loop := b.open[n-1]
		b.open = b.open[:n-1]
		if !loop {
			return
		}
	}
	last := len(b.regions) - 1
	patch(b.out[b.regions[last].at:], uint32(b.regions[last].units))
	b.regions = slices.Delete(b.regions, last, last+1)
}

// charge begins a region, and a function with that frame unless it is negative.
func (b *body) charge(frame int64) {
	o := append(uleb(append(b.out, opGlobalGet), b.m.globals), opI64Const)
	b.regions = append(b.regions, region{at: len(o)})
	o = b.spend(append(o, sleb5...))
	if frame >= 0 && b.nested {
		o = b.depth(o, opI32Add, frame)
		o = uleb(append(o, opGlobalGet), b.m.globals+1)
		o = sleb(append(o, opI32Const), int64(int32(b.m.Stack)))
		o = append(o, opI32GtU, opI32Or)
	}
	b.out = b.refill(o)
}

// spend takes what is on top of the stack from the fuel below it, and leaves whether
// there is none any more.
func (b *body) spend(o []byte) []byte {
	o = uleb(append(o, opI64Sub, opGlobalSet), b.m.globals)
	o = uleb(append(o, opGlobalGet), b.m.globals)
	return append(o, opI64Const, 0, opI64LtS)
}

// refill calls the host if the top of the stack says so.
func (b *body) refill(o []byte) []byte {
	o = uleb(append(o, opIf, 0x40, opCall), b.m.imported)
	return append(o, opEnd)
}

// depth adds the frame to what is on the engine's stack, or takes it off.
func (b *body) depth(o []byte, opcode byte, frame int64) []byte {
	o = uleb(append(o, opGlobalGet), b.m.globals+1)
	o = sleb(append(o, opI32Const), frame)
	return uleb(append(o, opcode, opGlobalSet), b.m.globals+1)
}

// bulk charges for the number on top of the stack.
func (b *body) bulk() {
	o := uleb(append(b.out, opLocalTee), b.temp)
	o = uleb(append(o, opGlobalGet), b.m.globals)
	o = uleb(append(o, opLocalGet), b.temp)
	o = append(o, opExtendU, opI64Const, workBulk, opI64ShrU)
	b.out = b.refill(b.spend(o))
}
