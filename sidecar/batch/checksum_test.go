package batch

import (
	"hash/crc32"
	"testing"

	"pgregory.net/rapid"
)

func TestChecksumsOfParts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := rapid.SliceOf(rapid.Byte()).Draw(t, "a")
		b := rapid.SliceOf(rapid.Byte()).Draw(t, "b")
		b = append(b, make([]byte, rapid.SampledFrom([]int{0, 1, 1 << 10, 1 << 20}).Draw(t, "zeros"))...)
		sum := func(p []byte) uint32 { return crc32.Checksum(p, castagnoli) }
		if got, want := moved(sum(a), len(b))^sum(b), sum(append(a, b...)); got != want {
			t.Fatalf("%#x, want %#x", got, want)
		}
	})
}

// What is damaged between the source and the target must not get a checksum that is
// right.
func TestRewritingDoesNotHideDamage(t *testing.T) {
	b := typical(t, None)
	b.Rewrite(NoProducer, NoSequence)
	if err := b.Verify(); err != nil {
		t.Fatal(err)
	}
	b[len(b)-1] ^= 1
	b.Rewrite(Producer{ID: 1}, 7)
	if err := b.Verify(); err == nil {
		t.Error("a damaged batch is fine after it was rewritten")
	}
}
