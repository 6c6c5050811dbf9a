package produce

import (
	"testing"
	"time"

	"mirror/sidecar/batch"
)

// more is pushed while the source has more after it.
func (s *source) more(codec batch.Codec, n int) {
	s.bench.Helper()
	e := s.entry(codec, n, 1)
	e.More = true
	s.p.Push(s.generation, e)
	s.p.Send()
}

// lingersFor says how long it may still linger.
func (s *source) lingersFor(d time.Duration) {
	s.p.mu.Lock()
	defer s.p.mu.Unlock()
	s.p.lingerTo = time.Now().Add(d)
}

// While the source has more a batch that can grow waits for that, though nothing is
// in flight: until it is full, or the last one is there, or the time is over.
func TestABatchLingersWhileTheSourceHasMore(t *testing.T) {
	b := newBench(t)
	s := b.partition("t", 0)
	s.generation = 1
	goes := func(why string, count int32) {
		t.Helper()
		x := s.taken(1)
		if x == nil || x.count != count {
			t.Fatalf("%s, taken: %+v", why, x)
		}
		s.p.answered(x, answer{})
		if !s.p.lingerTo.IsZero() {
			t.Errorf("%s: it lingers still", why)
		}
	}
	waits := func(why string) {
		t.Helper()
		if x := s.taken(1); x != nil {
			t.Fatalf("%s, taken: %+v", why, x.Entry)
		}
	}
	s.push(batch.None, 1)
	goes("the source has no more", 1)

	s.more(batch.None, 2)
	waits("the source has more")
	s.lingersFor(time.Hour)
	s.more(batch.None, 2)
	waits("the source has still more")
	s.push(batch.None, 3)
	goes("that was the last", 7)

	s.more(batch.None, 2)
	waits("the source has more")
	s.lingersFor(0)
	goes("the time is over", 2)

	s.more(batch.None, 2)
	waits("the source has more")
	s.lingersFor(time.Hour)
	s.more(batch.Gzip, 1)
	goes("what another codec follows cannot grow", 2)
	goes("what is compressed does not grow", 1)

	s.more(batch.None, 2)
	waits("the source has more")
	s.lingersFor(time.Hour)
	s.p.Push(1, s.entry(batch.None, 100, mergeTo/100))
	goes("it is full", 2)
	goes("the full one", 100)
	s.p.Stop()
}

// Nobody else wakes it when the time is over.
func TestWhatLingersGoesByItself(t *testing.T) {
	b := newBench(t)
	b.create("t", 1, nil)
	s := b.partition("t", 0)
	b.run(s.p)
	s.push(batch.None, 1)
	s.stored()
	s.more(batch.None, 2)
	s.stored()
	if !s.p.lingerTo.IsZero() {
		t.Error("it lingers still")
	}
}
