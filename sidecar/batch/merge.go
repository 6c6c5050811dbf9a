package batch

import (
	"errors"
	"fmt"
	"hash/crc32"
	"math"
)

// errUnfit is a batch that the caller should not have passed.
var errUnfit = errors.New("not a dense batch of records")

// Merge appends to dst one uncompressed batch with the records of bs, which must be verified, dense and uncompressed.
// Of each record only the length and the deltas of timestamp and offset are written anew; keys, values and headers are
// copied unread, though their bounds are checked. The batch has no producer: [Batch.Rewrite] gives it
// one. With room of [MergedSize] in dst nothing is allocated; dst must not overlap bs.
//
// After an error dst comes back as it was. It wraps [ErrCorrupt] when the records of a batch are broken: then each
// batch should go alone.
func Merge(dst []byte, bs []Batch) ([]byte, error) {
	w, sum := Builder{records: append(dst, emptyHeader[:]...)}, uint32(0)
	for i, b := range bs {
		if !b.Dense() || b.Control() || b.Codec() != None {
			return dst, fmt.Errorf("merge batch %d of %d: %w: %v", i, len(bs), errUnfit, b)
		}
		from := len(w.records)
		if err := w.addDense(b, b.body()); err != nil {
			return dst, fmt.Errorf("merge batch %d of %d: %w", i, len(bs), err)
		}
		sum = crc32.Update(sum, castagnoli, w.records[from:]) // while it is warm
	}
	if w.count == 0 {
		return dst, fmt.Errorf("merge: %w: nothing to merge", errUnfit)
	}
	if err := w.header(w.records[len(dst):], None, sum); err != nil {
		return dst, fmt.Errorf("merge %d batches: %w", len(bs), err)
	}
	return w.records, nil
}

// MergedSize is the most bytes that [Merge] can make of bs, which must be verified.
func MergedSize(bs []Batch) int {
	size, count := headerSize, 0
	for _, b := range bs {
		size += len(b) - headerSize
		count += int(max(b.Count(), 0))
	}
	// A record grows by at most what its three rewritten numbers can grow by, from one byte each.
	return size + count*(varintSize(int64(size))-1+varintSize(math.MinInt64)-1+varintSize(int64(count))-1)
}
