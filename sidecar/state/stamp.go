package state

import (
	"cmp"
	"encoding/binary"
	"math/rand/v2"
	"time"
)

// stamp says who wrote a record, and when. Stamps of a source partition rise, but for those of
// a mirror that goes on after its successor has begun, and of a request that a broker
// finishes after it was given up and what was in it written again. Such a record is not
// read; but compaction keeps it, as the last of its key, and not the one before it. So
// whoever finds one writes the key again: the reader at the start, and a writer when the
// offsets of what it has written show that others are in between.
type stamp struct {
	epoch  int64 // one more than any that its writer had read
	opened int64 // when that was, in ms since 1970
	run    int64 // random, of the writer
	write  int64 // rising, of its records
}

// newStamp is that of a writer before its first record.
func newStamp(epoch int64) stamp {
	return stamp{epoch: epoch, opened: time.Now().UnixMilli(), run: rand.Int64()}
}

// compare orders stamps of one source partition by when they should be there. Of two writers
// it holds one way or the other.
func (s stamp) compare(o stamp) int {
	return cmp.Or(s.compareRun(o), cmp.Compare(s.write, o.write))
}

// compareRun orders writers: the later one is the successor.
func (s stamp) compareRun(o stamp) int {
	return cmp.Or(cmp.Compare(s.epoch, o.epoch), cmp.Compare(s.opened, o.opened), cmp.Compare(s.run, o.run))
}

func (s stamp) append(b []byte) []byte {
	for _, n := range [...]int64{s.epoch, s.opened, s.run, s.write} {
		b = binary.BigEndian.AppendUint64(b, uint64(n))
	}
	return b
}

func parseStamp(b []byte) stamp {
	at := func(i int) int64 { return int64(binary.BigEndian.Uint64(b[8*i:])) }
	return stamp{at(0), at(1), at(2), at(3)}
}
