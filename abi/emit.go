package abi

import (
	"errors"
	"fmt"
	"math"
	"unicode/utf8"
)

// EmitKind is what an emit is.
type EmitKind uint16

// The kinds of minor 1.
const (
	EmitOffsetSync  EmitKind = 1
	EmitRecord      EmitKind = 2
	EmitTranslation EmitKind = 3
	EmitSave        EmitKind = 4
	EmitSchema      EmitKind = 5
)

func (k EmitKind) String() string {
	switch k {
	case EmitOffsetSync:
		return "offset sync"
	case EmitRecord:
		return "record"
	case EmitTranslation:
		return "translation"
	case EmitSave:
		return "save"
	case EmitSchema:
		return "schema"
	}
	return fmt.Sprintf("emit of kind %d", uint16(k))
}

// NoEntry is the entry of an emit that is about none.
const NoEntry uint32 = math.MaxUint32

// Outcome is how good a translated offset is.
type Outcome uint16

// The outcomes.
const (
	NoOffset Outcome = 0 // there is none; the reason says why
	Exact    Outcome = 1 // a consumer that begins there misses nothing and repeats nothing
	Bound    Outcome = 2 // it misses nothing, and may repeat some
)

// Reason is why a translation is not exact.
type Reason uint16

// The reasons.
const (
	NoReason    Reason = 0
	BeforeFirst Reason = 1 // before the first offset that the plugin knows
	Ahead       Reason = 2 // beyond what has been copied
	InUnknown   Reason = 3 // in a span that no entry covered
	Thinned     Reason = 4 // known once, given up for room
	NotKnown    Reason = 5 // nothing is known of the partition
)

// Run is records that follow each other without a gap on both sides: the n-th source
// offset from First on is the n-th target offset from Target on. The zero Run is none.
type Run struct {
	First   int64 // source offset
	Target  int64 // target offset
	Records int64
}

// Last is the source offset of the last record.
func (r Run) Last() int64 { return r.First + r.Records - 1 }

// End is the target offset behind the last record.
func (r Run) End() int64 { return r.Target + r.Records }

// Record is a record that a plugin wants produced.
type Record struct {
	Topic     string
	Partition int32 // -1: by the key, or any
	Timestamp int64 // ms; -1: now
	Key       []byte
	Value     []byte // nil, unlike empty, is null; so is Key
	Headers   []Header
}

// Header is one of a record's.
type Header struct {
	Key   string
	Value []byte // nil is null
}

// Emit is one thing that a guest emitted. Which fields have a meaning depends on
// the kind.
type Emit struct {
	Kind  EmitKind
	Entry uint32 // index of the frame's entry that it is about, or NoEntry

	Upstream, Downstream int64 // offset sync

	Record Record // record

	Offset  int64 // translation; -1 with NoOffset
	Outcome Outcome
	Reason  Reason
	Run     Run // that it goes by

	Data []byte // save, schema
}

// Sizes of the fixed parts, in bytes.
const (
	emitHead        = 8
	offsetSyncSize  = emitHead + 16
	recordSize      = emitHead + 24
	translationSize = emitHead + 16
	runSize         = 24 // may follow
	headerHead      = 8
)

// ErrEmit is the cause of every error of ParseEmit.
var ErrEmit = errors.New("not an emit")

func emitError(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrEmit, fmt.Sprintf(format, args...))
}

// KindOf is the kind that an emit begins with; 0, which is none, if it is too short.
func KindOf(b []byte) EmitKind {
	if len(b) < emitHead {
		return 0
	}
	return EmitKind(le.Uint16(b))
}

// ParseEmit reads an emit; byte slices of the result share b. An unknown kind is an
// error too.
func ParseEmit(b []byte) (Emit, error) {
	if len(b) < emitHead {
		return Emit{}, emitError("%d bytes", len(b))
	}
	e := Emit{Kind: KindOf(b), Entry: le.Uint32(b[4:])}
	if r := le.Uint16(b[2:]); r != 0 {
		return Emit{}, emitError("%#x where 0 belongs", r)
	}
	rest := b[emitHead:]
	size := func(want int) error {
		if len(b) != want {
			return emitError("%v of %d bytes, want %d", e.Kind, len(b), want)
		}
		return nil
	}
	switch e.Kind {
	case EmitOffsetSync:
		if err := size(offsetSyncSize); err != nil {
			return Emit{}, err
		}
		e.Upstream, e.Downstream = i64(rest, 0), i64(rest, 8)
		if e.Upstream < 0 || e.Downstream < 0 {
			return Emit{}, emitError("offset sync %d to %d", e.Upstream, e.Downstream)
		}
	case EmitRecord:
		return e, e.parseRecord(b)
	case EmitTranslation:
		if err := e.parseTranslation(b); err != nil {
			return Emit{}, err
		}
	case EmitSave:
		if len(rest) > MaxSave {
			return Emit{}, emitError("save of %d bytes, %d are the limit", len(rest), MaxSave)
		}
		e.Data = rest
	case EmitSchema:
		if len(rest) == 0 || len(rest) > MaxSchema {
			return Emit{}, emitError("schema of %d bytes, it has 1 to %d", len(rest), MaxSchema)
		}
		for _, c := range rest {
			if c <= ' ' || c > '~' {
				return Emit{}, emitError("schema with byte %#x: printable ASCII without spaces only", c)
			}
		}
		e.Data = rest
	default:
		return Emit{}, emitError("kind %d is not known", e.Kind)
	}
	return e, nil
}

// parseTranslation reads the rest of a translation. Whether its run is true only the
// guest knows; but an exact answer is where a record of it is, or behind its last one.
func (e *Emit) parseTranslation(b []byte) error {
	if len(b) != translationSize && len(b) != translationSize+runSize {
		return emitError("%v of %d bytes, want %d, or %d with a run", e.Kind, len(b), translationSize, translationSize+runSize)
	}
	e.Offset, e.Outcome, e.Reason = i64(b, 8), Outcome(le.Uint16(b[16:])), Reason(le.Uint16(b[18:]))
	if e.Outcome > Bound || (e.Outcome == NoOffset) != (e.Offset == -1) || e.Offset < -1 || le.Uint32(b[20:]) != 0 {
		return emitError("translation to %d, outcome %d", e.Offset, e.Outcome)
	}
	if len(b) == translationSize {
		return nil
	}
	first, last, target := i64(b, 24), i64(b, 32), i64(b, 40)
	e.Run = Run{First: first, Target: target, Records: last - first + 1}
	switch {
	case first < 0 || last < first || target < 0 || e.Run.Records < 0 || e.Run.End() < 0:
		return emitError("translation by a run from %d to %d at %d", first, last, target)
	case e.Outcome == NoOffset:
		return emitError("translation to none, by the run from %d to %d at %d", first, last, target)
	case e.Outcome == Exact && (e.Offset < target || e.Offset > e.Run.End()):
		return emitError("translation to exactly %d, by the run from %d to %d at %d", e.Offset, first, last, target)
	}
	return nil
}

// parseRecord reads the rest of a record. The sizes are checked as a whole first, so
// that headers cost no more memory than bytes were sent.
func (e *Emit) parseRecord(b []byte) error {
	if len(b) < recordSize {
		return emitError("record of %d bytes", len(b))
	}
	r := &e.Record
	r.Partition, r.Timestamp = i32(b, 8), i64(b, 16)
	topic, headers := int(le.Uint16(b[12:])), int(le.Uint16(b[14:]))
	if r.Partition < -1 || r.Timestamp < -1 {
		return emitError("record for partition %d at %d", r.Partition, r.Timestamp)
	}
	c := cut{b: b[recordSize:]}
	t := c.take(int64(topic))
	r.Key = c.nullable(i32(b, 24))
	r.Value = c.nullable(i32(b, 28))
	if !c.bad && headers > len(c.b)/headerHead {
		return emitError("%d headers in %d bytes", headers, len(c.b))
	}
	if headers > 0 && !c.bad {
		r.Headers = make([]Header, 0, headers)
	}
	for range headers {
		h := c.take(headerHead)
		if c.bad {
			break
		}
		if le.Uint16(h[2:]) != 0 {
			return emitError("%#x where 0 belongs", le.Uint16(h[2:]))
		}
		k := c.take(int64(le.Uint16(h)))
		v := c.nullable(i32(h, 4))
		if !utf8.Valid(k) {
			return emitError("a header's key is not UTF-8")
		}
		r.Headers = append(r.Headers, Header{string(k), v})
	}
	if c.bad || len(c.b) != 0 {
		return emitError("record of %d bytes: its parts have other sizes", len(b))
	}
	r.Topic = string(t)
	return nil
}

// cut takes pieces off the front of b until one is longer than that.
type cut struct {
	b   []byte
	bad bool
}

func (c *cut) take(n int64) []byte {
	if c.bad || n < 0 || n > int64(len(c.b)) {
		c.bad = true
		return nil
	}
	p := c.b[:n:n]
	c.b = c.b[n:]
	return p
}

// nullable is take, with -1 for null.
func (c *cut) nullable(n int32) []byte {
	if n == -1 {
		return nil
	}
	return c.take(int64(n))
}

// AppendEmit adds e to b as a guest would pass it. What does not fit its fields is
// cut off: it is for guests and tests, which know what they emit.
func AppendEmit(b []byte, e Emit) []byte {
	b = le.AppendUint16(b, uint16(e.Kind))
	b = le.AppendUint16(b, 0)
	b = le.AppendUint32(b, e.Entry)
	switch e.Kind {
	case EmitOffsetSync:
		b = le.AppendUint64(b, uint64(e.Upstream))
		return le.AppendUint64(b, uint64(e.Downstream))
	case EmitRecord:
		return appendRecord(b, e.Record)
	case EmitTranslation:
		b = le.AppendUint64(b, uint64(e.Offset))
		b = le.AppendUint16(b, uint16(e.Outcome))
		b = le.AppendUint16(b, uint16(e.Reason))
		b = le.AppendUint32(b, 0)
		if e.Run.Records == 0 {
			return b
		}
		b = le.AppendUint64(b, uint64(e.Run.First))
		b = le.AppendUint64(b, uint64(e.Run.Last()))
		return le.AppendUint64(b, uint64(e.Run.Target))
	}
	return append(b, e.Data...)
}

func appendRecord(b []byte, r Record) []byte {
	b = le.AppendUint32(b, uint32(r.Partition))
	b = le.AppendUint16(b, uint16(len(r.Topic)))
	b = le.AppendUint16(b, uint16(len(r.Headers)))
	b = le.AppendUint64(b, uint64(r.Timestamp))
	b = le.AppendUint32(b, nullableLen(r.Key))
	b = le.AppendUint32(b, nullableLen(r.Value))
	b = append(append(append(b, r.Topic...), r.Key...), r.Value...)
	for _, h := range r.Headers {
		b = le.AppendUint16(b, uint16(len(h.Key)))
		b = le.AppendUint16(b, 0)
		b = le.AppendUint32(b, nullableLen(h.Value))
		b = append(append(b, h.Key...), h.Value...)
	}
	return b
}

func nullableLen(b []byte) uint32 {
	if b == nil {
		return math.MaxUint32
	}
	return uint32(len(b))
}
