package offsetsync

import (
	"slices"
	"testing"

	"mirror/abi"
	"mirror/plugins"
)

// Past its limit a partition's state has fewer and fewer of the oldest runs, the head
// stays exact, and nothing fails. What a group repeats is bounded: by 32 runs where they
// were thinned once, by 32 times as many where twice.
func TestRoom(t *testing.T) {
	if interpreted {
		t.Skip("it takes minutes")
	}
	const n, limit = 40_000, 24_000 // runs; a third of what they take
	g := crowded(t, n, limit)
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

// crowded is an instance that was told of n transactions of ten records and a marker
// each, with a flush after each fifty, and has had room for so many bytes.
func crowded(t *testing.T, n int64, limit int) *guest {
	t.Helper()
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
	return g
}

// What a group repeats after thinning is what was given up since the last run that
// stayed, and nothing else: wherever it is in what was given up, it goes on right behind
// that run, and no record is passed over. One of 32 stays, so that is up to 31
// transactions where they were thinned once, and up to 32 times 32 less one where twice.
func TestRepeatsAfterThinning(t *testing.T) {
	if interpreted {
		t.Skip("it takes minutes")
	}
	const n, limit = 100_000, 16_000
	const once, twice = 10 * (32 - 1), 10 * (32*32 - 1) // records
	g := crowded(t, n, limit)
	stayed := int64(-1)  // the last run that did
	var repeats [n]int64 // at most, by who is in that transaction
	for i := range int64(n) {
		for _, into := range []int64{0, 10} { // its first record, its marker
			got, record := g.where(11*i+into, 11*n-1, -1), 10*i+into
			if got.outcome == abi.Exact {
				if got.offset != record {
					t.Fatalf("run %d, %d into it: %v, want %d", i, into, got, record)
				}
				if into == 0 {
					stayed = i
				}
				continue
			}
			if want := bound(10*(stayed+1), abi.Thinned); got != want {
				t.Fatalf("run %d, %d into it: %v, want %v", i, into, got, want)
			}
			repeats[i] = max(repeats[i], record-got.offset)
		}
	}
	// How far behind the first group is that repeats more.
	behind := func(more int64) int {
		for i := n - 1; i >= 0; i-- {
			if repeats[i] > more {
				return n - 1 - i
			}
		}
		return n
	}
	none, few := behind(0), behind(once)
	t.Logf("%d transactions in %d bytes: none is repeated up to %d behind, up to %d records up to %d, up to %d beyond", n, limit, none, once, few, slices.Max(repeats[:]))
	if none < 1000 || few < 5*none || few == n {
		t.Errorf("none is repeated up to %d behind, up to %d records up to %d behind", none, once, few)
	}
	if got := slices.Max(repeats[n-few:]); got != once {
		t.Errorf("%d records are repeated at most where they were thinned once, want %d", got, once)
	}
	if got := slices.Max(repeats[:]); got != twice {
		t.Errorf("%d records are repeated at most, want %d", got, twice)
	}
}

// However much has been thinned, a quarter of the room is for what is exact: a run takes
// two bytes of it.
func TestRoomForTheExact(t *testing.T) {
	if interpreted {
		t.Skip("it takes minutes")
	}
	const limit, runs = 512 << 10, 4_000_000
	h := host(t, map[string]any{"mm2_syncs": false})
	h.spec.Limits.State = limit
	h.start()
	h.mirror(2, 10*runs, 1000)
	var asked []plugins.GroupOffset
	for behind := int64(1); behind < limit/4/2*9/10; behind += 37 {
		asked = append(asked, plugins.GroupOffset{Key: plugins.Key{Topic: "t"}, Group: "g", Offset: 11 * (runs - behind), LeaderEpoch: -1})
	}
	got, err := h.Groups(t.Context(), asked)
	if err != nil {
		t.Fatal(err)
	}
	for i, a := range asked {
		if got[i].Outcome != abi.Exact || got[i].Offset != a.Offset/11*10 {
			t.Fatalf("%d transactions behind: %+v", runs-a.Offset/11, got[i])
		}
	}
	oldest, err := h.Groups(t.Context(), []plugins.GroupOffset{{Key: plugins.Key{Topic: "t"}, Group: "g", Offset: 11 * 1000, LeaderEpoch: -1}})
	if err != nil || oldest[0].Outcome != abi.Bound || oldest[0].Reason != abi.Thinned {
		t.Errorf("far back: %+v, %v: want a bound, or nothing was thinned", oldest, err)
	}
}
