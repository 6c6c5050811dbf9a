// Package resume finds out what a target already holds of what comes after a
// saved position, so that a mirror that was killed repeats nothing.
//
// Records that were stored after the last save are on the target, written by the
// producer that the position names. They are compared with the source's, one by
// one; those that are equal need not be copied again, and the producer goes on
// with the next sequence. match.go compares, log.go reads the two logs.
package resume

import (
	"bytes"
	"errors"
	"fmt"
	"iter"

	"mirror/sidecar/batch"
	"mirror/sidecar/positions"
)

// Batch is one batch of a log.
type Batch struct {
	batch.Batch
	// Aborted says that it is data of an aborted transaction, which a reader of
	// committed data does not see.
	Aborted bool
}

// Log is the batches of a partition, verified, in order. A batch is valid until
// the next one is asked for.
type Log = iter.Seq2[Batch, error]

// Options of Match.
type Options struct {
	// MaxDecompressed is how large the records of a batch may be.
	MaxDecompressed int
	// AppendTime says that the target stamps records itself, so that timestamps
	// tell nothing.
	AppendTime bool
}

// Range is a run of source offsets that is on the target already.
type Range struct {
	Source, Target int64 // first offsets
	Count          int64
}

// Found is what a target holds after a position.
type Found struct {
	// At is the position after what was found: the one given where that is
	// nothing.
	At positions.Position
	// Ranges are what was found, in order.
	Ranges []Range
	// Rest is nil when every batch of the producer was found at the source, and
	// says otherwise why one was not. What comes after it may be repeated, and
	// the producer's sequence is not known.
	Rest error
}

// ErrMismatch is wrapped by Found.Rest where the target holds something else
// than the source: that was compacted meanwhile, or what is copied has changed.
var ErrMismatch = errors.New("the target's records are not the source's")

// Match compares the target's batches of at's producer, from one after
// at.TargetOffset on, with the source's from one after at.Offset on.
func Match(source, target Log, at positions.Position, o Options) Found {
	f := Found{At: at}
	next, stop := iter.Pull2(source)
	defer stop()
	m := matcher{o: o, next: next, after: at.Offset}
	defer m.close()
	sequence := batch.NextSequence(at.Sequence, 1)
	for t, err := range target {
		if err != nil {
			f.Rest = fmt.Errorf("read the target's tail: %w", err)
			return f
		}
		if t.ProducerID() != at.ProducerID || t.ProducerEpoch() != at.ProducerEpoch || t.Control() {
			continue // somebody else's
		}
		if t.BaseSequence() != sequence {
			f.Rest = fmt.Errorf("%w: the batch at target offset %d has sequence %d, not %d: some before it are gone",
				ErrMismatch, t.BaseOffset(), t.BaseSequence(), sequence)
			return f
		}
		ranges, err := m.match(t)
		if err != nil {
			f.Rest = err
			return f
		}
		sequence = batch.NextSequence(sequence, t.Count())
		for _, r := range ranges {
			f.Ranges = appendRange(f.Ranges, r)
		}
		last := ranges[len(ranges)-1]
		f.At.Offset = last.Source + last.Count - 1
		f.At.SourceLeaderEpoch = m.epoch
		f.At.TargetOffset = t.LastOffset()
		f.At.Sequence = batch.NextSequence(sequence, -1)
	}
	return f
}

func appendRange(rs []Range, r Range) []Range {
	if n := len(rs); n > 0 {
		l := &rs[n-1]
		if l.Source+l.Count == r.Source && l.Target+l.Count == r.Target {
			l.Count += r.Count
			return rs
		}
	}
	return append(rs, r)
}

// matcher walks the source's records.
type matcher struct {
	o     Options
	next  func() (Batch, error, bool)
	after int64 // offsets up to this one are not looked at
	batch Batch // the one that the walk is in, or in front of
	epoch int32 // leader epoch of the batch of the last record given out
	// records gives those of batch, of which left have not been given out; it is
	// nil between batches.
	records func() (batch.Record, error, bool)
	stop    func()
	left    int32
}

// match finds the records of t at the source, as the next ones there.
func (m *matcher) match(t Batch) ([]Range, error) {
	if m.records == nil {
		if err := m.advance(); err != nil {
			return nil, err
		}
		if m.sameBytes(t) {
			m.epoch = m.batch.LeaderEpoch()
			r := Range{Source: m.batch.BaseOffset(), Target: t.BaseOffset(), Count: int64(t.Count())}
			m.close()
			return []Range{r}, nil
		}
	}
	var ranges []Range
	for want, err := range t.Records(m.o.MaxDecompressed) {
		if err != nil {
			return nil, fmt.Errorf("read the target's batch at offset %d: %w", t.BaseOffset(), err)
		}
		got, err := m.record()
		if err != nil {
			return nil, err
		}
		if !m.equal(got, want) {
			return nil, fmt.Errorf("%w: target offset %d, source offset %d", ErrMismatch, want.Offset, got.Offset)
		}
		ranges = appendRange(ranges, Range{Source: got.Offset, Target: want.Offset, Count: 1})
	}
	if len(ranges) == 0 {
		return nil, fmt.Errorf("%w: the batch at target offset %d is empty", ErrMismatch, t.BaseOffset())
	}
	return ranges, nil
}

// advance goes to the next batch with records that are copied, unless the walk
// is in front of one.
func (m *matcher) advance() error {
	for m.batch.Batch == nil {
		b, err, ok := m.next()
		if !ok {
			return fmt.Errorf("%w: the source has nothing more", ErrMismatch)
		}
		if err != nil {
			return fmt.Errorf("read the source after the position: %w", err)
		}
		if !b.Control() && !b.Aborted && b.Count() > 0 && b.LastOffset() > m.after {
			m.batch = b
		}
	}
	return nil
}

// sameBytes is true where the source's batch crossed raw: codec, base timestamp,
// count and records are the same bytes.
func (m *matcher) sameBytes(t Batch) bool {
	s := m.batch.Batch
	return s.BaseOffset() > m.after && s.Magic() == 2 && t.Magic() == 2 && s.Dense() && !s.LogAppendTime() && !t.LogAppendTime() &&
		s.Codec() == t.Codec() && bytes.Equal(s[27:35], t.Batch[27:35]) && bytes.Equal(s[57:], t.Batch[57:])
}

// record is the source's next one.
func (m *matcher) record() (batch.Record, error) {
	for {
		if m.records == nil {
			if err := m.advance(); err != nil {
				return batch.Record{}, err
			}
			m.records, m.stop = iter.Pull2(m.batch.Records(m.o.MaxDecompressed))
			m.left = m.batch.Count()
		}
		r, err, ok := m.records()
		if err != nil {
			return batch.Record{}, fmt.Errorf("read the source's batch at offset %d: %w", m.batch.BaseOffset(), err)
		}
		m.epoch = m.batch.LeaderEpoch()
		if m.left--; m.left <= 0 || !ok {
			defer m.close() // the next batch may be the same bytes as the target's
		}
		if ok && r.Offset > m.after {
			return r, nil
		}
	}
}

// close ends the walk through a batch.
func (m *matcher) close() {
	if m.records != nil {
		m.stop()
		m.records = nil
	}
	m.batch = Batch{}
}

func (m *matcher) equal(s, t batch.Record) bool {
	return (m.o.AppendTime || s.Timestamp == t.Timestamp) &&
		sameField(s.Key, t.Key) && sameField(s.Value, t.Value) && sameHeaders(s.Headers, t.Headers)
}

// sameField tells null from empty.
func sameField(a, b []byte) bool { return (a == nil) == (b == nil) && bytes.Equal(a, b) }

// sameHeaders takes no headers and none at all for the same.
func sameHeaders(a, b batch.Headers) bool {
	none := func(h batch.Headers) bool { return len(h) == 0 || len(h) == 1 && h[0] == 0 }
	return none(a) && none(b) || bytes.Equal(a, b)
}
