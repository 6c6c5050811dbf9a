package plugins

import (
	"log/slog"
	"maps"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"mirror/abi"
)

// model is a guest as it should be told: what it knows of each partition, and what of
// that has been flushed.
type model struct {
	t       *rapid.T
	next    map[Key]int64 // the offset that comes next, of what this instance was told
	flushed map[Key]int64 // last offset that no instance is told again
}

// hear takes a frame that went well.
func (g *model) hear(f *frame) {
	for i, q := range f.about {
		k := q.key
		if f.hook == abi.OnPartitions {
			e := f.partitions[i]
			if e.Event != abi.Assigned {
				g.t.Fatalf("%v of %v", e.Event, k)
			}
			if want := g.flushed[k]; e.Position != want {
				g.t.Fatalf("%v is assigned at %d, want %d", k, e.Position, want)
			}
			g.next[k] = e.Position + 1
			continue
		}
		c := q.commit(f.ranges[i])
		next, ok := g.next[k]
		if !ok || c.SrcFirst != next || c.SrcLast < next-1 {
			g.t.Fatalf("%v is told %d-%d, want from %d (known: %v)", k, c.SrcFirst, c.SrcLast, next, ok)
		}
		if c.SrcLast == next-1 && f.flags&abi.Flush == 0 {
			g.t.Fatalf("%v is told nothing", k)
		}
		g.next[k] = c.SrcLast + 1
	}
	if f.flags&abi.Flush != 0 {
		for _, q := range f.about {
			g.flushed[q.key] = g.next[q.key] - 1
		}
	}
}

// Whatever fails and whenever: each instance is told each partition from where it was
// flushed on, in order and without a gap; no offset is safe that was not flushed; and
// once nothing fails any more all of it is.
func TestLaws(t *testing.T) {
	quiet := slog.New(slog.DiscardHandler)
	rapid.Check(t, func(t *rapid.T) {
		policy := rapid.SampledFrom([]Policy{Halt, Retry}).Draw(t, "policy")
		p := &program{Module: Module{Hooks: []abi.Hook{abi.OnPartitions, abi.OnCommit}}, spec: Spec{Name: "p", Failure: policy}, lines: &lines{log: quiet}, board: newBoard()}
		l := NewLane(&Set{members: []*member{newMember(p, 0, nil)}}, nil)
		m := l.members[0]
		m.most = rapid.SampledFrom([]int{1, 2, 3, 8, abi.MaxEntries}).Draw(t, "most")
		g := &model{t: t, next: map[Key]int64{}, flushed: map[Key]int64{}}
		heads := map[Key]int64{}
		now := time.Unix(1_000_000, 0)
		round := func(flush bool, fails func(*frame) *Failure) {
			m.seal()
			for {
				f := m.next(now, flush)
				if f == nil {
					return
				}
				if len(f.about) == 0 || len(f.about) > m.most {
					t.Fatalf("%d entries, %d are the limit", len(f.about), m.most)
				}
				why := fails(f)
				switch {
				case why == nil:
					g.hear(f)
					f.done()
				case why.Status == abi.Limit: // its emits were not written
					m.discard()
					m.notBefore = now.Add(pause(1))
				default:
					m.failed(f, why, now)
				}
				if why != nil && (why.Status != abi.Retry || len(m.held) == 0) {
					clear(g.next)
				}
				m.sweep()
			}
		}
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			k := key(rapid.Int32Range(0, 3).Draw(t, "partition"))
			switch rapid.IntRange(0, 4).Draw(t, "what") {
			case 0, 1:
				head, ok := heads[k]
				if !ok {
					head = 9
					g.flushed[k] = 9
					l.Notify(Event{Key: k, Kind: abi.Assigned, Position: 9})
				}
				last := head + rapid.Int64Range(1, 5).Draw(t, "offsets")
				r := Range{First: head + 1, Last: last, TargetFirst: last * 7, TargetLast: last*7 + last - head - 1}
				if rapid.Bool().Draw(t, "joins") {
					r.TargetFirst, r.TargetLast = -1, -1
				}
				l.Acknowledged(k, r)
				heads[k] = last
			case 2, 3:
				bad := rapid.SliceOfN(rapid.IntRange(0, 9), 30, 30).Draw(t, "outcomes")
				sick := rapid.Int32Range(-1, 8).Draw(t, "sick")
				n := 0
				round(rapid.Bool().Draw(t, "flush"), func(f *frame) *Failure {
					n++
					switch b := bad[min(n, len(bad)-1)]; {
					case slices.ContainsFunc(f.about, func(q *queue) bool { return q.key == key(sick) }) && f.hook == abi.OnCommit:
						return &Failure{Hook: f.hook, Status: abi.Fatal}
					case n >= len(bad) || b > 2:
						return nil
					default:
						return &Failure{Hook: f.hook, Status: []abi.Status{abi.Retry, abi.Limit, abi.Retry}[b]}
					}
				})
			case 4:
				now = now.Add(time.Duration(rapid.IntRange(1, 40_000).Draw(t, "ms")) * time.Millisecond)
			}
			for k := range heads {
				if s := l.Safe(k); s > g.flushed[k] {
					t.Fatalf("%v is safe up to %d, flushed up to %d", k, s, g.flushed[k])
				}
			}
		}
		for range 3 {
			now = now.Add(time.Hour)
			round(true, func(*frame) *Failure { return nil })
		}
		for _, k := range slices.SortedFunc(maps.Keys(heads), func(a, b Key) int { return int(a.Partition - b.Partition) }) {
			if _, why := l.Halted(k); why != nil {
				continue
			}
			if s := l.Safe(k); s != heads[k] || g.flushed[k] != heads[k] || l.Waiting(k) != 0 {
				t.Fatalf("%v is safe up to %d and flushed up to %d of %d, %d wait", k, s, g.flushed[k], heads[k], l.Waiting(k))
			}
		}
	})
}
