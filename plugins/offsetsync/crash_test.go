package offsetsync

import (
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"mirror/abi"
)

func (s *parts) clone() *parts {
	c := newParts()
	for p, x := range s.of {
		c.of[p] = &part{seen: maps.Clone(x.seen), durable: maps.Clone(x.durable), put: slices.Clone(x.put)}
	}
	return c
}

// Wherever a crash cuts off a flush, the next instance knows each offset up to the saved
// position, exactly, and goes on from there: at each flush of a long history, after each
// of its writes. Half the time what goes on is what such a crash has left.
func TestCrashInAFlush(t *testing.T) {
	steps := 150
	if interpreted {
		steps = 30
	}
	r := rand.New(rand.NewPCG(7, 7))
	g, next, saved, end := plugin(t, "mm2_syncs", "false"), int64(0), int64(-1), int64(0)
	at := map[int64]int64{} // where each record is
	tell := func() {
		var entries []abi.Commit
		for range r.IntN(300) {
			n := 1 + r.Int64N(3)
			for x := range n {
				at[next+x] = end + x
			}
			entries = append(entries, run(next, next+n-1, end), nothing(next+n, next+n))
			next, end = next+n+1, end+n
		}
		if len(entries) > 0 {
			g.commit(0, entries...)
		}
	}
	back := func(to int64) {
		next = to
		maps.DeleteFunc(at, func(x, _ int64) bool { return x >= to })
	}
	known := func(g *guest, upto int64) {
		t.Helper()
		for o := max(0, upto-700); o <= upto; o += 1 + r.Int64N(5) {
			want := end
			for x := o; x <= upto; x++ {
				if dst, ok := at[x]; ok {
					want = dst
					break
				}
			}
			got, by := g.whereBy(o, upto, -1)
			if got.outcome != abi.Exact || got.offset != want && want != end {
				t.Fatalf("offset %d of %d: %v, want %d; kept: %s", o, upto, got, want, g.kept())
			}
			for i := range by.Records {
				if dst, ok := at[by.First+i]; !ok || dst != by.Target+i {
					t.Fatalf("offset %d of %d: %v by %+v, which has no record %d there; kept: %s", o, upto, got, by, by.First+i, g.kept())
				}
			}
			if by.Records == 0 && got.offset > 0 {
				t.Fatalf("offset %d of %d: %v by no run; kept: %s", o, upto, got, g.kept())
			}
		}
	}
	for range steps {
		switch r.IntN(6) {
		case 0: // some of it again
			back(max(0, saved+1-r.Int64N(400)))
			g.assigned(next-1, end)
			saved = next - 1
		default:
			tell()
		}
		g.parts.torn = true
		g.commit(abi.Flush, nothing(next, next-1))
		g.parts.torn = false
		puts := len(g.parts.at(partition{"t", 0}).put)
		resume := -1
		if r.IntN(2) == 0 {
			resume = r.IntN(puts + 1)
		}
		var left *guest
		for n := range puts + 1 {
			crashed := plugin(t, "mm2_syncs", "false")
			crashed.parts = g.parts.clone()
			crashed.parts.at(partition{"t", 0}).lose(n)
			crashed.assigned(saved, end)
			if saved >= 0 {
				known(crashed, saved)
			}
			if n == resume {
				left = crashed
			}
		}
		if left != nil {
			g = left
			back(saved + 1)
			continue
		}
		g.parts.flush([]partition{{"t", 0}})
		saved = next - 1
	}
	if next < 2000 {
		t.Fatalf("%d offsets are too few to tell anything", next)
	}
}
