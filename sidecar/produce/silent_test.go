package produce

import (
	"strings"
	"sync/atomic"
	"testing"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"mirror/sidecar/batch"
)

// hang has a broker that leaves produce requests unanswered until release.
func (b *bench) hang(node int32) (release func(), hanging func() bool) {
	var n atomic.Int64
	gate := make(chan struct{})
	b.ControlKey(int16(kmsg.Produce), func(kmsg.Request) (kmsg.Response, error, bool) {
		b.KeepControl()
		if b.CurrentNode() == node {
			n.Add(1)
			b.SleepControl(func() { <-gate })
		}
		return nil, nil, false
	})
	return func() { close(gate) }, func() bool { return n.Load() > 0 }
}

// A broker hangs with requests, and another takes over: what it has not answered
// goes there, long before it may be given up for silent.
func TestWhatAHungBrokerLedGoesOnAtTheNextLeader(t *testing.T) {
	b := newBench(t, kfake.NumBrokers(2))
	b.create("t", 2, nil)
	for p := range int32(2) {
		if err := b.MoveTopicPartition("t", p, 0); err != nil {
			t.Fatal(err)
		}
	}
	s, stays := b.partition("t", 0), b.partition("t", 1)
	b.run(s.p, stays.p)
	s.push(batch.Gzip, 1)
	s.stored()
	release, hanging := b.hang(0)
	for range 3 {
		s.push(batch.Gzip, 2)
	}
	eventually(t, "the broker to hang", hanging)
	if err := b.MoveTopicPartition("t", 0, 1); err != nil {
		t.Fatal(err)
	}
	s.stored()
	s.until("the end of waiting for it to be told", func() bool {
		return len(s.failures) == 1 && strings.Contains(s.failures[0].Error(), "others lead by now")
	})
	release()
	s.push(batch.Gzip, 2)
	s.stored()
	if s.lost != nil || s.refused != nil {
		t.Errorf("lost %v, refused %v", s.lost, s.refused)
	}
}

// A broker that leads what it has not answered is waited for.
func TestAHungLeaderIsWaitedFor(t *testing.T) {
	b := newBench(t, kfake.NumBrokers(1))
	b.create("t", 1, nil)
	s := b.partition("t", 0)
	b.run(s.p)
	s.push(batch.Gzip, 1)
	s.stored()
	release, hanging := b.hang(0)
	s.push(batch.Gzip, 2)
	eventually(t, "the broker to hang", hanging)
	l := b.producer.links[route{}]
	l.mu.Lock()
	l.asked[0].at = l.asked[0].at.Add(-silence)
	l.mu.Unlock()
	l.lookOut()
	if s.p.inFlight() != 1 {
		t.Error("the request was given up")
	}
	release()
	s.stored()
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.failed) > 0 {
		t.Errorf("failed: %v", b.failed)
	}
}
