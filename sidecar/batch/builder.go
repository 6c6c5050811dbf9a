package batch

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"math"
)

// Builder makes a batch of magic 2, record by record, at offsets from 0 on without holes. The zero value is ready.
type Builder struct {
	records   []byte
	count     int32
	timestamp int64 // base
	max       int64 // timestamp
}

var emptyHeader [headerSize]byte

// Add appends a record, at the next offset instead of its own. It copies what r points to.
func (w *Builder) Add(r Record) {
	w.head(byte(r.Attributes), r.Timestamp, fieldSize(r.Key)+fieldSize(r.Value)+max(len(r.Headers), 1))
	w.records = appendField(w.records, r.Key)
	w.records = appendField(w.records, r.Value)
	if len(r.Headers) == 0 {
		w.records = append(w.records, 0)
	}
	w.records = append(w.records, r.Headers...)
}

// Len is the number of records so far.
func (w *Builder) Len() int { return int(w.count) }

// Build appends the batch to dst, compressed with c, and makes the Builder ready for the next. The batch has no
// producer: [Batch.Rewrite] gives it one. After an error, [ErrTooLarge] if the batch would not fit
// into its length field, dst comes back as it was.
func (w *Builder) Build(dst []byte, c Codec) ([]byte, error) {
	defer w.reset()
	out, err := compress(append(dst, emptyHeader[:]...), w.records, c)
	if err == nil {
		b := out[len(dst):]
		err = w.header(b, c, crc32.Checksum(b[headerSize:], castagnoli))
	}
	if err != nil {
		return dst, err
	}
	return out, nil
}

// reset forgets the records and keeps the room.
func (w *Builder) reset() { *w = Builder{records: w.records[:0]} }

// header fills the header of b, which is complete otherwise; sum is the CRC of what comes after it.
func (w *Builder) header(b Batch, c Codec, sum uint32) error {
	if len(b) > math.MaxInt32 {
		return fmt.Errorf("%w: %d bytes", ErrTooLarge, len(b))
	}
	clear(b[:headerSize])
	binary.BigEndian.PutUint32(b[lengthAt:], uint32(len(b)-prefixSize))
	binary.BigEndian.PutUint32(b[leaderEpochAt:], ^uint32(0))
	b[magicAt] = 2
	binary.BigEndian.PutUint16(b[attributesAt:], uint16(c))
	binary.BigEndian.PutUint32(b[lastOffsetDeltaAt:], uint32(max(w.count-1, 0)))
	binary.BigEndian.PutUint64(b[baseTimestampAt:], uint64(w.timestamp))
	binary.BigEndian.PutUint64(b[maxTimestampAt:], uint64(w.max))
	binary.BigEndian.PutUint64(b[producerIDAt:], ^uint64(0))
	binary.BigEndian.PutUint16(b[producerEpochAt:], ^uint16(0))
	binary.BigEndian.PutUint32(b[baseSequenceAt:], ^uint32(0))
	binary.BigEndian.PutUint32(b[countAt:], uint32(w.count))
	b.seal(sum)
	return nil
}

// head begins a record; its tail, of the given size, comes next.
func (w *Builder) head(attributes byte, timestamp int64, tail int) {
	if w.count == 0 {
		w.timestamp, w.max = timestamp, timestamp
	}
	w.max = max(w.max, timestamp)
	time, offset := timestamp-w.timestamp, int64(w.count) // wraps around, as a reader's sum will
	w.records = binary.AppendVarint(w.records, int64(1+varintSize(time)+varintSize(offset)+tail))
	w.records = append(w.records, attributes)
	w.records = binary.AppendVarint(w.records, time)
	w.records = binary.AppendVarint(w.records, offset)
	w.count++
}

// addRaw appends a record of another batch.
func (w *Builder) addRaw(r raw) {
	w.head(r.attributes, r.timestamp, len(r.tail))
	w.records = append(w.records, r.tail...)
}

// addDense appends all records of a dense batch, whose decompressed records are body. The first batch's are copied as
// they stand, if their timestamps may stay.
func (w *Builder) addDense(b Batch, body []byte) error {
	s, err := scan(b, body)
	if err != nil {
		return err
	}
	if w.count > 0 || b.LogAppendTime() {
		for s.left > 0 {
			r, err := s.next()
			if err != nil {
				return err
			}
			w.addRaw(r)
		}
		return s.end()
	}
	w.timestamp, w.max = b.BaseTimestamp(), math.MinInt64
	for s.left > 0 {
		r, err := s.next()
		if err != nil {
			return err
		}
		w.max = max(w.max, r.timestamp)
	}
	w.records, w.count = append(w.records, body...), b.Count()
	return s.end()
}

func fieldSize(v []byte) int {
	if v == nil {
		return 1
	}
	return varintSize(int64(len(v))) + len(v)
}

func appendField(dst, v []byte) []byte {
	if v == nil {
		return binary.AppendVarint(dst, -1)
	}
	return append(binary.AppendVarint(dst, int64(len(v))), v...)
}
