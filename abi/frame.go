package abi

import (
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
)

// Sizes of what minor 1 writes, in bytes. A reader goes by what the frame says.
const (
	HeaderSize    = 32
	CommitSize    = 72
	PartitionSize = 80
	GroupSize     = 72

	extraSize = 8 // of an extra's head
)

// Magic begins every frame: the bytes "MIR1".
const Magic uint32 = 'M' | 'I'<<8 | 'R'<<16 | '1'<<24

// Tag names an extra.
type Tag uint16

// The extras of minor 1.
const (
	TagNow        Tag = 1  // i64: when the call was made, ms since 1970
	TagAttempt    Tag = 2  // u32: 0, and one more each time the same frame comes again
	TagLane       Tag = 3  // u32
	TagFlow       Tag = 4  // text: the flow's name
	TagGeneration Tag = 5  // u64: which set of plugins, rising
	TagConfig     Tag = 6  // text: the plugin's config, a JSON object
	TagFlat       Tag = 7  // text: the same as sorted key NUL value NUL
	TagBlob       Tag = 8  // bytes: what save emitted
	TagPlugin     Tag = 9  // text: the plugin's name in the config
	TagHost       Tag = 10 // u32: the host's minor version
	TagFrom       Tag = 11 // text: alias of the source cluster
	TagTo         Tag = 12 // text: alias of the target cluster
)

var le = binary.LittleEndian

// Frame is a view of an encoded frame; it shares the bytes.
type Frame struct {
	b []byte
}

// ErrFrame is the cause of every error of ParseFrame.
var ErrFrame = errors.New("not a frame")

func frameError(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrFrame, fmt.Sprintf(format, args...))
}

// ParseFrame checks that b is a frame of which every part lies inside: header, entries, the
// strings of its entries, extras. It accepts what a newer host may write: a longer header,
// longer entries, extras and flags without a meaning.
func ParseFrame(b []byte) (Frame, error) {
	f := Frame{b}
	if len(b) < HeaderSize || len(b) > MaxFrame {
		return Frame{}, frameError("%d bytes, a frame has %d to %d", len(b), HeaderSize, MaxFrame)
	}
	if m := le.Uint32(b); m != Magic {
		return Frame{}, frameError("magic %#x, want %#x", m, Magic)
	}
	if n := le.Uint32(b[28:]); uint64(n) != uint64(len(b)) {
		return Frame{}, frameError("it says that it has %d bytes and has %d", n, len(b))
	}
	head := int(le.Uint16(b[4:]))
	if head < HeaderSize || head > len(b) || head%8 != 0 {
		return Frame{}, frameError("a header of %d bytes", head)
	}
	if f.Count() > MaxEntries {
		return Frame{}, frameError("%d entries, %d are the limit", f.Count(), MaxEntries)
	}
	if f.Count() > 0 {
		if err := f.checkEntries(head); err != nil {
			return Frame{}, err
		}
	}
	return f, f.checkExtras(head)
}

func (f Frame) checkEntries(head int) error {
	least := f.Hook().Stride()
	if least == 0 {
		return frameError("%v has no entries, here are %d", f.Hook(), f.Count())
	}
	at, stride := uint64(le.Uint32(f.b[16:])), uint64(le.Uint16(f.b[12:]))
	if stride < uint64(least) || stride%8 != 0 {
		return frameError("entries of %d bytes, those of %v have at least %d", stride, f.Hook(), least)
	}
	if at < uint64(head) || at%8 != 0 || at+stride*uint64(f.Count()) > uint64(len(f.b)) {
		return frameError("%d entries of %d bytes at %d do not lie inside", f.Count(), stride, at)
	}
	for i := range f.Count() {
		e := f.entry(i)
		for _, r := range textFields(f.Hook()) {
			from, n := uint64(le.Uint32(e[r.at:])), uint64(le.Uint16(e[r.size:]))
			if n > 0 && (from < uint64(head) || from+n > uint64(len(f.b))) {
				return frameError("entry %d has %d bytes of text at %d, outside", i, n, from)
			}
		}
	}
	return nil
}

// textField is where an entry has the offset and the length of a string.
type textField struct{ at, size int }

func textFields(h Hook) []textField {
	switch h {
	case OnCommit:
		return []textField{{40, 44}, {48, 46}}
	case OnPartitions, OnTick:
		return []textField{{24, 28}, {32, 30}}
	case OnGroups:
		return []textField{{32, 36}, {40, 38}, {48, 52}}
	}
	return nil
}

func (f Frame) checkExtras(head int) error {
	at := int64(le.Uint32(f.b[24:]))
	if at == 0 {
		return nil
	}
	for {
		if at < int64(head) || at%8 != 0 || at+extraSize > int64(len(f.b)) {
			return frameError("an extra at %d", at)
		}
		tag, n := Tag(le.Uint16(f.b[at:])), int64(le.Uint32(f.b[at+4:]))
		if tag == 0 {
			return nil
		}
		if at+extraSize+n > int64(len(f.b)) {
			return frameError("extra %d at %d has %d bytes, more than there are", tag, at, n)
		}
		at += extraSize + pad8(n)
	}
}

func pad8[T int | int64](n T) T { return (n + 7) &^ 7 }

// Hook is what the frame is for.
func (f Frame) Hook() Hook { return Hook(le.Uint16(f.b[6:])) }

// Count is how many entries it has.
func (f Frame) Count() int { return int(le.Uint32(f.b[8:])) }

// Stride is how far apart entries are, in bytes.
func (f Frame) Stride() int { return int(le.Uint16(f.b[12:])) }

// Flags are Flush, Replay, and what newer hosts add.
func (f Frame) Flags() uint16 { return le.Uint16(f.b[14:]) }

// Bytes is the frame as it was parsed.
func (f Frame) Bytes() []byte { return f.b }

func (f Frame) entry(i int) []byte {
	at, stride := int(le.Uint32(f.b[16:])), f.Stride()
	return f.b[at+i*stride:][:stride]
}

func (f Frame) text(e []byte, r textField) string {
	n := int(le.Uint16(e[r.size:]))
	if n == 0 {
		return ""
	}
	return string(f.b[le.Uint32(e[r.at:]):][:n])
}

// Extras are the tagged extras, those without a meaning too. The bytes are the
// frame's.
func (f Frame) Extras() iter.Seq2[Tag, []byte] {
	return func(yield func(Tag, []byte) bool) {
		at := int(le.Uint32(f.b[24:]))
		for at != 0 {
			tag, n := Tag(le.Uint16(f.b[at:])), int(le.Uint32(f.b[at+4:]))
			if tag == 0 || !yield(tag, f.b[at+extraSize:][:n:n]) {
				return
			}
			at += extraSize + pad8(n)
		}
	}
}

// Extra is the first extra of that tag.
func (f Frame) Extra(t Tag) ([]byte, bool) {
	for tag, b := range f.Extras() {
		if tag == t {
			return b, true
		}
	}
	return nil, false
}
