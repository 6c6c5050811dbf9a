package wasm

// Instructions that Meter does something about.
const (
	opBlock     = 0x02
	opLoop      = 0x03
	opIf        = 0x04
	opEnd       = 0x0b
	opBr        = 0x0c
	opBrIf      = 0x0d
	opReturn    = 0x0f
	opCall      = 0x10
	opIndirect  = 0x11
	opLocalGet  = 0x20
	opLocalTee  = 0x22
	opGlobalGet = 0x23
	opGlobalSet = 0x24
	opGrow      = 0x40
	opI32Const  = 0x41
	opI64Const  = 0x42
	opI32GtU    = 0x4b
	opI64LtS    = 0x53
	opI32Add    = 0x6a
	opI32Sub    = 0x6b
	opI32Or     = 0x72
	opI64Sub    = 0x7d
	opI64ShrU   = 0x88
	opExtendU   = 0xad // i64.extend_i32_u
	opRefFunc   = 0xd2
	opMisc      = 0xfc
	opVector    = 0xfd
)

// op is an instruction as far as it matters.
type op struct {
	code  byte
	sub   uint32 // of opMisc and opVector
	index uint32 // of the function: opCall, opRefFunc
	arg   int    // where index begins

	branches int // places where control may go elsewhere
}

// instruction reads the next one.
func (r *reader) instruction() (o op) {
	o.code = r.byte()
	switch c := o.code; {
	case c == opBlock || c == opLoop || c == opIf:
		r.skipInt() // 33 bits: a value type, nothing, or the index of a type
		o.branches = 1
	case c == opCall || c == opRefFunc:
		o.arg = r.i
		o.index = r.uint()
	case c == opBr || c == opBrIf:
		r.uint()
		o.branches = 1
	case c >= 0x20 && c <= 0x26 || c == 0x3f || c == opGrow:
		r.uint()
	case c == 0x0e: // br_table
		o.branches = r.count() + 1
		for n := o.branches; n > 0 && r.err == nil; n-- {
			r.uint()
		}
	case c == opIndirect:
		r.uint()
		r.uint()
	case c == 0x1c: // select with types
		r.take(uint32(r.count()))
	case c >= 0x28 && c <= 0x3e: // loads and stores
		r.memarg()
	case c == opI32Const || c == opI64Const || c == 0xd0: // ref.null
		r.skipInt()
	case c == 0x43:
		r.take(4)
	case c == 0x44:
		r.take(8)
	case c == opMisc:
		o.sub = r.uint()
		switch {
		case o.sub <= 7: // saturating truncations
		case o.sub == 8 || o.sub == 10 || o.sub == 12 || o.sub == 14: // memory.init, memory.copy, table.init, table.copy
			r.uint()
			r.uint()
		case o.sub <= 17:
			r.uint()
		default:
			r.fail("an instruction 0xfc %d", o.sub)
		}
	case c == opVector:
		o.sub = r.uint()
		r.vector(o.sub)
	case c <= 0x01 || c == 0x05 || c == opEnd || c == opReturn || c == 0x1a || c == 0x1b || c >= 0x45 && c <= 0xc4 || c == 0xd1:
	default:
		r.fail("an instruction %#x", c)
	}
	return o
}

func (r *reader) memarg() {
	r.uint()
	r.uint()
}

// vector passes what belongs to an instruction of 128 bits.
func (r *reader) vector(sub uint32) {
	switch {
	case sub <= 11 || sub == 92 || sub == 93:
		r.memarg()
	case sub == 12 || sub == 13: // v128.const, i8x16.shuffle
		r.take(16)
	case sub >= 21 && sub <= 34: // a lane
		r.byte()
	case sub >= 84 && sub <= 91:
		r.memarg()
		r.byte()
	case sub > 255:
		r.fail("an instruction 0xfd %d", sub)
	}
}

// bulk says that the instruction works through as many bytes or elements as the
// number on top of the stack says.
func (o op) bulk() bool {
	if o.code != opMisc {
		return false
	}
	switch o.sub {
	case 8, 10, 11, 12, 14, 15, 17: // memory.init, .copy, .fill, table.init, .copy, .grow, .fill
		return true
	}
	return false
}
