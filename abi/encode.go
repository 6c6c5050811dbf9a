package abi

import (
	"fmt"
	"math"
)

// Encoder writes frames into a buffer that it keeps. Use: Begin, entries, extras,
// Finish. It is not safe for concurrent use.
type Encoder struct {
	b     []byte
	hook  Hook
	count int
	strs  map[string]uint32
	last  [3]text // of each field, what it was before: mostly it is the same
	refs  []ref   // where the offset of a string is to be filled in
	text  []byte  // strings, until Finish
	exts  []byte
	err   error
}

type ref struct{ at, off int }

type text struct {
	s   string
	off uint32
}

// Begin starts a frame of the hook. What Finish gave before is overwritten.
func (e *Encoder) Begin(h Hook, flags uint16) {
	e.b = append(e.b[:0], make([]byte, HeaderSize)...)
	e.hook, e.count, e.err = h, 0, nil
	e.refs, e.text, e.exts = e.refs[:0], e.text[:0], e.exts[:0]
	if e.strs == nil {
		e.strs = map[string]uint32{}
	}
	clear(e.strs)
	e.last = [3]text{}
	le.PutUint32(e.b, Magic)
	le.PutUint16(e.b[4:], HeaderSize)
	le.PutUint16(e.b[6:], uint16(h))
	le.PutUint16(e.b[12:], uint16(h.Stride()))
	le.PutUint16(e.b[14:], flags)
}

// Size is about how many bytes the frame would have if it were finished now; never
// less than it would.
func (e *Encoder) Size() int { return len(e.b) + pad8(len(e.text)) + len(e.exts) + extraSize }

// entry makes room for one. The encoder's hook decides its size.
func (e *Encoder) entry() []byte {
	n := len(e.b)
	e.b = append(e.b, zeros[:e.hook.Stride()]...)
	e.count++
	return e.b[n:]
}

var zeros [PartitionSize]byte

// str has the entry's n-th text, whose fields are f, point to s; equal strings of a
// frame are one.
func (e *Encoder) str(entry []byte, n int, f textField, s string) {
	if len(s) > math.MaxUint16 {
		e.err = fmt.Errorf("a string of %d bytes in entry %d of %v: %d are the limit", len(s), e.count-1, e.hook, math.MaxUint16)
		return
	}
	if s != e.last[n].s {
		off, ok := e.strs[s]
		if !ok {
			off = uint32(len(e.text))
			e.text = append(e.text, s...)
			e.strs[s] = off
		}
		e.last[n] = text{s, off}
	}
	le.PutUint16(entry[f.size:], uint16(len(s)))
	e.refs = append(e.refs, ref{len(e.b) - len(entry) + f.at, int(e.last[n].off)})
}

// Commit adds an entry to an on_commit frame.
func (e *Encoder) Commit(c Commit) {
	b, t := e.entry(), textFields(OnCommit)
	le.PutUint64(b, uint64(c.SrcFirst))
	le.PutUint64(b[8:], uint64(c.SrcLast))
	le.PutUint64(b[16:], uint64(c.DstFirst))
	le.PutUint64(b[24:], uint64(c.DstLast))
	le.PutUint64(b[32:], uint64(c.MaxTimestamp))
	le.PutUint32(b[52:], uint32(c.Partition))
	le.PutUint32(b[56:], uint32(c.TargetPartition))
	le.PutUint32(b[60:], c.Records)
	le.PutUint32(b[64:], c.Dropped)
	le.PutUint32(b[68:], uint32(c.LeaderEpoch))
	e.str(b, 0, t[0], c.Topic)
	e.str(b, 1, t[1], c.TargetTopic)
}

// Partition adds an entry to an on_partitions or a tick frame.
func (e *Encoder) Partition(p Partition) {
	b, t := e.entry(), textFields(OnPartitions)
	le.PutUint64(b, uint64(p.LogStart))
	le.PutUint64(b[8:], uint64(p.Position))
	le.PutUint64(b[16:], uint64(p.TargetEnd))
	le.PutUint32(b[36:], uint32(p.Partition))
	le.PutUint32(b[40:], uint32(p.Event))
	copy(b[48:], p.TopicID[:])
	copy(b[64:], p.TargetTopicID[:])
	e.str(b, 0, t[0], p.Topic)
	e.str(b, 1, t[1], p.TargetTopic)
}

// Group adds an entry to an on_groups frame.
func (e *Encoder) Group(g Group) {
	b, t := e.entry(), textFields(OnGroups)
	le.PutUint64(b, uint64(g.Offset))
	le.PutUint64(b[8:], uint64(g.LogStart))
	le.PutUint64(b[16:], uint64(g.Position))
	le.PutUint64(b[24:], uint64(g.TargetEnd))
	le.PutUint32(b[44:], uint32(g.Partition))
	le.PutUint32(b[56:], uint32(g.LeaderEpoch))
	e.str(b, 0, t[0], g.Group)
	e.str(b, 1, t[1], g.Topic)
	e.str(b, 2, t[2], g.Metadata)
}

// ExtraUint adds an extra of eight bytes, or of four where the tag has four.
func (e *Encoder) ExtraUint(t Tag, v uint64) {
	switch t {
	case TagAttempt, TagLane, TagHost:
		e.exts = le.AppendUint32(e.extra(t, 4), uint32(v))
	default:
		e.exts = le.AppendUint64(e.extra(t, 8), v)
	}
	e.exts = append(e.exts, zeros[:pad8(len(e.exts))-len(e.exts)]...)
}

// Extra adds an extra of bytes, or of text.
func (e *Encoder) Extra(t Tag, b []byte) {
	e.exts = append(e.extra(t, len(b)), b...)
	e.exts = append(e.exts, zeros[:pad8(len(e.exts))-len(e.exts)]...)
}

func (e *Encoder) extra(t Tag, n int) []byte {
	x := le.AppendUint16(e.exts, uint16(t))
	x = le.AppendUint16(x, 0)
	return le.AppendUint32(x, uint32(n))
}

// Finish gives the frame, valid until the next Begin. It fails when the frame is
// larger than MaxFrame or has more than MaxEntries, or a string is too long.
func (e *Encoder) Finish() ([]byte, error) {
	if e.err != nil {
		return nil, e.err
	}
	if e.count > MaxEntries {
		return nil, fmt.Errorf("%d entries in a frame of %v: %d are the limit", e.count, e.hook, MaxEntries)
	}
	blobs := len(e.b)
	for _, r := range e.refs {
		le.PutUint32(e.b[r.at:], uint32(blobs+r.off))
	}
	e.b = append(e.b, e.text...)
	e.b = append(e.b, zeros[:pad8(len(e.b))-len(e.b)]...)
	le.PutUint32(e.b[8:], uint32(e.count))
	le.PutUint32(e.b[16:], HeaderSize)
	le.PutUint32(e.b[20:], uint32(blobs))
	if len(e.exts) > 0 {
		le.PutUint32(e.b[24:], uint32(len(e.b)))
		e.b = append(append(e.b, e.exts...), zeros[:extraSize]...)
	}
	if len(e.b) > MaxFrame {
		return nil, fmt.Errorf("a frame of %v with %d bytes: %d are the limit", e.hook, len(e.b), MaxFrame)
	}
	le.PutUint32(e.b[28:], uint32(len(e.b)))
	return e.b, nil
}
