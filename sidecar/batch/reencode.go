package batch

import (
	"fmt"
	"sync"
)

// ReencodeOptions are the options of [Reencode].
type ReencodeOptions struct {
	// FetchOffset is the first source offset that is still wanted: records before it are left out.
	FetchOffset int64
	// MaxDecompressed is the most bytes that the records may take uncompressed.
	MaxDecompressed int
}

// Run is a stretch of records whose source offsets follow one another: Count records from the offset Source on.
type Run struct {
	Source int64
	Count  int32
}

// Reencode opens a verified batch, or message of magic 0 or 1, and appends a new batch of magic 2 to dst, at dense
// offsets and with the same codec. Records that bear the time of the append keep that, as the source's consumers see
// it; records of magic 0 have no time, which is -1. The new batch has no producer: [Batch.Rewrite] gives
// it one.
//
// runs tell the source offsets of the records, in order. When none is left to send, runs is empty and out is dst.
// After an error, which wraps [ErrCorrupt] or [ErrTooLarge], out is dst as well.
func Reencode(dst []byte, b Batch, o ReencodeOptions) (out []byte, runs []Run, err error) {
	t := getTools()
	defer t.put()
	if b.Control() {
		return dst, nil, fmt.Errorf("re-encode: %w: %v", errUnfit, b)
	}
	if b.legacy() {
		err = b.eachMessage(t.buf, o.MaxDecompressed, func(r Record) bool {
			if r.Offset >= o.FetchOffset {
				t.w.Add(r)
				runs = appendRun(runs, r.Offset)
			}
			return true
		})
	} else {
		runs, err = t.reencode(b, o)
	}
	if err == nil && t.w.count > 0 {
		out, err = t.w.Build(dst, b.Codec())
	} else {
		out = dst
	}
	if err != nil {
		return dst, nil, fmt.Errorf("re-encode the batch at offset %d: %w", b.BaseOffset(), err)
	}
	return out, runs, nil
}

func (t *tools) reencode(b Batch, o ReencodeOptions) (runs []Run, err error) {
	body, err := t.open(b, o.MaxDecompressed)
	if err != nil {
		return nil, err
	}
	s, err := scan(b, body)
	if err != nil {
		return nil, err
	}
	for s.left > 0 {
		r, err := s.next()
		if err != nil {
			return nil, err
		}
		if r.offset < o.FetchOffset {
			continue
		}
		t.w.addRaw(r)
		runs = appendRun(runs, r.offset)
	}
	return runs, s.end()
}

func appendRun(runs []Run, offset int64) []Run {
	if n := len(runs); n > 0 && runs[n-1].Source+int64(runs[n-1].Count) == offset {
		runs[n-1].Count++
		return runs
	}
	return append(runs, Run{Source: offset, Count: 1})
}

// Concat appends to dst one batch with the records of as many of bs, from the first on, as take at most limit bytes
// uncompressed, and tells how many those are. They must be verified and dense; each may have its own codec, and the
// new batch has that of the first. It has no producer: [Batch.Rewrite] gives it one.
//
// A batch that cannot be read ends it before that batch; only if it is the first there is an error, which wraps
// [ErrCorrupt] or [ErrTooLarge], and out is dst.
func Concat(dst []byte, bs []Batch, limit int) (out []byte, taken int, err error) {
	t := getTools()
	defer t.put()
	for _, b := range bs {
		before := t.w
		if err = t.addDense(b, limit-len(t.w.records)); err != nil {
			t.w = before
			break
		}
		taken++
	}
	if taken == 0 {
		if err == nil {
			err = fmt.Errorf("%w: nothing to concatenate", errUnfit)
		}
		return dst, 0, fmt.Errorf("concatenate %d batches: %w", len(bs), err)
	}
	if out, err = t.w.Build(dst, bs[0].Codec()); err != nil {
		return dst, 0, fmt.Errorf("concatenate %d batches: %w", taken, err)
	}
	return out, taken, nil
}

func (t *tools) addDense(b Batch, limit int) error {
	if !b.Dense() || b.Control() {
		return fmt.Errorf("%w: %v", errUnfit, b)
	}
	body, err := t.open(b, limit)
	if err != nil {
		return err
	}
	return t.w.addDense(b, body)
}

// tools are what it takes to open batches and make one: kept between calls, for their room.
type tools struct {
	buf []byte // to decompress to
	w   Builder
}

var toolbox = sync.Pool{New: func() any { return new(tools) }}

func getTools() *tools { return toolbox.Get().(*tools) }

// keptRoom is the room, in bytes, above which tools are not kept: a few giants must not stay for ever.
const keptRoom = 4 << 20

func (t *tools) put() {
	if cap(t.buf)+cap(t.w.records) > keptRoom {
		return
	}
	t.w.reset()
	toolbox.Put(t)
}

// open gives the decompressed records of b, valid until the next call.
func (t *tools) open(b Batch, limit int) ([]byte, error) {
	body, err := decompress(t.buf, b.body(), b.Codec(), limit)
	if err == nil && b.Codec() != None {
		t.buf = body[:0]
	}
	return body, err
}
