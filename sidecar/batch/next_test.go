package batch

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"math"
	"testing"
)

func put32(b Batch, at int, v int32) Batch {
	binary.BigEndian.PutUint32(b[at:], uint32(v))
	return b
}

func TestNext(t *testing.T) {
	set := golden(t, "v2-none")
	edit := func(f func(b []byte)) []byte {
		b := bytes.Clone(set)
		f(b)
		return b
	}
	for _, c := range []struct {
		name string
		set  []byte
		want error
	}{
		{"end", nil, io.EOF},
		{"part of the offset", set[:1], ErrPartial},
		{"part of the prefix", set[:11], ErrPartial},
		{"up to the magic", set[:16], ErrPartial},
		{"part of the header", set[:30], ErrPartial},
		{"all but a byte", set[:len(set)-1], ErrPartial},
		{"negative length", edit(func(b []byte) { put32(b, 8, -1) }), ErrCorrupt},
		{"smallest length", edit(func(b []byte) { put32(b, 8, math.MinInt32) }), ErrCorrupt},
		{"largest length", edit(func(b []byte) { put32(b, 8, math.MaxInt32) }), ErrPartial},
		{"no length", edit(func(b []byte) { put32(b, 8, 0) }), ErrCorrupt},
		{"too short for magic 2", edit(func(b []byte) { put32(b, 8, headerSize-prefixSize-1) }), ErrCorrupt},
		{"too short for magic 1", edit(func(b []byte) { b[16] = 1; put32(b, 8, 21) }), ErrCorrupt},
		{"too short for magic 0", edit(func(b []byte) { b[16] = 0; put32(b, 8, 13) }), ErrCorrupt},
		{"magic 3", edit(func(b []byte) { b[16] = 3 }), ErrMagic},
		{"magic -1", edit(func(b []byte) { b[16] = 0xff }), ErrMagic},
	} {
		t.Run(c.name, func(t *testing.T) {
			b, rest, err := Next(c.set)
			if !errors.Is(err, c.want) || b != nil || !bytes.Equal(rest, c.set) {
				t.Errorf("%v, %d bytes left of %d, %v; want %v", b, len(rest), len(c.set), err, c.want)
			}
		})
	}
	two := append(bytes.Clone(set), golden(t, "v0-none")...)
	b, rest, err := Next(two)
	if err != nil || !bytes.Equal(b, set) || !bytes.Equal(rest, two[len(set):]) || cap(b) != len(b) {
		t.Errorf("%v of capacity %d, %d bytes left, %v", b, cap(b), len(rest), err)
	}
}

func TestVerify(t *testing.T) {
	control := func() Batch { return entries(t, golden(t, "transactions"))[3] }
	for _, c := range []struct {
		name string
		b    Batch
	}{
		{"payload", func() Batch { b := Batch(golden(t, "v2-none")); b[len(b)-1] ^= 1; return b }()},
		{"checksum", put32(golden(t, "v2-none"), 17, 0)},
		{"checksum of a message", put32(golden(t, "v0-gzip"), 12, 0)},
		{"length", seal(append(golden(t, "v2-none"), 0))},
		{"length of a message", seal(append(golden(t, "v0-gzip"), 0))},
		{"codec", seal(func() Batch { b := Batch(golden(t, "v2-none")); b[22] = 5; return b }())},
		{"codec of a message", seal(func() Batch { b := Batch(golden(t, "v1-gzip")); b[17] = 4; return b }())},
		{"negative offset delta", seal(put32(golden(t, "v2-none"), 23, -1))},
		{"negative count", seal(put32(golden(t, "v2-none"), 57, -1))},
		{"more records than offsets", seal(put32(golden(t, "v2-gzip"), 57, 5))},
		{"more records than bytes", seal(put32(put32(golden(t, "v2-none"), 57, math.MaxInt32), 23, math.MaxInt32))},
		{"negative offset", put32(golden(t, "v2-none"), 0, -1)},
		{"negative offset of a message", put32(golden(t, "v0-gzip"), 0, -1)},
		{"an offset that leaves no room", put32(put32(golden(t, "v2-none"), 0, math.MaxInt32), 4, -3)},
		{"compressed control batch", seal(func() Batch { b := control(); b[22] |= 1; return b }())},
		{"control record without a type", source{attributes: controlBit, records: []rec{{Key: []byte{0, 0, 0}}}}.batch(t)},
		{"control record cut off", seal(func() Batch { b := control(); b[61] = 2; return b }())},
	} {
		t.Run(c.name, func(t *testing.T) {
			if err := c.b.Verify(); !errors.Is(err, ErrCorrupt) {
				t.Errorf("%v: %v", c.b, err)
			}
		})
	}
	empty := control() // as the cleaner leaves one
	empty = put32(empty[:headerSize], 57, 0)
	if err := seal(put32(empty, 8, headerSize-prefixSize)).Verify(); err != nil {
		t.Errorf("empty control batch: %v", err)
	}
}

func TestDecide(t *testing.T) {
	v2, holes, appended := Batch(golden(t, "v2-lz4")), Batch(golden(t, "v2-holes-lz4")), Batch(golden(t, "v2-append-lz4"))
	log := entries(t, golden(t, "transactions"))
	for _, c := range []struct {
		name   string
		b      Batch
		c      Conditions
		path   Path
		reason Reason
	}{
		{"a batch", v2, Conditions{}, PathRaw, ""},
		{"from its first offset", v2, Conditions{FetchOffset: 100, MaxBytes: len(v2)}, PathRaw, ""},
		{"of a committed transaction", log[0], Conditions{}, PathRaw, ""},
		{"of an aborted transaction", log[0], Conditions{Aborted: true}, PathSkip, ReasonAborted},
		{"a marker", log[3], Conditions{Aborted: true, FetchOffset: 500}, PathSkip, ReasonControl},
		{"nothing but the header", golden(t, "v2-empty"), Conditions{FetchOffset: 101}, PathSkip, ReasonEmpty},
		{"from its second offset", v2, Conditions{FetchOffset: 101}, PathReencode, ReasonCut},
		{"from its last offset", v2, Conditions{FetchOffset: 103}, PathReencode, ReasonCut},
		{"from after it", v2, Conditions{FetchOffset: 104}, PathSkip, ReasonBefore},
		{"cleaned", holes, Conditions{}, PathReencode, ReasonHoles},
		{"cleaned, and the last offset still wanted", holes, Conditions{FetchOffset: 103}, PathReencode, ReasonCut},
		{"time of the append", appended, Conditions{}, PathReencode, ReasonLogAppendTime},
		{"time of the append on both sides", appended, Conditions{TargetLogAppendTime: true}, PathRaw, ""},
		{"too large", v2, Conditions{MaxBytes: len(v2) - 1}, PathReencode, ReasonOversize},
		{"magic 0", golden(t, "v0-gzip"), Conditions{FetchOffset: 103}, PathReencode, ReasonLegacy},
		{"magic 1, from after it", golden(t, "v1-gzip"), Conditions{FetchOffset: 104}, PathSkip, ReasonBefore},
	} {
		t.Run(c.name, func(t *testing.T) {
			path, reason := Decide(c.b, c.c)
			if path != c.path || reason != c.reason {
				t.Errorf("%v %q, want %v %q", path, reason, c.path, c.reason)
			}
		})
	}
}
