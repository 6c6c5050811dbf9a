package batch

import (
	"bytes"
	"encoding/binary"
	"errors"
	"testing"

	"github.com/pierrec/lz4/v4"
	"github.com/twmb/franz-go/pkg/kmsg"
	"pgregory.net/rapid"
)

// message is one of magic 0 or 1, written by franz-go's encoder. Magic 0 has no timestamp.
func message(magic, attributes int8, r rec) Batch {
	var m []byte
	if magic == 0 {
		k := kmsg.MessageV0{Offset: r.Offset, Attributes: attributes, Key: r.Key, Value: r.Value}
		k.MessageSize = int32(len(k.AppendTo(nil)) - 12)
		m = k.AppendTo(nil)
	} else {
		k := kmsg.MessageV1{Offset: r.Offset, Magic: 1, Attributes: attributes, Timestamp: r.Timestamp, Key: r.Key, Value: r.Value}
		k.MessageSize = int32(len(k.AppendTo(nil)) - 12)
		m = k.AppendTo(nil)
	}
	return seal(m)
}

// wrap is a compressed message of rs: with their offsets in magic 0, with offsets that count from first in magic 1.
func wrap(t failer, magic int8, c Codec, appended bool, first, stamp int64, rs []rec) Batch {
	t.Helper()
	var set []byte
	for _, r := range rs {
		if magic == 1 {
			r.Offset -= first
		}
		set = append(set, message(magic, 0, r)...)
	}
	attributes := int8(c)
	if appended {
		attributes |= logAppendTimeBit
	}
	return message(magic, attributes, rec{Offset: rs[len(rs)-1].Offset, Timestamp: stamp, Value: kgoCompress(t, set, c)})
}

func TestReencodedMessagesReadTheSame(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawSource(t, true, Gzip, Snappy, LZ4)
		magic := int8(rapid.IntRange(0, 1).Draw(t, "magic"))
		appended := magic == 1 && s.attributes&logAppendTimeBit != 0
		want := make([]rec, len(s.records))
		for i, r := range s.records {
			want[i] = rec{Offset: r.Offset, Timestamp: r.Timestamp, Key: r.Key, Value: r.Value}
			if magic == 0 {
				want[i].Timestamp = -1
			}
		}
		b := wrap(t, magic, s.codec, appended, s.base, s.timestamp, want)
		if appended {
			for i := range want {
				want[i].Timestamp = s.timestamp
			}
		}
		if err := b.Verify(); err != nil {
			t.Fatal(err)
		}
		same(t, "own reader", records(t, b), want)
		o := ReencodeOptions{FetchOffset: s.base + rapid.Int64Range(-2, 6).Draw(t, "fetch offset"), MaxDecompressed: testLimit}
		out, got, err := Reencode(nil, b, o)
		if err != nil {
			t.Fatal(err)
		}
		checkReencoded(t, out, nil, got, want, o.FetchOffset, s.codec)
	})
}

func TestPlainMessage(t *testing.T) {
	want := rec{Offset: 9, Timestamp: 55, Key: []byte{}, Value: nil}
	b := message(1, logAppendTimeBit, want)
	out, got, err := Reencode(nil, b, ReencodeOptions{FetchOffset: 9, MaxDecompressed: testLimit})
	if err != nil {
		t.Fatal(err)
	}
	checkReencoded(t, out, nil, got, []rec{want}, 9, None)
}

func TestCorruptMessages(t *testing.T) {
	ok := []rec{{Offset: 10, Timestamp: 1, Value: []byte("a")}, {Offset: 11, Timestamp: 1, Value: []byte("b")}}
	inner := func(bs ...Batch) Batch {
		var set []byte
		for _, b := range bs {
			set = append(set, b...)
		}
		return message(1, int8(Gzip), rec{Offset: 11, Value: kgoCompress(t, set, Gzip)})
	}
	broken := func(b Batch) Batch { b[len(b)-1] ^= 1; return b }
	for name, b := range map[string]Batch{
		"no value to unwrap":           message(1, int8(Gzip), rec{Offset: 11}),
		"not what the codec says":      message(1, int8(Snappy), rec{Offset: 11, Value: []byte("plain text")}),
		"no messages":                  inner(),
		"truncated":                    inner(message(1, 0, ok[0])[:20]),
		"half a message at the end":    inner(message(1, 0, ok[0]), message(1, 0, ok[1])[:30]),
		"another magic within":         inner(message(0, 0, ok[0])),
		"a wrapper within":             inner(message(1, int8(Gzip), ok[0])),
		"a batch within":               inner(entries(t, golden(t, "v2-none"))[0]),
		"checksum within":              inner(broken(message(1, 0, ok[0]))),
		"offsets do not rise":          inner(message(1, 0, ok[1]), message(1, 0, ok[1])),
		"offset beyond the wrapper's":  inner(message(1, 0, rec{Offset: 12})),
		"negative offset":              inner(message(1, 0, rec{Offset: -1})),
		"a length that is too large":   resize(message(1, 0, ok[0]), 30, 2),
		"a value that ends too early":  seal(append(message(0, 0, ok[0]), 0)),
		"the last length is not there": message(0, 0, ok[0])[:22],
	} {
		t.Run(name, func(t *testing.T) {
			out, runs, err := Reencode([]byte("kept"), b, ReencodeOptions{MaxDecompressed: testLimit})
			if !errors.Is(err, ErrCorrupt) || string(out) != "kept" || runs != nil {
				t.Errorf("got %d bytes, %v, %v", len(out), runs, err)
			}
			var last error
			for _, err := range b.Records(testLimit) {
				last = err
			}
			if !errors.Is(last, ErrCorrupt) {
				t.Errorf("Records ends with %v", last)
			}
		})
	}
}

// resize sets the int32 length at a position, and the checksum.
func resize(b Batch, at int, n uint32) Batch {
	binary.BigEndian.PutUint32(b[at:], n)
	return seal(b)
}

// Java's lz4 for magic 0 left a wrong checksum in the frame's header, and reads any (KAFKA-3160).
func TestHeaderChecksumOfOldLZ4(t *testing.T) {
	want := []rec{{Offset: 3, Timestamp: -1, Key: []byte("k"), Value: bytes.Repeat([]byte("v"), 100)}}
	set := message(0, 0, want[0])
	for name, o := range map[string][]lz4.Option{
		"short header": {lz4.BlockSizeOption(lz4.Block64Kb)},
		"with a size":  {lz4.BlockSizeOption(lz4.Block64Kb), lz4.SizeOption(uint64(len(set)))},
	} {
		t.Run(name, func(t *testing.T) {
			var frame bytes.Buffer
			w := lz4.NewWriter(&frame)
			if err := w.Apply(o...); err != nil {
				t.Fatal(err)
			}
			if _, err := w.Write(set); err != nil {
				t.Fatal(err)
			}
			if err := w.Close(); err != nil {
				t.Fatal(err)
			}
			checksum := 6 + 8*(len(o)-1)
			frame.Bytes()[checksum] ^= 0x55
			same(t, "magic 0", records(t, message(0, int8(LZ4), rec{Offset: 3, Value: frame.Bytes()})), want)
			if _, _, err := Reencode(nil, message(1, int8(LZ4), rec{Offset: 3, Value: frame.Bytes()}), ReencodeOptions{MaxDecompressed: testLimit}); !errors.Is(err, ErrCorrupt) {
				t.Errorf("magic 1: %v", err)
			}
			if _, _, err := Reencode(nil, message(0, int8(LZ4), rec{Offset: 3, Value: frame.Bytes()[:checksum]}), ReencodeOptions{MaxDecompressed: testLimit}); !errors.Is(err, ErrCorrupt) {
				t.Errorf("cut off: %v", err)
			}
		})
	}
}
