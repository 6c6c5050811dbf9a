package produce

import (
	"fmt"
	"testing"
	"time"

	"mirror/sidecar/batch"
)

// splitAt makes runs of pairs of offset and count.
func splitAt(pairs ...int64) (rs []batch.Run) {
	for i := 0; i < len(pairs); i += 2 {
		rs = append(rs, batch.Run{Source: pairs[i], Count: int32(pairs[i+1])})
	}
	return rs
}

// taken takes the next batch for a session and gives the request's hold back.
func (s *source) taken(session int64) *sent {
	x := s.p.take(session)
	if x != nil {
		x.held.Release()
	}
	return x
}

func TestUncompressedBatchesThatWaitAreMerged(t *testing.T) {
	b := newBench(t)
	s := b.partition("t", 0)
	s.push(batch.None, 3)
	s.next += 2 // offsets without records
	s.push(batch.None, 2)
	s.push(batch.Gzip, 1)
	s.push(batch.None, 1)
	s.p.Skip(1, s.next+10, 5)

	x := s.taken(1)
	if x.First != 0 || x.Last != 6 || x.count != 5 || x.Sources != 2 || !x.merged || fmt.Sprint(x.Runs) != fmt.Sprint(splitAt(0, 3, 5, 2)) {
		t.Errorf("merged: %+v", x.Entry)
	}
	if err := x.Batch.Verify(); err != nil {
		t.Error(err)
	}
	if got := fmt.Sprint(valuesOf(x.Batch)); got != "[0 1 2 5 6]" {
		t.Errorf("merged records %s", got)
	}
	if !s.p.Merging() {
		t.Error("it does not say that it merges")
	}
	s.p.answered(x, answer{})
	if x = s.taken(1); x.merged || x.count != 1 || x.First != 7 {
		t.Errorf("the compressed one: %+v", x.Entry)
	}
	s.p.answered(x, answer{})
	if x = s.taken(1); x.count != 1 || x.First != 8 || x.Last != 19 || x.LeaderEpoch != 5 {
		t.Errorf("the last one, with what is skipped: %+v", x.Entry)
	}
	s.p.Stop()
}

// TestABatchThatCanGrowWaitsForAnAnswer: with nothing in flight a batch goes at
// once, with something in flight when it is full or the answer is there.
func TestABatchThatCanGrowWaitsForAnAnswer(t *testing.T) {
	b := newBench(t)
	s := b.partition("t", 0)
	s.push(batch.None, 1)
	first := s.taken(1)
	s.p.answered(first, answer{}) // now the producer is known
	s.push(batch.None, 2)
	if first = s.taken(1); first == nil || first.count != 2 {
		t.Fatalf("nothing in flight, taken: %+v", first)
	}
	for range 3 {
		s.push(batch.None, 2)
		if x := s.taken(1); x != nil {
			t.Fatalf("something in flight, taken: %+v", x.Entry)
		}
	}
	s.p.answered(first, answer{})
	first = s.taken(1)
	if first == nil || first.count != 6 {
		t.Fatalf("answered, taken: %+v", first)
	}
	s.push(batch.None, 2)
	s.push(batch.Gzip, 2)
	if x := s.taken(1); x == nil || x.count != 2 {
		t.Errorf("what another codec follows cannot grow, taken: %+v", x)
	}
	if x := s.taken(1); x == nil || x.Batch.Codec() != batch.Gzip {
		t.Errorf("what is compressed does not grow, taken: %+v", x)
	}
	for full := 0; full < mergeTo; full += len(s.p.waiting[len(s.p.waiting)-1].Batch) {
		if x := s.taken(1); x != nil {
			t.Fatalf("with %d bytes waiting, taken: %+v", full, x.Entry)
		}
		s.p.Push(1, s.entry(batch.None, 10, 5000))
	}
	if x := s.taken(1); x == nil || len(x.Batch) < mergeTo/2 || len(x.Batch) > mergeTo+mergeTo/10 {
		t.Errorf("a full one, taken: %+v", x)
	}
	s.p.Stop()
}

func TestMergingKeepsToTheTopicsLimit(t *testing.T) {
	b := newBench(t)
	s := b.partition("t", 0)
	s.p.SetLimit(3000)
	for range 12 {
		s.p.Push(1, s.entry(batch.None, 2, 400))
	}
	for n := 0; ; n++ {
		x := s.taken(1)
		if x == nil {
			if s.p.Idle() {
				break
			}
			t.Fatal("nothing to take")
		}
		if len(x.Batch) > 3000 {
			t.Errorf("a batch of %d bytes", len(x.Batch))
		}
		s.p.answered(x, answer{})
	}
	if s.acked != 23 || len(s.acks) != 4 {
		t.Errorf("acknowledged up to %d in %d batches, want 23 in 4", s.acked, len(s.acks))
	}
}

func TestSmallCompressedBatchesAreRecompressedOnALongLink(t *testing.T) {
	b := newBench(t)
	s := b.partition("t", 0)
	fill := func(trip time.Duration) (first *sent) {
		s.push(batch.Gzip, 1)
		first = s.taken(1)
		s.p.answered(first, answer{trip: trip})
		for range inFlight + 6 {
			s.push(batch.Gzip, 3)
		}
		for n := range inFlight {
			x := s.taken(1)
			if n == 0 {
				first = x
			}
		}
		return first
	}
	drain := func() (n int) {
		for len(s.p.sent) > 0 || len(s.p.waiting) > 0 {
			for s.taken(1) != nil {
				n++
			}
			for _, x := range append([]*sent(nil), s.p.sent...) {
				s.p.answered(x, answer{trip: s.p.trip})
			}
		}
		return n
	}
	fill(longTrip - 1)
	s.p.Compact()
	if n := len(s.p.waiting); n != 6 {
		t.Errorf("on a short link %d batches wait, want 6", n)
	}
	drain()

	fill(longTrip)
	from := s.p.waiting[0].First
	s.p.Compact()
	if n := len(s.p.waiting); n != 1 {
		t.Fatalf("on a long link %d batches wait, want 1", n)
	}
	e := s.p.waiting[0]
	if e.First != from || e.Last != s.next-1 || e.Sources != 6 || e.Reason != batch.ReasonSmall || e.Batch.Count() != 18 || e.Batch.Codec() != batch.Gzip {
		t.Errorf("recompressed: %+v", e)
	}
	if n := drain(); n != 1 {
		t.Errorf("%d more batches were taken, want 1", n)
	}
	if s.acked != s.next-1 || b.frames.InUse() != 0 {
		t.Errorf("acknowledged up to %d of %d, %d bytes held", s.acked, s.next-1, b.frames.InUse())
	}
	s.p.Stop()
}

// What is shed while it is being recompressed is not sent.
func TestACompactionThatIsOvertakenIsDropped(t *testing.T) {
	b := newBench(t)
	s := b.partition("t", 0)
	s.push(batch.Gzip, 1)
	s.p.answered(s.taken(1), answer{trip: longTrip})
	for range inFlight + 6 {
		s.push(batch.Gzip, 3)
	}
	for range inFlight {
		s.taken(1)
	}
	c := s.p.beginCompact()
	from := c.from
	s.p.unreachable(errNoLeader, false)
	if s.shedFrom != from {
		t.Errorf("shed from %d, want %d", s.shedFrom, from)
	}
	if s.p.endCompact(c, c.entries[0].Frame, c.entries[0].Batch, 6) {
		t.Error("its result is in use")
	}
	if len(s.p.waiting) != 0 {
		t.Errorf("%d batches wait", len(s.p.waiting))
	}
	s.p.Stop()
	if n := b.frames.InUse(); n != 0 {
		t.Errorf("%d bytes are held", n)
	}
}
