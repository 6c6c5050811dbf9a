package offsetsync

import (
	"testing"

	"mirror/abi"
)

// Past its limit a partition's state has fewer and fewer of the oldest runs, the head
// stays exact, and nothing fails. What a group repeats is bounded: by 32 runs where they
// were thinned once, by 32 times as many where twice.
func TestRoom(t *testing.T) {
	if interpreted {
		t.Skip("it takes minutes")
	}
	const n, limit = 40_000, 24_000 // runs; a third of what they take
	g := plugin(t, "mm2_syncs", "false")
	g.parts.limit = limit
	for i := int64(0); i < n; i += 50 {
		var entries []abi.Commit
		for x := i; x < i+50; x++ {
			entries = append(entries, run(11*x, 11*x+9, 10*x), nothing(11*x+10, 11*x+10))
		}
		g.commit(abi.Flush, entries...)
		if size := g.parts.at(partition{"t", 0}).size(); size > limit {
			t.Fatalf("after %d runs: %d bytes of %d", i, size, limit)
		}
	}
	exact, worst := 0, int64(0)
	for i := int64(0); i < n; i += 7 {
		got, want := g.where(11*i+3, 11*n-1, -1), 10*i+3
		switch {
		case got.outcome == abi.Exact && got.offset == want:
			exact++
		case got.outcome != abi.Bound || got.reason != abi.Thinned && got.offset > 0 || got.offset > want:
			t.Fatalf("run %d: %v, want %d", i, got, want)
		case i > n-3000:
			t.Fatalf("run %d, near the head: %v", i, got)
		default:
			worst = max(worst, want-got.offset)
		}
	}
	if got := g.where(11*n, 11*n-1, -1); got != (answer{10 * n, abi.Exact, abi.NoReason}) {
		t.Errorf("the head: %v", got)
	}
	if g.given < n/2 || g.given > n || exact < n/7/10 || worst < 100 || worst > 32*32*10 {
		t.Errorf("%d of %d runs given up, %d answers of %d exact, at worst %d repeated", g.given, n, exact, n/7, worst)
	}
	if size := g.parts.at(partition{"t", 0}).size(); size < limit/2 {
		t.Errorf("%d bytes of %d are used", size, limit)
	}
}
