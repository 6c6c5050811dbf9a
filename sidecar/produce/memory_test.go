package produce

import (
	"encoding/binary"
	"errors"
	"io"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"

	"mirror/sidecar/batch"
)

// old pushes n batches of one record, which is a month old.
func (s *source) old(n int) {
	for range n {
		s.p.Push(1, s.entryOf(month, batch.Gzip, 1, 1))
		s.p.Send()
	}
}

// What may be stored is not sent again once the leader may have forgotten it.
func TestAgedRecordsAreLookedForAndNotSentAgain(t *testing.T) {
	for _, err := range []error{io.EOF, kerr.RequestTimedOut, kerr.NotEnoughReplicasAfterAppend, kerr.UnknownServerError, kerr.NotLeaderForPartition} {
		s := newBench(t).partition("t", 0)
		s.old(3)
		s.p.answered(s.taken(1), answer{err: err})
		if !errors.Is(s.lost, ErrAged) || !errors.Is(s.lost, err) {
			t.Errorf("%v: lost is %v", err, s.lost)
		}
		if n := s.bench.frames.InUse(); n != 0 {
			t.Errorf("%v: %d bytes are held", err, n)
		}
	}
}

// Nothing of it can be there twice where nothing is stored.
func TestAgedRecordsThatAreCertainlyNotStoredAreSentAgain(t *testing.T) {
	s := newBench(t).partition("t", 0)
	s.old(3)
	s.known()
	a, b := s.taken(1), s.taken(1)
	s.p.answered(a, answer{err: kerr.NotEnoughReplicas})
	s.p.answered(b, answer{err: kerr.OutOfOrderSequenceNumber})
	s.p.wait(0)
	if x := s.taken(1); s.lost != nil || x != a {
		t.Errorf("lost: %v; sent again: %v", s.lost, x == a)
	}
	s.p.Stop()
}

// The last batch that a leader has counts: a young one keeps the others' producer.
func TestTheLastBatchSaysWhetherAProducerIsForgotten(t *testing.T) {
	s := newBench(t).partition("t", 0)
	s.old(1)
	s.known()
	s.push(batch.Gzip, 1)
	s.p.answered(s.taken(1), answer{err: io.EOF})
	s.p.wait(0)
	if x := s.taken(2); s.lost != nil || x == nil {
		t.Errorf("lost: %v; sent again: %v", s.lost, x != nil)
	}
	s.p.Stop()
}

// Records grow old while their leader is out of reach.
func TestWhatWaitsGrowsOld(t *testing.T) {
	s := newBench(t).partition("t", 0)
	s.push(batch.Gzip, 1)
	x := s.taken(1)
	s.p.answered(x, answer{err: io.EOF})
	s.p.wait(0)
	if s.lost != nil {
		t.Fatalf("lost at once: %v", s.lost)
	}
	binary.BigEndian.PutUint64(x.Batch[35:], uint64(time.Now().Add(-month).UnixMilli())) // time passes
	if x := s.taken(2); x != nil || !errors.Is(s.lost, ErrAged) {
		t.Errorf("sent again: %v; lost: %v", x != nil, s.lost)
	}
}

// A batch that is stored without the one before it is a gap, and sending the one
// before would make it a wrong order.
func TestAGapIsNoticed(t *testing.T) {
	for name, first := range map[string]error{"not stored": kerr.NotEnoughReplicas, "too large": kerr.MessageTooLarge, "bad": kerr.InvalidRecord} {
		t.Run(name, func(t *testing.T) {
			s := newBench(t).partition("t", 0)
			for range 3 {
				s.push(batch.Gzip, 1)
			}
			s.known()
			a, b := s.taken(1), s.taken(1)
			s.p.answered(a, answer{err: first})
			s.p.answered(b, answer{base: 1})
			if !errors.Is(s.lost, ErrOvertaken) || s.refused != nil {
				t.Errorf("lost: %v, refused: %v", s.lost, s.refused)
			}
			if s.acked != 0 {
				t.Errorf("acknowledged up to %d, want 0", s.acked)
			}
		})
	}
}

// The offsets show a wrong order that the codes did not.
func TestAWrongOrderIsNoticed(t *testing.T) {
	s := newBench(t).partition("t", 0)
	for range 3 {
		s.push(batch.Gzip, 1)
	}
	s.known()
	a, b := s.taken(1), s.taken(1)
	s.p.answered(a, answer{err: kerr.NotLeaderForPartition})
	s.p.answered(b, answer{base: 1})
	s.p.wait(0)
	s.p.answered(s.taken(1), answer{base: 2})
	if !errors.Is(s.lost, ErrOvertaken) || s.acked != 0 {
		t.Errorf("lost: %v, acknowledged up to %d", s.lost, s.acked)
	}
}

// One in flight, too, when an old producer may be forgotten between two batches.
func TestOneInFlightWhereAnOldProducerWasSilent(t *testing.T) {
	s := newBench(t).partition("t", 0)
	s.old(12)
	s.known()
	s.p.knownAt = time.Now().Add(-agedKnownFor - time.Second)
	x := s.taken(1)
	if x == nil || s.taken(1) != nil {
		t.Error("want one in flight")
	}
	s.p.answered(x, answer{})
	for range inFlight {
		if s.taken(1) == nil {
			t.Fatal("want five in flight once it is known")
		}
	}
	s.p.Stop()
}
