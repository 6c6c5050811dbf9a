package batch

import (
	"bytes"
	"encoding/binary"
	"errors"
	"slices"

	"github.com/klauspost/compress/s2"
)

// Java writes snappy in the framing of the xerial library: a header of 16 bytes, then blocks, each after its size as
// an int32. Other clients write one bare block. Both are read, as Java does; the framed form is written.
// (https://github.com/xerial/snappy-java, SnappyOutputStream.)
var xerialHeader = []byte{0x82, 'S', 'N', 'A', 'P', 'P', 'Y', 0, 0, 0, 0, 1, 0, 0, 0, 1}

const (
	xerialMagicSize = 8        // of the header; versions follow
	xerialBlock     = 32 << 10 // bytes before compression
)

var errSnappyFraming = errors.New("snappy framing is broken")

func decodeSnappy(dst, src []byte, limit int) ([]byte, error) {
	if !bytes.HasPrefix(src, xerialHeader[:xerialMagicSize]) {
		return decodeSnappyBlock(dst, src, limit)
	}
	start := len(dst)
	for len(src) > 0 {
		if bytes.HasPrefix(src, xerialHeader[:xerialMagicSize]) { // also within: streams may be joined
			if len(src) < len(xerialHeader) {
				return nil, errSnappyFraming
			}
			src = src[len(xerialHeader):]
			continue
		}
		if len(src) < 4 {
			return nil, errSnappyFraming
		}
		size := int32(binary.BigEndian.Uint32(src))
		src = src[4:]
		if size < 0 || int(size) > len(src) {
			return nil, errSnappyFraming
		}
		var err error
		if dst, err = decodeSnappyBlock(dst, src[:size], limit-(len(dst)-start)); err != nil {
			return nil, err
		}
		src = src[size:]
	}
	return dst, nil
}

// decodeSnappyBlock appends a block that holds at most limit bytes.
func decodeSnappyBlock(dst, src []byte, limit int) ([]byte, error) {
	n, err := s2.DecodedLen(src)
	if err != nil {
		return nil, err
	}
	if n > limit {
		return nil, ErrTooLarge
	}
	dst = slices.Grow(dst, n)
	out, err := s2.Decode(dst[len(dst):len(dst)+n], src)
	if err != nil {
		return nil, err
	}
	return dst[:len(dst)+len(out)], nil
}

func encodeSnappy(dst, src []byte) []byte {
	dst = append(dst, xerialHeader...)
	for block := range slices.Chunk(src, xerialBlock) {
		room := s2.MaxEncodedLen(len(block))
		dst = slices.Grow(dst, 4+room)
		at := len(dst) + 4
		out := s2.EncodeSnappy(dst[at:at+room], block)
		dst = append(binary.BigEndian.AppendUint32(dst, uint32(len(out))), out...)
	}
	return dst
}
