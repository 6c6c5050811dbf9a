package produce

import (
	"errors"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"mirror/sidecar/batch"
)

func (b *bench) fault(err *kerr.Error, count int) *kfake.FaultHandle {
	return b.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Err: err, Count: count})
}

func (p *Partition) inFlight() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.flying
}

func TestACutConnectionLosesAndRepeatsNothing(t *testing.T) {
	b := newBench(t)
	b.create("t", 1, nil)
	s := b.partition("t", 0)
	b.run(s.p)
	s.push(batch.Gzip, 1)
	s.stored()
	for range 5 {
		cut := make(chan struct{})
		b.ControlKey(int16(kmsg.Produce), func(kmsg.Request) (kmsg.Response, error, bool) {
			b.SleepControl(func() { <-cut })
			return nil, errors.New("cut"), true
		})
		for range 8 {
			s.push(batch.Gzip, 2)
		}
		eventually(t, "five in flight", func() bool { return s.p.inFlight() == inFlight })
		close(cut)
		s.stored()
	}
	if s.lost != nil || s.refused != nil {
		t.Errorf("lost %v, refused %v", s.lost, s.refused)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if n := len(b.failed); n < 5 {
		t.Errorf("%d failed connections are told of, want 5", n)
	}
}

// These are answered as failures, and the first two are stored all the same.
func TestFailuresThatPassLoseAndRepeatNothing(t *testing.T) {
	for _, err := range []*kerr.Error{
		kerr.RequestTimedOut, kerr.NotEnoughReplicasAfterAppend, kerr.NotEnoughReplicas, kerr.NotLeaderForPartition,
		kerr.UnknownTopicOrPartition, kerr.KafkaStorageError, kerr.CorruptMessage, kerr.UnknownServerError,
	} {
		t.Run(err.Message, func(t *testing.T) {
			b := newBench(t)
			b.create("t", 1, nil)
			s := b.partition("t", 0)
			b.run(s.p)
			s.push(batch.Gzip, 1)
			s.stored()
			b.fault(err, 2)
			for range 12 {
				s.push(batch.Gzip, 2)
			}
			s.stored()
			if len(s.failures) == 0 || !errors.Is(s.failures[0], err) {
				t.Errorf("told of %v", s.failures)
			}
		})
	}
}

func TestAPartitionFollowsItsLeader(t *testing.T) {
	b := newBench(t)
	b.create("t", 1, nil)
	s := b.partition("t", 0)
	b.run(s.p)
	for i := range 10 {
		if err := b.MoveTopicPartition("t", 0, int32(i%2)); err != nil {
			t.Fatal(err)
		}
		for range 6 {
			s.push(batch.Gzip, 1)
		}
		if i%3 == 0 {
			s.stored()
		}
	}
	s.stored()
}

// shed checks that all that was pushed has been given back.
func (s *source) shed(from int64) {
	s.bench.Helper()
	s.until("what waits to be given back", func() bool { return s.shedFrom == from })
	eventually(s.bench.T, "the memory", func() bool { return s.bench.frames.InUse() == 0 })
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.readies != 0 {
		s.bench.Errorf("it is said to be ready")
	}
}

// again pushes what was shed, once it is wanted.
func (s *source) again() {
	s.bench.Helper()
	s.until("the leader", func() bool { return s.readies > 0 })
	s.mu.Lock()
	end := s.next
	s.next, s.shedFrom = s.shedFrom, -1
	s.mu.Unlock()
	for s.next < end {
		s.push(batch.Gzip, 1)
	}
	s.stored()
}

func TestABrokerOutOfReachKeepsNoMemory(t *testing.T) {
	b := newBench(t)
	b.create("t", 2, nil)
	s, late := b.partition("t", 0), b.partition("t", 1)
	if err := b.leaders.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	for n := range int32(2) {
		b.leaders.Learn("t", n, 99, 1000)
	}
	b.run(s.p, late.p)
	for range 10 {
		s.push(batch.Gzip, 1)
	}
	s.shed(0)
	// Now that the broker is known to be down nothing waits for it to answer.
	late.push(batch.Gzip, 1)
	if late.until("the last one", func() bool { return late.shedFrom == 0 }); b.frames.InUse() != 0 {
		t.Errorf("%d bytes are held", b.frames.InUse())
	}
	for n := range int32(2) {
		b.leaders.Learn("t", n, b.LeaderFor("t", n), 1001)
	}
	s.again()
	late.again()
}

func TestAPartitionWithoutALeaderKeepsNoMemory(t *testing.T) {
	b := newBench(t)
	s := b.partition("t", 0)
	b.run(s.p)
	for range 3 {
		s.push(batch.Gzip, 1)
	}
	s.shed(0)
	s.until("failures", func() bool { return len(s.failures) > 3 }) // it goes on to be told
	if !errors.Is(s.failures[0], errNoLeader) {
		t.Errorf("told of %v", s.failures[0])
	}
	b.create("t", 1, nil)
	s.p.mu.Lock()
	s.p.id = b.TopicInfo("t").TopicID
	s.p.mu.Unlock()
	s.again()
}

func TestWhatIsCertainlyNotStoredIsShed(t *testing.T) {
	b := newBench(t)
	b.create("t", 1, nil)
	s := b.partition("t", 0)
	b.run(s.p)
	s.push(batch.Gzip, 1)
	s.stored()
	refuse := b.fault(kerr.NotEnoughReplicas, -1)
	for range 10 {
		s.push(batch.Gzip, 1)
	}
	s.until("what waits to be given back", func() bool { return s.shedFrom == 1 })
	eventually(t, "the memory", func() bool { return b.frames.InUse() == 0 })
	refuse.Remove()
	s.again()
}

func TestWhatMayBeStoredIsSetAsideAndSentAsItIs(t *testing.T) {
	b := newBench(t)
	b.create("t", 1, nil)
	s := b.partition("t", 0)
	b.run(s.p)
	trouble := b.fault(kerr.NotEnoughReplicasAfterAppend, -1)
	for range 10 {
		s.push(batch.Gzip, 1)
	}
	s.shed(1)
	if b.producer.SetAside() == 0 {
		t.Error("nothing is set aside")
	}
	trouble.Remove()
	s.again()
	if n := b.producer.SetAside(); n != 0 {
		t.Errorf("%d bytes are still set aside", n)
	}
}

// As much as the budget may be set aside; what is more stays within the budget.
func TestWhatIsSetAsideIsBounded(t *testing.T) {
	b := newBench(t)
	limit := int(b.frames.Limit())
	s := b.partition("t", 0)
	for range 6 {
		s.p.Push(1, s.entry(batch.None, 1, limit/2-1000))
		s.p.Send()
		x := s.p.take(1)
		s.p.answered(x, answer{err: kerr.RequestTimedOut, base: -1})
		x.held.Release()
		s.p.mu.Lock()
		s.p.shed()
		s.p.wait(0)
		s.p.mu.Unlock()
		if n := b.producer.SetAside(); n > b.frames.Limit() {
			t.Errorf("%d bytes are set aside", n)
		}
		s.p.mu.Lock()
		s.p.next = len(s.p.sent) // the next one
		s.p.mu.Unlock()
	}
	s.p.Stop()
	if n := b.frames.InUse() + b.producer.SetAside(); n != 0 {
		t.Errorf("%d bytes of frames are still held", n)
	}
}
