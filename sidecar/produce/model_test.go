package produce

import (
	"errors"
	"fmt"
	"io"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"pgregory.net/rapid"

	"mirror/sidecar/batch"
	"mirror/sidecar/cluster"
	"mirror/sidecar/wire"
)

// The model: a broker that keeps Kafka's rules for idempotent producers, and an
// owner that pushes records 0, 1, 2, … whose values are their offsets. Whatever
// is lost, refused, cut off or answered late, the log must hold each record once
// and in order, up to the first that the broker will not have.

// broker is one leader's log of the partition.
type broker struct {
	records []int64 // values, by offset
	limit   int     // max.message.bytes
	poison  int64   // a record that is refused
	next    int32   // sequence; -1: the producer is not known
	last    []stored
}

type stored struct {
	sequence, count int32
	base            int64
}

// receive is what a broker does with a produce request's batch.
func (b *broker) receive(bytes batch.Batch) answer {
	if err := bytes.Verify(); err != nil {
		return answer{err: kerr.CorruptMessage, base: -1}
	}
	if len(bytes) > b.limit {
		return answer{err: kerr.MessageTooLarge, base: -1}
	}
	sequence, count := bytes.BaseSequence(), bytes.Count()
	for _, s := range b.last {
		if s.sequence == sequence && s.count == count {
			return answer{base: s.base} // a resend: not stored again
		}
	}
	values := valuesOf(bytes)
	for i, v := range values {
		if v == b.poison {
			return answer{err: kerr.InvalidRecord, base: -1, bad: []recordError{{index: int32(i), message: "poison"}}}
		}
	}
	if b.next >= 0 && sequence != b.next {
		return answer{err: kerr.OutOfOrderSequenceNumber, base: -1}
	}
	s := stored{sequence, count, int64(len(b.records))}
	b.records = append(b.records, values...)
	b.next = batch.NextSequence(sequence, count)
	b.last = append(b.last, s)
	if len(b.last) > 5 {
		b.last = b.last[1:]
	}
	return answer{base: s.base}
}

func valuesOf(b batch.Batch) (vs []int64) {
	for r, err := range b.Records(1 << 20) {
		if err != nil {
			panic(err)
		}
		var v int64
		fmt.Sscan(string(r.Value), &v)
		vs = append(vs, v)
	}
	return vs
}

// ledger is the owner: what it was told.
type ledger struct {
	t          *rapid.T
	b          *broker
	acked      int64 // last source offset
	stored     int64 // records
	refused    *Refusal
	lost       error
	shedFrom   int64 // -1: nothing was shed
	generation uint64
}

func (l *ledger) Acknowledged(a Ack) {
	if a.Last < l.acked {
		l.t.Fatalf("acknowledged %d after %d", a.Last, l.acked)
	}
	l.acked = a.Last
	var n int32
	for _, r := range a.Runs {
		for i := range r.Count {
			if at := a.TargetOffset + int64(n); l.b.records[at] != r.Source+int64(i) {
				l.t.Fatalf("source offset %d is said to be at target offset %d, where record %d is", r.Source+int64(i), at, l.b.records[at])
			}
			n++
		}
	}
	if n != a.Count {
		l.t.Fatalf("%d records in the runs, %d in the acknowledgement", n, a.Count)
	}
	l.stored += int64(n)
}

func (l *ledger) Refused(r Refusal) { l.refused = &r }
func (l *ledger) Lost(err error)    { l.lost = err }
func (l *ledger) Failed(error, int) {}
func (l *ledger) Starved()          {}
func (l *ledger) Ready()            {}
func (l *ledger) Shed(from int64) uint64 {
	l.shedFrom = from
	l.generation++
	return l.generation
}

// flight is a request on its way, or its answer on the way back.
type flight struct {
	s        *sent
	bytes    batch.Batch
	received bool
	answer
}

func TestNothingIsLostRepeatedOrReordered(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		frames := wire.NewPool(1 << 20)
		b := &broker{limit: rapid.IntRange(90, 4000).Draw(t, "limit"), poison: -1, next: -1}
		if rapid.Bool().Draw(t, "poisoned") {
			b.poison = rapid.Int64Range(0, 60).Draw(t, "poison")
		}
		l := &ledger{t: t, b: b, acked: -1, shedFrom: -1, generation: 1}
		producer := New(Options{Leaders: cluster.NewLeaders(nil), Frames: frames, MaxDecompressed: 1 << 20, Failed: func(error) {}})
		p := producer.Partition("t", 0, l)
		p.Reset(Start{Generation: 1, Producer: batch.Producer{ID: 7}})
		if rapid.Bool().Draw(t, "limit known") {
			p.SetLimit(b.limit)
		}

		var flying []*flight
		next := int64(0) // source offset
		var pushed []int64
		session := int64(1)
		uneasy := false
		push := func() {
			var w batch.Builder
			first := next
			n := rapid.IntRange(1, 6).Draw(t, "records")
			hole := rapid.Bool().Draw(t, "hole")
			e := Entry{First: first, Sources: 1}
			for i := range n {
				if hole && i > 0 && i%2 == 0 {
					next++ // an offset without a record
				}
				w.Add(batch.Record{Value: fmt.Append(nil, next), Timestamp: next})
				pushed = append(pushed, next)
				if k := len(e.Runs) - 1; k >= 0 && e.Runs[k].Source+int64(e.Runs[k].Count) == next {
					e.Runs[k].Count++
				} else {
					e.Runs = append(e.Runs, batch.Run{Source: next, Count: 1})
				}
				next++
			}
			codec := batch.Codec(rapid.IntRange(0, 4).Draw(t, "codec"))
			bytes, err := w.Build(nil, codec)
			if err != nil {
				t.Fatal(err)
			}
			e.Frame = frames.Get(len(bytes))
			e.Batch = batch.Batch(e.Frame.Bytes())
			copy(e.Batch, bytes)
			e.Last = next - 1
			p.Push(l.generation, e)
		}
		take := func() {
			s := p.take(session)
			if s == nil {
				return
			}
			// What a request carries is encoded at once.
			flying = append(flying, &flight{s: s, bytes: append(batch.Batch(nil), s.Batch...)})
			s.held.Release()
		}
		receive := func(lose error) {
			for _, f := range flying {
				if !f.received {
					f.received = true
					if lose != nil {
						f.answer = answer{err: lose, base: -1}
					} else {
						f.answer = b.receive(f.bytes)
					}
					return
				}
			}
		}
		answer1 := func() {
			if len(flying) == 0 || !flying[0].received {
				return
			}
			f := flying[0]
			flying = flying[1:]
			uneasy = f.answer.err != nil
			p.answered(f.s, f.answer)
		}
		cut := func() {
			n := rapid.IntRange(0, len(flying)).Draw(t, "received before the cut")
			for i, f := range flying {
				if i < n && !f.received {
					b.receive(f.bytes)
				}
				f.received, f.answer = true, answer{err: io.EOF, base: -1}
			}
			for len(flying) > 0 {
				answer1()
			}
			session++
		}
		// A broker forgets a producer when it is restarted, or when what it has of it
		// is old. After a failure, that is, or on a new connection; without one it is
		// trusted not to.
		forget := func() {
			stored := len(p.sent) > 0 && b.next != p.sent[0].sequence
			if len(flying) == 0 && !stored && (uneasy || p.session != session) {
				b.next, b.last = -1, nil
			}
		}
		settle := func() {
			p.mu.Lock()
			p.wait(0)
			p.mu.Unlock()
			if l.shedFrom >= 0 { // the source is read again from there
				for len(pushed) > 0 && pushed[len(pushed)-1] >= l.shedFrom {
					pushed = pushed[:len(pushed)-1]
				}
				next, l.shedFrom = l.shedFrom, -1
			}
		}
		t.Repeat(map[string]func(*rapid.T){
			"push": func(*rapid.T) {
				if l.refused == nil {
					push()
				}
			},
			"skip": func(*rapid.T) {
				if l.refused == nil {
					p.Skip(l.generation, next, 0)
					next++
				}
			},
			"take":    func(*rapid.T) { take() },
			"receive": func(*rapid.T) { receive(nil) },
			"not stored": func(*rapid.T) {
				// Refused before it is looked at, and all behind it then has a gap.
				receive(rapid.SampledFrom([]error{kerr.NotEnoughReplicas, kerr.NotLeaderForPartition}).Draw(t, "err"))
			},
			"answer": func(*rapid.T) { answer1() },
			"forget": func(*rapid.T) { forget() },
			"cut":    func(*rapid.T) { cut() },
			"":       func(*rapid.T) { settle() },
		})
		for n := 0; !p.Idle(); n++ {
			if n > 10000 {
				t.Fatal("it does not come to an end")
			}
			settle()
			take()
			receive(nil)
			answer1()
		}
		settle()

		want := pushed
		if l.refused != nil {
			if l.refused.Offset != b.poison || b.poison < 0 {
				// One record alone can be larger than the limit.
				if !errors.Is(l.refused.Err, kerr.MessageTooLarge) {
					t.Fatalf("refused at %d: %v; the poison is %d", l.refused.Offset, l.refused.Err, b.poison)
				}
			}
			for len(want) > 0 && want[len(want)-1] >= l.refused.Offset {
				want = want[:len(want)-1]
			}
		} else if l.acked != next-1 {
			t.Fatalf("acknowledged up to %d, pushed up to %d", l.acked, next-1)
		}
		if l.lost != nil {
			t.Fatalf("lost: %v", l.lost)
		}
		if fmt.Sprint(b.records) != fmt.Sprint(want) {
			t.Fatalf("the log has %v, want %v", b.records, want)
		}
		if l.stored != int64(len(want)) {
			t.Fatalf("%d records acknowledged, %d stored", l.stored, len(want))
		}
		p.Stop()
		if n := frames.InUse() + producer.SetAside(); n != 0 {
			t.Fatalf("%d bytes of frames are still held", n)
		}
	})
}
