package batch

import (
	"bytes"
	"errors"
	"slices"
	"testing"

	"github.com/klauspost/compress/s2"
	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"
	"pgregory.net/rapid"
)

func TestCompressedReadsTheSame(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := rapid.SampledFrom(allCodecs).Draw(t, "codec")
		unit := rapid.SliceOfN(rapid.Byte(), 1, 50).Draw(t, "unit")
		p := bytes.Repeat(unit, rapid.SampledFrom([]int{0, 1, 10, 3000}).Draw(t, "times"))
		packed, err := compress([]byte("kept"), p, c)
		if err != nil || !bytes.HasPrefix(packed, []byte("kept")) {
			t.Fatalf("%v: %q, %v", c, packed, err)
		}
		buf := make([]byte, rapid.IntRange(0, 200).Draw(t, "room"))
		got, err := decompress(buf, packed[4:], c, len(p))
		if err != nil || !bytes.Equal(got, p) {
			t.Fatalf("%v: %d bytes became %d: %v", c, len(p), len(got), err)
		}
		if _, err := decompress(buf, packed[4:], c, len(p)-1); !errors.Is(err, ErrTooLarge) {
			t.Fatalf("%v: over the limit: %v", c, err)
		}
	})
}

// What clients write differs in form.
func TestFormsOfACodec(t *testing.T) {
	p := bytes.Repeat([]byte("0123456789abcdef"), 1<<15) // 512 KiB
	zstdStream := func(window int) []byte {              // as a stream: no size, and a window that the limit may not exceed
		var out bytes.Buffer
		w, err := zstd.NewWriter(&out, zstd.WithWindowSize(window))
		if err != nil {
			t.Fatal(err)
		}
		for part := range slices.Chunk(p, 1000) {
			if _, err := w.Write(part); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		return out.Bytes()
	}
	lz4Frame := func(o ...lz4.Option) []byte {
		var out bytes.Buffer
		w := lz4.NewWriter(&out)
		if err := w.Apply(o...); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(p); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		return out.Bytes()
	}
	half := func(c Codec) []byte {
		out, err := compress(nil, p[:len(p)/2], c)
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	for _, c := range []struct {
		name   string
		codec  Codec
		packed []byte
	}{
		{"one snappy block", Snappy, s2.EncodeSnappy(nil, p)},
		{"joined snappy streams", Snappy, slices.Concat(half(Snappy), half(Snappy))},
		{"joined gzip members", Gzip, slices.Concat(half(Gzip), half(Gzip))},
		{"joined zstd frames", Zstd, slices.Concat(half(Zstd), half(Zstd))},
		{"zstd of unknown size, small window", Zstd, zstdStream(1 << 10)},
		{"zstd of unknown size, a window larger than the limit", Zstd, zstdStream(8 << 20)},
		{"lz4 in large blocks with checksums", LZ4, lz4Frame(lz4.BlockSizeOption(lz4.Block4Mb), lz4.BlockChecksumOption(true))},
		{"lz4 with its size", LZ4, lz4Frame(lz4.SizeOption(uint64(len(p))))},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := decompress(nil, c.packed, c.codec, len(p))
			if err != nil || !bytes.Equal(got, p) {
				t.Errorf("%d bytes of %d: %v", len(got), len(p), err)
			}
			if _, err := decompress(nil, c.packed, c.codec, len(p)-1); !errors.Is(err, ErrTooLarge) {
				t.Errorf("over the limit: %v", err)
			}
		})
	}
}

// A decompressor must not need much more memory than the limit, whatever is claimed.
func TestBombs(t *testing.T) {
	const limit = 1 << 16
	p := make([]byte, 16<<20)
	for _, c := range allCodecs[1:] {
		packed, err := compress(nil, p, c)
		if err != nil {
			t.Fatal(err)
		}
		if out, err := decompress(nil, packed, c, limit); !errors.Is(err, ErrTooLarge) || out != nil {
			t.Errorf("%v: %d bytes opened to %d: %v", c, len(packed), len(out), err)
		}
	}
}
