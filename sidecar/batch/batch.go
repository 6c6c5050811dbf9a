// Package batch reads and makes Kafka's record batches as bytes: it finds them in a fetch response, checks
// them, decides which may cross to another cluster unopened, and rewrites, merges, re-encodes and splits them.
//
// It is pure: no I/O, no goroutine, no clock. It takes any bytes without a panic; what it cannot read is an
// error that wraps [ErrCorrupt], [ErrMagic], [ErrPartial] or [ErrTooLarge].
//
// The format is Kafka's message format 2, https://kafka.apache.org/documentation/#recordbatch (KIP-98), and, for
// reading, the message sets that came before it (magic 0, and magic 1 of KIP-32).
package batch

import (
	"encoding/binary"
	"fmt"
)

// Batch is one entry of a partition's log: a whole record batch of magic 2 with its 12-byte prefix, or a message
// of a message set (magic 0 or 1), which may be the compressed wrapper of others.
//
// A Batch comes from [Next], or from a function of this package that makes one: its methods rely on the lengths
// that those have checked. It points into the bytes that it was cut from and is valid as long as they are.
//
// The layout of magic 2 (all numbers big endian; the CRC covers everything from byte 21):
//
//	0  base offset      int64        23  last offset delta  int32
//	8  length           int32 (*)    27  base timestamp     int64 (ms)
//	12 leader epoch     int32        35  max timestamp      int64 (ms)
//	16 magic            int8         43  producer id        int64
//	17 CRC32C           uint32       51  producer epoch     int16
//	21 attributes       int16        53  base sequence      int32
//	(*) of what follows byte 12      57  record count       int32     61 records
//
// The layout of magic 0 and 1:
//
//	0  offset           int64        17  attributes         int8
//	8  length           int32 (*)    18  timestamp          int64 (ms; magic 1 only)
//	12 CRC32            uint32       18 or 26 key, value: each an int32 length, -1 for null, and bytes
//	16 magic            int8
type Batch []byte

// Positions and sizes, in bytes.
const (
	prefixSize = 12 // offset and length: what the length field does not count

	lengthAt          = 8
	leaderEpochAt     = 12
	magicAt           = 16
	crcAt             = 17
	attributesAt      = 21
	lastOffsetDeltaAt = 23
	baseTimestampAt   = 27
	maxTimestampAt    = 35
	producerIDAt      = 43
	producerEpochAt   = 51
	baseSequenceAt    = 53
	countAt           = 57
	headerSize        = 61

	legacyCRCAt        = 12
	legacyAttributesAt = 17
	legacyTimestampAt  = 18
	minMagic0          = 26
	minMagic1          = 34
)

// Bits of the attributes.
const (
	codecMask        = 0x07
	logAppendTimeBit = 0x08 // also in magic 1
	transactionalBit = 0x10
	controlBit       = 0x20
	deleteHorizonBit = 0x40 // the base timestamp is the time after which tombstones may go (KIP-534)
)

// Codec is a compression codec, as the lowest three bits of the attributes name it.
type Codec int8

// The codecs of Kafka. Zstd needs magic 2 (KIP-110).
const (
	None Codec = iota
	Gzip
	Snappy
	LZ4
	Zstd
)

// String gives the codec as Kafka's compression.type spells it.
func (c Codec) String() string {
	switch c {
	case None:
		return "none"
	case Gzip:
		return "gzip"
	case Snappy:
		return "snappy"
	case LZ4:
		return "lz4"
	case Zstd:
		return "zstd"
	}
	return fmt.Sprintf("codec %d", int8(c))
}

func (b Batch) int16(at int) int16 { return int16(binary.BigEndian.Uint16(b[at:])) }
func (b Batch) int32(at int) int32 { return int32(binary.BigEndian.Uint32(b[at:])) }
func (b Batch) int64(at int) int64 { return int64(binary.BigEndian.Uint64(b[at:])) }

// Magic is the version of the format: 0, 1 or 2 (byte 16).
func (b Batch) Magic() int8 { return int8(b[magicAt]) }

func (b Batch) legacy() bool { return b[magicAt] < 2 }

// BaseOffset is the offset of the first record that the producer put in (bytes 0 to 8); the log cleaner may have
// removed it. A compressed message of magic 0 or 1 does not tell its first offset: there it is that of the last.
func (b Batch) BaseOffset() int64 { return b.int64(0) }

// LastOffset is the last offset that the batch takes up, whether or not a record is left there: fetching goes on
// one after it. A message of magic 0 or 1 carries it in bytes 0 to 8, also when it wraps others.
func (b Batch) LastOffset() int64 {
	if b.legacy() {
		return b.BaseOffset()
	}
	return b.BaseOffset() + int64(b.LastOffsetDelta())
}

// LeaderEpoch is the epoch of the leader that appended the batch (bytes 12 to 16), -1 if unknown or magic 0 or 1.
func (b Batch) LeaderEpoch() int32 {
	if b.legacy() {
		return -1
	}
	return b.int32(leaderEpochAt)
}

// Attributes are bytes 21 and 22, or byte 17 of a message of magic 0 or 1. The low bits mean the same in both.
func (b Batch) Attributes() int16 {
	if b.legacy() {
		return int16(b[legacyAttributesAt])
	}
	return b.int16(attributesAt)
}

// Codec is how the records, or the messages in a wrapper, are compressed. Values above [Zstd] do not pass Verify.
func (b Batch) Codec() Codec { return Codec(b.Attributes() & codecMask) }

// LogAppendTime tells that the records bear the time of the append, which is MaxTimestamp, and not their own.
func (b Batch) LogAppendTime() bool {
	return b.Magic() > 0 && b.Attributes()&logAppendTimeBit != 0
}

// Transactional tells that the batch belongs to a transaction. False for magic 0 and 1.
func (b Batch) Transactional() bool { return !b.legacy() && b.Attributes()&transactionalBit != 0 }

// Control tells that the batch holds control records, such as a transaction's end, and none of a user's. False
// for magic 0 and 1.
func (b Batch) Control() bool { return !b.legacy() && b.Attributes()&controlBit != 0 }

// DeleteHorizon tells that the cleaner has left the time there after which tombstones may go. False for magic 0
// and 1.
func (b Batch) DeleteHorizon() bool { return !b.legacy() && b.Attributes()&deleteHorizonBit != 0 }

// LastOffsetDelta is LastOffset less BaseOffset (bytes 23 to 27), 0 for magic 0 and 1.
func (b Batch) LastOffsetDelta() int32 {
	if b.legacy() {
		return 0
	}
	return b.int32(lastOffsetDeltaAt)
}

// BaseTimestamp is what the records' timestamps count from, in ms since the epoch (bytes 27 to 35). For magic 1
// it is the message's timestamp, for magic 0 -1.
func (b Batch) BaseTimestamp() int64 {
	if b.legacy() {
		return b.MaxTimestamp()
	}
	return b.int64(baseTimestampAt)
}

// MaxTimestamp is the largest timestamp of the records, or the time of the append, in ms since the epoch (bytes 35
// to 43). For magic 1 it is the message's timestamp, for magic 0 -1.
func (b Batch) MaxTimestamp() int64 {
	switch b.Magic() {
	case 0:
		return -1
	case 1:
		return b.int64(legacyTimestampAt)
	}
	return b.int64(maxTimestampAt)
}

// ProducerID is the id of an idempotent producer (bytes 43 to 51), -1 for none and for magic 0 and 1.
func (b Batch) ProducerID() int64 {
	if b.legacy() {
		return -1
	}
	return b.int64(producerIDAt)
}

// ProducerEpoch is the epoch of the producer id (bytes 51 to 53), -1 for none and for magic 0 and 1.
func (b Batch) ProducerEpoch() int16 {
	if b.legacy() {
		return -1
	}
	return b.int16(producerEpochAt)
}

// BaseSequence is the producer's sequence number of the first record (bytes 53 to 57), -1 for none and for magic 0
// and 1.
func (b Batch) BaseSequence() int32 {
	if b.legacy() {
		return -1
	}
	return b.int32(baseSequenceAt)
}

// Count is the number of records (bytes 57 to 61). It is 1 for a plain message of magic 0 or 1, and -1 for a
// compressed one, which does not tell.
func (b Batch) Count() int32 {
	switch {
	case !b.legacy():
		return b.int32(countAt)
	case b.Codec() == None:
		return 1
	}
	return -1
}

// Dense tells that the batch has magic 2 and a record at each of its offsets.
func (b Batch) Dense() bool {
	return !b.legacy() && b.Count() > 0 && int64(b.Count()) == int64(b.LastOffsetDelta())+1
}

// body is what follows the header of a batch of magic 2: the records, compressed or not.
func (b Batch) body() []byte { return b[headerSize:] }

// String shows the header, for logs and test failures.
func (b Batch) String() string {
	return fmt.Sprintf("batch{magic=%d offset=%d..%d count=%d bytes=%d attributes=%#02x producer=%d/%d sequence=%d time=%d..%d}",
		b.Magic(), b.BaseOffset(), b.LastOffset(), b.Count(), len(b), b.Attributes(), b.ProducerID(), b.ProducerEpoch(),
		b.BaseSequence(), b.BaseTimestamp(), b.MaxTimestamp())
}
