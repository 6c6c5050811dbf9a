package batch

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math"
)

// What can be wrong with bytes that should be batches. Errors that wrap them say what and where.
var (
	// ErrPartial is a record set that ends within an entry, as a fetch response may: the rest comes when it is
	// fetched again.
	ErrPartial = errors.New("record set ends within a batch")
	// ErrCorrupt is an entry that cannot be: its lengths, its checksum or its records are wrong.
	ErrCorrupt = errors.New("corrupt batch")
	// ErrMagic is an entry of a format that this package does not know. It must not be sent to a broker: one such
	// batch makes it refuse the whole request.
	ErrMagic = errors.New("unknown batch format")
	// ErrTooLarge is a batch whose records take more room, uncompressed, than the caller allows.
	ErrTooLarge = errors.New("batch is too large uncompressed")
	// ErrIndivisible is a batch that cannot be split as asked: it has one record.
	ErrIndivisible = errors.New("batch cannot be split")
)

func corrupt(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrCorrupt, fmt.Sprintf(format, args...))
}

// Next cuts the first entry off a record set, as in a fetch response, and gives what follows it. The entry is not
// yet verified beyond what its accessors need. The error is io.EOF at the end of the set, [ErrPartial] when it ends
// within an entry, and one that wraps [ErrCorrupt] or [ErrMagic] when no entry can be cut; rest is then set itself.
func Next(set []byte) (b Batch, rest []byte, err error) {
	if len(set) == 0 {
		return nil, set, io.EOF
	}
	if len(set) < prefixSize {
		return nil, set, ErrPartial
	}
	size := int64(int32(binary.BigEndian.Uint32(set[lengthAt:]))) + prefixSize
	if size < minMagic0 {
		return nil, set, corrupt("entry at offset %d has %d bytes", binary.BigEndian.Uint64(set), size)
	}
	if len(set) <= magicAt {
		return nil, set, ErrPartial
	}
	smallest := int64(minMagic0)
	switch set[magicAt] {
	case 0:
	case 1:
		smallest = minMagic1
	case 2:
		smallest = headerSize
	default:
		return nil, set, fmt.Errorf("%w: magic %d at offset %d", ErrMagic, set[magicAt], binary.BigEndian.Uint64(set))
	}
	if size < smallest {
		return nil, set, corrupt("entry of magic %d at offset %d has %d bytes", set[magicAt], binary.BigEndian.Uint64(set), size)
	}
	if int64(len(set)) < size {
		return nil, set, ErrPartial
	}
	return Batch(set[:size:size]), set[size:], nil
}

// Verify checks the structure and the checksum, and the records of a control batch; it does not open others. The
// base offset and the leader epoch are outside the checksum. An error wraps [ErrCorrupt].
func (b Batch) Verify() error {
	if err := b.verify(); err != nil {
		return fmt.Errorf("batch at offset %d: %w", b.BaseOffset(), err)
	}
	return nil
}

func (b Batch) verify() error {
	if int64(b.int32(lengthAt))+prefixSize != int64(len(b)) {
		return corrupt("length %d in a batch of %d bytes", b.int32(lengthAt), len(b))
	}
	if b.legacy() {
		if want, got := uint32(b.int32(legacyCRCAt)), crc32.ChecksumIEEE(b[magicAt:]); want != got {
			return corrupt("checksum is %#08x, should be %#08x", got, want)
		}
		if c := b.Codec(); c > LZ4 {
			return corrupt("codec %d with magic %d", int8(c), b.Magic())
		}
		if b.BaseOffset() < 0 {
			return corrupt("negative offset")
		}
		return nil
	}
	if want, got := uint32(b.int32(crcAt)), crc32.Checksum(b[attributesAt:], castagnoli); want != got {
		return corrupt("checksum is %#08x, should be %#08x", got, want)
	}
	last, count := b.LastOffsetDelta(), b.Count()
	switch {
	case last < 0:
		return corrupt("last offset delta %d", last)
	case b.BaseOffset() < 0 || b.BaseOffset() > math.MaxInt64-int64(last):
		return corrupt("base offset is out of range")
	case count < 0 || int64(count) > int64(last)+1:
		return corrupt("%d records at %d offsets", count, int64(last)+1)
	case b.Codec() > Zstd:
		return corrupt("codec %d", int8(b.Codec()))
	case b.Codec() == None && int64(count)*minRecord > int64(len(b.body())):
		return corrupt("%d records in %d bytes", count, len(b.body()))
	}
	if b.Control() {
		_, err := b.marker()
		return err
	}
	return nil
}
