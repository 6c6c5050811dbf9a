package batch

import (
	"encoding/binary"
	"math/bits"
)

// eachMessage calls f for each message in one of magic 0 or 1: the message itself, or those that it wraps, until f
// returns false. buf gives room to decompress to; the records point there.
//
// In a wrapper of magic 0 the inner offsets are those of the log. In one of magic 1 they count from the first, and the
// wrapper has that of the last (KIP-31); if the wrapper says that it has the time of the append, so have all within
// (KIP-32).
func (b Batch) eachMessage(buf []byte, limit int, f func(Record) bool) error {
	if b.Codec() == None {
		r, err := b.message()
		if err != nil {
			return err
		}
		f(r)
		return nil
	}
	wrapper, err := b.message()
	if err != nil {
		return err
	}
	set, err := decompress(buf, b.wrapped(wrapper.Value), b.Codec(), limit)
	if err != nil {
		return err
	}
	last, err := b.lastInner(set)
	if err != nil {
		return err
	}
	var base int64
	if b.Magic() == 1 {
		base = b.BaseOffset() - last
	}
	for len(set) > 0 {
		var inner Batch
		if inner, set, err = Next(set); err != nil {
			return err
		}
		r, err := inner.message()
		if err != nil {
			return err
		}
		r.Offset += base
		if b.LogAppendTime() {
			r.Timestamp = wrapper.Timestamp
		}
		if !f(r) {
			return nil
		}
	}
	return nil
}

// lastInner checks the messages of a wrapper and gives the offset that the last has there.
func (b Batch) lastInner(set []byte) (int64, error) {
	last := int64(-1)
	for len(set) > 0 {
		inner, rest, err := Next(set)
		switch {
		case err != nil:
			return 0, corrupt("wrapped message after offset %d: %v", last, err)
		case inner.Magic() != b.Magic() || inner.Codec() != None:
			return 0, corrupt("magic %d and codec %v in a wrapper of magic %d", inner.Magic(), inner.Codec(), b.Magic())
		case inner.BaseOffset() <= last:
			return 0, corrupt("wrapped message at offset %d after %d", inner.BaseOffset(), last)
		}
		if err := inner.verify(); err != nil {
			return 0, err
		}
		last, set = inner.BaseOffset(), rest
	}
	if last < 0 {
		return 0, corrupt("wrapper of no messages")
	}
	if last > b.BaseOffset() {
		return 0, corrupt("wrapper at offset %d of a message at %d", b.BaseOffset(), last)
	}
	return last, nil
}

// message takes a message apart.
func (b Batch) message() (Record, error) {
	at := minMagic0 - 8
	if b.Magic() == 1 {
		at = minMagic1 - 8
	}
	key, rest, ok := legacyField(b[at:])
	if !ok {
		return Record{}, corrupt("key of the message at offset %d", b.BaseOffset())
	}
	value, rest, ok := legacyField(rest)
	if !ok || len(rest) > 0 {
		return Record{}, corrupt("value of the message at offset %d", b.BaseOffset())
	}
	return Record{Offset: b.BaseOffset(), Timestamp: b.MaxTimestamp(), Key: key, Value: value}, nil
}

// legacyField cuts an int32 length and as many bytes off p; a negative length is null.
func legacyField(p []byte) (value, rest []byte, ok bool) {
	if len(p) < 4 {
		return nil, nil, false
	}
	size := int32(binary.BigEndian.Uint32(p))
	p = p[4:]
	if size < 0 {
		return nil, p, true
	}
	if int(size) > len(p) {
		return nil, nil, false
	}
	return p[:size:size], p[size:], true
}

// wrapped gives the compressed messages in a form that decoders take. Java's lz4 for magic 0 computed the checksum in
// the frame's header over too many bytes, and readers had to ignore it (KAFKA-3160): here it is put right.
func (b Batch) wrapped(p []byte) []byte {
	const magic, descriptor = 4, 2 // bytes of the frame's header
	if b.Magic() != 0 || b.Codec() != LZ4 || len(p) < magic+descriptor {
		return p
	}
	end := magic + descriptor
	if p[magic]&0x08 != 0 { // the content size follows
		end += 8
	}
	if len(p) <= end {
		return p
	}
	fixed := append([]byte(nil), p...)
	fixed[end] = byte(xxh32(p[magic:end]) >> 8)
	return fixed
}

// xxh32 is XXH32 with seed 0 for less than 16 bytes, which is all that an lz4 frame's descriptor has.
// (https://github.com/Cyan4973/xxHash/blob/dev/doc/xxhash_spec.md)
func xxh32(p []byte) uint32 {
	const prime1, prime2, prime3, prime4, prime5 = 2654435761, 2246822519, 3266489917, 668265263, 374761393
	h := uint32(prime5) + uint32(len(p))
	for ; len(p) >= 4; p = p[4:] {
		h = bits.RotateLeft32(h+binary.LittleEndian.Uint32(p)*prime3, 17) * prime4
	}
	for _, c := range p {
		h = bits.RotateLeft32(h+uint32(c)*prime5, 11) * prime1
	}
	h = (h ^ h>>15) * prime2
	h = (h ^ h>>13) * prime3
	return h ^ h>>16
}
