package batch

import (
	"fmt"
	"testing"
)

// typical is a batch of about 16 KiB with records of 1 KiB that compress somewhat.
func typical(t testing.TB, c Codec) Batch {
	var w Builder
	for i := range 16 {
		value := fmt.Appendf(nil, `{"id":%d,"name":"customer %d","state":"active","score":%d,"notes":"`, i*7919, i, i%13)
		for k := 0; len(value) < 950; k++ {
			value = fmt.Appendf(value, "%d entry %x, ", k*i, (k+1)*(i+3)*2654435761)
		}
		w.Add(Record{Timestamp: goldenTime + int64(i), Key: fmt.Appendf(nil, "key-%d", i), Value: value})
	}
	out, err := w.Build(nil, c)
	if err != nil {
		t.Fatal(err)
	}
	b := Batch(out)
	b.Rewrite(Producer{1, 0}, 0)
	return b
}

// tiny is a batch of about 16 KiB with records of 32 bytes.
func tiny(t testing.TB) Batch {
	var w Builder
	for i := range 450 {
		w.Add(Record{Timestamp: goldenTime + int64(i), Key: fmt.Appendf(nil, "key-%d", i), Value: []byte("a short value, 22 bytes")})
	}
	out, err := w.Build(nil, None)
	if err != nil {
		t.Fatal(err)
	}
	b := Batch(out)
	b.Rewrite(Producer{1, 0}, 0)
	return b
}

func repeat(b Batch, n int) []Batch {
	bs := make([]Batch, n)
	for i := range bs {
		bs[i] = b
	}
	return bs
}

func TestMergeDoesNotAllocate(t *testing.T) {
	bs := repeat(typical(t, None), 32)
	dst := make([]byte, 0, MergedSize(bs))
	if n := testing.AllocsPerRun(10, func() {
		if _, err := Merge(dst, bs); err != nil {
			t.Error(err)
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkVerify(b *testing.B) {
	x := typical(b, None)
	b.SetBytes(int64(len(x)))
	for b.Loop() {
		if err := x.Verify(); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkRewrite(b *testing.B) {
	x := typical(b, None)
	b.SetBytes(int64(len(x)))
	for b.Loop() {
		x.Rewrite(Producer{1, 2}, 3)
	}
}

func BenchmarkMerge(b *testing.B) {
	for name, x := range map[string]Batch{"1KiB": typical(b, None), "32B": tiny(b)} {
		b.Run(name, func(b *testing.B) {
			bs := repeat(x, 16) // 256 KiB
			dst := make([]byte, 0, MergedSize(bs))
			b.SetBytes(int64(len(x) * len(bs)))
			for b.Loop() {
				if _, err := Merge(dst, bs); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkReencode(b *testing.B) {
	for _, c := range allCodecs {
		b.Run(c.String(), func(b *testing.B) {
			x := typical(b, c)
			dst := make([]byte, 0, 2*len(x)+1024)
			b.SetBytes(int64(len(typical(b, None))))
			b.ReportMetric(float64(len(x)), "bytes")
			for b.Loop() {
				if _, _, err := Reencode(dst, x, ReencodeOptions{MaxDecompressed: testLimit}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkConcat(b *testing.B) {
	for _, c := range allCodecs[1:] {
		b.Run(c.String(), func(b *testing.B) {
			bs := repeat(typical(b, c), 16)
			dst := make([]byte, 0, 1<<20)
			b.SetBytes(int64(16 * len(typical(b, None))))
			for b.Loop() {
				if _, _, err := Concat(dst, bs, testLimit); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
