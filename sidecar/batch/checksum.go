package batch

import (
	"encoding/binary"
	"hash/crc32"
)

// The checksum of a batch (CRC-32C) is carried from the source to the target and never made anew over bytes that
// were not just written: a header that changes changes the sum by what the header alone says. So bytes that
// are damaged in memory on the way are refused by the target, and a batch is gone through once, when it arrives.
//
// A CRC is linear: crc(a+b) is crc(a), moved on by the length of b, xor crc(b). To move on by n bytes is to multiply
// with x^8n modulo the polynomial, bit by bit of n.

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// moves has for each power of two k what moving on by 2^k bytes makes of each half byte of a CRC.
var moves = func() (m [31][8][16]uint32) {
	var zero [1]byte
	for half := range 8 {
		for bits := range uint32(16) {
			// Of Update one byte 0 without the two inversions it makes.
			m[0][half][bits] = ^crc32.Update(^(bits << (4 * half)), castagnoli, zero[:])
		}
	}
	for k := 1; k < len(m); k++ {
		for half := range 8 {
			for bits := range uint32(16) {
				m[k][half][bits] = move(&m[k-1], move(&m[k-1], bits<<(4*half)))
			}
		}
	}
	return m
}()

func move(by *[8][16]uint32, crc uint32) uint32 {
	return by[0][crc&15] ^ by[1][crc>>4&15] ^ by[2][crc>>8&15] ^ by[3][crc>>12&15] ^
		by[4][crc>>16&15] ^ by[5][crc>>20&15] ^ by[6][crc>>24&15] ^ by[7][crc>>28]
}

// moved is crc with n bytes after what it is of: xor the CRC of those is the CRC of all.
func moved(crc uint32, n int) uint32 {
	for k := 0; n > 0; k, n = k+1, n>>1 {
		if n&1 != 0 {
			crc = move(&moves[k], crc)
		}
	}
	return crc
}

// headerSum is the CRC of what of the header is under the checksum.
func (b Batch) headerSum() uint32 { return crc32.Checksum(b[attributesAt:headerSize], castagnoli) }

// seal sets the checksum of a new batch, whose body has the given one.
func (b Batch) seal(body uint32) {
	binary.BigEndian.PutUint32(b[crcAt:], moved(b.headerSum(), len(b)-headerSize)^body)
}

// reseal sets the checksum after a change of the header, whose sum was before.
func (b Batch) reseal(before uint32) {
	sum := binary.BigEndian.Uint32(b[crcAt:])
	binary.BigEndian.PutUint32(b[crcAt:], sum^moved(before^b.headerSum(), len(b)-headerSize))
}
