package batch

import "iter"

// Record is one record. Its slices point into the batch, or into the buffer that the batch was decompressed to.
type Record struct {
	// Attributes are unused by Kafka so far, and kept.
	Attributes int8
	// Offset is the record's offset in its partition.
	Offset int64
	// Timestamp is in ms since the epoch: the record's own, or that of the append if the batch says so.
	Timestamp int64
	// Key and Value are nil for null, which is not the same as empty.
	Key, Value []byte
	Headers    Headers
}

// Headers are a record's headers as they stand in a batch: their number as a varint, then each with its key and its
// value after their lengths. Nil means none.
type Headers []byte

// All gives the headers in order. A value is nil for null.
func (h Headers) All() iter.Seq2[string, []byte] {
	return func(yield func(string, []byte) bool) {
		n, k := varint32(h)
		if k == 0 {
			return
		}
		p := h[k:]
		for range n {
			key, rest, ok := field(p)
			if !ok {
				return
			}
			value, rest, ok := field(rest)
			if !ok || !yield(string(key), value) {
				return
			}
			p = rest
		}
	}
}

// Records gives the records of a verified batch in order, decompressed into a buffer of its own of at most limit
// bytes if need be. After an error, which wraps [ErrCorrupt] or [ErrTooLarge], it ends.
func (b Batch) Records(limit int) iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) {
		if err := b.each(limit, func(r Record) bool { return yield(r, nil) }); err != nil {
			yield(Record{}, err)
		}
	}
}

// each calls f for each record until it returns false, and then returns nil.
func (b Batch) each(limit int, f func(Record) bool) error {
	if b.legacy() {
		return b.eachMessage(nil, limit, f)
	}
	body, err := decompress(nil, b.body(), b.Codec(), limit)
	if err != nil {
		return err
	}
	s, err := scan(b, body)
	if err != nil {
		return err
	}
	for s.left > 0 {
		r, err := s.next()
		if err != nil {
			return err
		}
		if !f(r.record()) {
			return nil
		}
	}
	return s.end()
}

// raw is a record that has been found and checked but not taken apart.
type raw struct {
	attributes byte
	offset     int64
	timestamp  int64
	tail       []byte // from the length of the key to the last header
}

func (r raw) record() Record {
	key, rest, _ := field(r.tail)
	value, rest, _ := field(rest)
	return Record{Attributes: int8(r.attributes), Offset: r.offset, Timestamp: r.timestamp, Key: key, Value: value, Headers: Headers(rest)}
}

// minRecord is the size of the smallest record: a length, attributes, two deltas, a null key, a null value and the
// number of headers.
const minRecord = 7

// scanner walks the records of a batch.
type scanner struct {
	rest      []byte
	left      int32
	base      int64 // offset
	timestamp int64
	append    bool  // every record has that timestamp
	prev      int32 // offset delta of the record before, -1 at first
	last      int32 // the highest offset delta
}

// scan starts at the first record of body, which is that of b, decompressed.
func scan(b Batch, body []byte) (scanner, error) {
	n := b.Count()
	if n < 0 || int64(n)*minRecord > int64(len(body)) {
		return scanner{}, corrupt("%d records in %d bytes", n, len(body))
	}
	s := scanner{rest: body, left: n, base: b.BaseOffset(), timestamp: b.BaseTimestamp(), prev: -1, last: b.LastOffsetDelta()}
	if b.LogAppendTime() {
		s.append, s.timestamp = true, b.MaxTimestamp()
	}
	return s, nil
}

// end checks that nothing follows the last record.
func (s *scanner) end() error {
	if len(s.rest) > 0 {
		return corrupt("%d bytes after the last record", len(s.rest))
	}
	return nil
}

// next finds the next of the records that are left, and checks all of it, so that a broken one does no harm later.
// Offsets must rise.
func (s *scanner) next() (raw, error) {
	size, n := varint32(s.rest)
	if n == 0 || size < minRecord-1 || int(size) > len(s.rest)-n {
		return raw{}, corrupt("length of the record after offset delta %d", s.prev)
	}
	p := s.rest[n : n+int(size)]
	time, n1 := varint64(p[1:])
	if n1 == 0 {
		return raw{}, corrupt("timestamp of the record after offset delta %d", s.prev)
	}
	delta, n2 := varint32(p[1+n1:])
	if n2 == 0 || delta <= s.prev || delta > s.last {
		return raw{}, corrupt("offset delta %d after %d", delta, s.prev)
	}
	tail := p[1+n1+n2:]
	if !checkTail(tail) {
		return raw{}, corrupt("record at offset delta %d", delta)
	}
	r := raw{attributes: p[0], offset: s.base + int64(delta), timestamp: s.timestamp, tail: tail}
	if !s.append {
		r.timestamp += time // wraps around, as a reader's sum would
	}
	s.rest, s.prev = s.rest[n+int(size):], delta
	s.left--
	return r, nil
}

// checkTail tells whether key, value and headers fill p.
func checkTail(p []byte) bool {
	p, ok := skipField(p)
	if !ok {
		return false
	}
	if p, ok = skipField(p); !ok {
		return false
	}
	n, k := varint32(p)
	if k == 0 || n < 0 {
		return false
	}
	p = p[k:]
	for range n {
		if size, k := varint32(p); k == 0 || size < 0 { // a header's key is never null
			return false
		}
		if p, ok = skipField(p); !ok {
			return false
		}
		if p, ok = skipField(p); !ok {
			return false
		}
	}
	return len(p) == 0
}

// field cuts a length and as many bytes off p; a negative length is null.
func field(p []byte) (value, rest []byte, ok bool) {
	size, n := varint32(p)
	if n == 0 || int(size) > len(p)-n {
		return nil, nil, false
	}
	if size < 0 {
		return nil, p[n:], true
	}
	end := n + int(size)
	return p[n:end:end], p[end:], true
}

func skipField(p []byte) (rest []byte, ok bool) {
	size, n := varint32(p)
	if n == 0 || int(size) > len(p)-n {
		return nil, false
	}
	return p[n+max(int(size), 0):], true
}
