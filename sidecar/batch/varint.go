package batch

import "math/bits"

// Varints are those of Protocol Buffers, zigzag encoded (KIP-98). Kafka reads a 32-bit one from at most five bytes
// and a 64-bit one from at most ten.

// varint32 reads a varint from the front of p. n is its size, or 0 if there is none or it overflows.
func varint32(p []byte) (v int32, n int) {
	if len(p) > 0 && p[0] < 0x80 { // most are
		return int32(p[0]>>1) ^ -int32(p[0]&1), 1
	}
	var u uint32
	for i, c := range p {
		if i == 4 && c > 0x0f {
			return 0, 0
		}
		u |= uint32(c&0x7f) << (7 * i)
		if c < 0x80 {
			return int32(u>>1) ^ -int32(u&1), i + 1
		}
	}
	return 0, 0
}

// varint64 is varint32 for 64 bits.
func varint64(p []byte) (v int64, n int) {
	var u uint64
	for i, c := range p {
		if i == 9 && c > 0x01 {
			return 0, 0
		}
		u |= uint64(c&0x7f) << (7 * i)
		if c < 0x80 {
			return int64(u>>1) ^ -int64(u&1), i + 1
		}
	}
	return 0, 0
}

// varintSize is the number of bytes that v takes as a varint.
func varintSize(v int64) int {
	u := uint64(v<<1) ^ uint64(v>>63)
	return (bits.Len64(u|1) + 6) / 7
}
