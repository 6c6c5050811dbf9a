//go:build wasip1

package guest

import (
	"encoding/binary"
	"iter"
	"unsafe"
)

var le = binary.LittleEndian

// Frame is what a hook is told.
type Frame struct{ b []byte }

func frame(p unsafe.Pointer, n uint32) Frame { return Frame{unsafe.Slice((*byte)(p), n)} }

const (
	tagNow     = 1
	tagAttempt = 2
	tagLane    = 3
	tagFlow    = 4
	tagFlat    = 7
	tagBlob    = 8
)

func (f Frame) extra(tag uint16) []byte {
	for at := le.Uint32(f.b[24:]); at != 0; {
		t, n := le.Uint16(f.b[at:]), le.Uint32(f.b[at+4:])
		if t == 0 {
			break
		}
		if t == tag {
			return f.b[at+8:][:n:n]
		}
		at += 8 + (n+7)&^7
	}
	return nil
}

func (f Frame) number(tag uint16) int64 {
	switch b := f.extra(tag); len(b) {
	case 4:
		return int64(le.Uint32(b))
	case 8:
		return int64(le.Uint64(b))
	}
	return 0
}

// Now is when the call was made, in ms since 1970.
func (f Frame) Now() int64 { return f.number(tagNow) }

// Attempt is 0, and one more each time the same frame comes again.
func (f Frame) Attempt() int { return int(f.number(tagAttempt)) }

// Lane is the lane's number.
func (f Frame) Lane() int { return int(f.number(tagLane)) }

// Flow is the flow's name; in OnInit only.
func (f Frame) Flow() string { return string(f.extra(tagFlow)) }

// Blob is what the plugin before this one has saved; in OnRestore only.
func (f Frame) Blob() []byte { return f.extra(tagBlob) }

// Bytes is the frame itself.
func (f Frame) Bytes() []byte { return f.b }

// Len is how many entries it has.
func (f Frame) Len() int { return int(le.Uint32(f.b[8:])) }

// Flush says that the positions of the frame's partitions are about to be saved: what
// the plugin holds back for them it must emit now.
func (f Frame) Flush() bool { return f.b[14]&1 != 0 }

// Replay says that the entries were not copied now: nothing is to be emitted for them.
func (f Frame) Replay() bool { return f.b[14]&2 != 0 }

func (f Frame) entries(yield func(entry) bool) {
	stride, at := uint32(le.Uint16(f.b[12:])), le.Uint32(f.b[16:])
	for i := range uint32(f.Len()) {
		if !yield(entry{f.b, f.b[at+i*stride:][:stride], i}) {
			return
		}
	}
}

type entry struct {
	frame, b []byte
	index    uint32
}

func (e entry) i64(at int) int64 { return int64(le.Uint64(e.b[at:])) }
func (e entry) i32(at int) int32 { return int32(le.Uint32(e.b[at:])) }

// names keeps each text once, so that reading one again allocates nothing.
var names = map[string]string{}

func (e entry) text(at, length int) string {
	b := e.frame[le.Uint32(e.b[at:]):][:le.Uint16(e.b[length:])]
	s, ok := names[string(b)]
	if !ok {
		s = string(b)
		names[s] = s
	}
	return s
}

func (e entry) about() uint32 { return e.index }

// About is what an emit is about: a Commit, a Partition, or Nothing.
type About interface{ about() uint32 }

type nothing struct{}

func (nothing) about() uint32 { return 1<<32 - 1 }

// Nothing is for records that are about no entry.
var Nothing About = nothing{}

// Commits is a frame of OnCommit.
type Commits struct{ Frame }

// All are its entries.
func (c Commits) All() iter.Seq[Commit] {
	return func(yield func(Commit) bool) {
		c.entries(func(e entry) bool { return yield(Commit{e}) })
	}
}

// Commit is a range of source offsets and what has become of it.
type Commit struct{ entry }

// Topic is the source topic.
func (e Commit) Topic() string { return e.text(40, 44) }

// TargetTopic is the topic on the target.
func (e Commit) TargetTopic() string { return e.text(48, 46) }

// Partition is the source partition.
func (e Commit) Partition() int32 { return e.i32(52) }

// SrcFirst and SrcLast are source offsets, both included.
func (e Commit) SrcFirst() int64 { return e.i64(0) }

// SrcLast is the last of them.
func (e Commit) SrcLast() int64 { return e.i64(8) }

// DstFirst and DstLast are target offsets; -1: nothing was written.
func (e Commit) DstFirst() int64 { return e.i64(16) }

// DstLast is the last of them.
func (e Commit) DstLast() int64 { return e.i64(24) }

// MaxTimestamp is of the records, in ms; -1: unknown or none.
func (e Commit) MaxTimestamp() int64 { return e.i64(32) }

// Records is how many were written.
func (e Commit) Records() uint32 { return le.Uint32(e.b[60:]) }

// Dropped is how many were left out on purpose.
func (e Commit) Dropped() uint32 { return le.Uint32(e.b[64:]) }

// LeaderEpoch is the source's; -1: unknown.
func (e Commit) LeaderEpoch() int32 { return e.i32(68) }

// Partitions is a frame of OnPartitions or OnTick.
type Partitions struct{ Frame }

// All are its entries.
func (p Partitions) All() iter.Seq[Partition] {
	return func(yield func(Partition) bool) {
		p.entries(func(e entry) bool { return yield(Partition{e}) })
	}
}

// Event is what has happened to a partition.
type Event uint32

// Events.
const (
	None          Event = 0
	Assigned      Event = 1
	Revoked       Event = 2
	LogStartMoved Event = 3
	Recreated     Event = 4
	Truncated     Event = 5
)

// Partition is one that the lane has.
type Partition struct{ entry }

// Topic is the source topic.
func (e Partition) Topic() string { return e.text(24, 28) }

// TargetTopic is the topic on the target.
func (e Partition) TargetTopic() string { return e.text(32, 30) }

// Partition is its number.
func (e Partition) Partition() int32 { return e.i32(36) }

// Event is what has happened.
func (e Partition) Event() Event { return Event(le.Uint32(e.b[40:])) }

// LogStart is the first offset of the source's log; -1: unknown.
func (e Partition) LogStart() int64 { return e.i64(0) }

// Position is the last source offset that is safe on the target; -1: none.
func (e Partition) Position() int64 { return e.i64(8) }

// TargetEnd is the next offset of the target partition; -1: unknown.
func (e Partition) TargetEnd() int64 { return e.i64(16) }
