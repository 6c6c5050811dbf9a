package produce

import (
	"io"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"

	"mirror/sidecar/batch"
)

// One batch alone is on its way until the leader has shown that it knows the
// producer: a leader that does not takes a second one whatever became of the first.
func TestOneInFlightWhereTheProducerMayBeUnknown(t *testing.T) {
	for name, c := range map[string]func(s *source) (session int64){
		"at the beginning":      func(*source) int64 { return 1 },
		"on another connection": func(s *source) int64 { s.known(); return 2 },
		"after a failure": func(s *source) int64 {
			s.known()
			s.p.answered(s.taken(1), answer{err: kerr.NotEnoughReplicas})
			return 1
		},
		"after a cut": func(s *source) int64 {
			s.known()
			s.p.answered(s.taken(1), answer{err: io.EOF})
			return 1
		},
		"after a long silence": func(s *source) int64 {
			s.known()
			s.p.knownAt = time.Now().Add(-knownFor - time.Second)
			return 1
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newBench(t).partition("t", 0)
			for range 12 {
				s.push(batch.Gzip, 1)
			}
			session := c(s)
			s.p.wait(0)
			x := s.taken(session)
			if x == nil {
				t.Fatal("nothing to take")
			}
			if s.taken(session) != nil {
				t.Error("a second one is on its way")
			}
			s.p.answered(x, answer{})
			for n := range inFlight {
				if s.taken(session) == nil {
					t.Fatalf("%d in flight once the producer is known, want %d", n, inFlight)
				}
			}
			if s.taken(session) != nil {
				t.Error("more than five are in flight")
			}
			s.p.Stop()
		})
	}
}

// known has the leader acknowledge something.
func (s *source) known() { s.p.answered(s.taken(1), answer{}) }

// Until what was dropped is answered it may yet be stored, after what comes next.
func TestWhatWasDroppedIsWaitedFor(t *testing.T) {
	s := newBench(t).partition("t", 0)
	s.push(batch.None, 1)
	x := s.taken(1)
	s.p.Stop()
	if s.p.Idle() {
		t.Error("idle with a request on its way")
	}
	s.p.answered(x, answer{})
	if !s.p.Idle() {
		t.Error("not idle when it is answered")
	}
	if s.acked != -1 {
		t.Errorf("acknowledged up to %d", s.acked)
	}
}

func TestThePreviousLeaderAnswersFirst(t *testing.T) {
	s := newBench(t).partition("t", 0)
	s.push(batch.Gzip, 1)
	s.known()
	for range 3 {
		s.push(batch.Gzip, 1)
	}
	a, b := s.taken(1), s.taken(1)
	if s.taken(2) != nil {
		t.Error("the new leader gets something before the old one has answered")
	}
	s.p.answered(a, answer{err: kerr.NotLeaderForPartition})
	if s.taken(2) != nil {
		t.Error("the new leader gets something before the old one has answered all")
	}
	s.p.answered(b, answer{err: kerr.NotLeaderForPartition})
	s.p.wait(0)
	if x := s.taken(2); x != a || x.tries != 2 {
		t.Errorf("the new leader gets %+v, want what the old one refused", x)
	}
	s.p.Stop()
}

// A sequence goes from 2^31-1 to 0 (KIP-98), also within a batch that is split.
func TestSequencesWrap(t *testing.T) {
	s := newBench(t).partition("t", 0)
	s.p.sequence = 1<<31 - 3
	s.push(batch.Gzip, 6)
	s.push(batch.Gzip, 1)
	x := s.taken(1)
	if x.Batch.BaseSequence() != 1<<31-3 {
		t.Errorf("sequence %d", x.Batch.BaseSequence())
	}
	s.p.answered(x, answer{err: kerr.MessageTooLarge})
	var got []int32
	for n := 0; n < 3; n++ {
		x := s.taken(1)
		got = append(got, x.Batch.BaseSequence())
		s.p.answered(x, answer{})
	}
	if want := []int32{1<<31 - 3, 0, 3}; got[0] != want[0] || got[1] != want[1] || got[2] != want[2] {
		t.Errorf("sequences %v, want %v", got, want)
	}
	if a := s.acks[1]; a.Sequence != 2 {
		t.Errorf("the sequence of the last record of the second half is %d, want 2", a.Sequence)
	}
}
