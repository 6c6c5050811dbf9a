package produce

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"mirror/sidecar/batch"
)

// of says whether a produce request has a batch of the topic.
func of(q kmsg.Request, id [16]byte) bool {
	for _, t := range q.(*kmsg.ProduceRequest).Topics {
		if t.TopicID == id {
			return true
		}
	}
	return false
}

// A partition whose followers are slow goes on over a connection of its own, and
// the others of its leader do not wait for it.
func TestAPartitionWithSlowFollowersIsIsolated(t *testing.T) {
	b := newBench(t, kfake.NumBrokers(1))
	b.create("slow", 1, nil)
	b.create("quick", 1, nil)
	id := b.TopicInfo("slow").TopicID
	slow, quick := b.partition("slow", 0), b.partition("quick", 0)
	b.run(slow.p, quick.p)
	late := b.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Topic: "slow", Err: kerr.RequestTimedOut, Count: 1})
	slow.push(batch.Gzip, 1)
	slow.until("the time-out", func() bool { return len(slow.failures) > 0 })
	if !slow.p.Isolated() || quick.p.Isolated() || late.Hits() != 1 {
		t.Fatalf("isolated: %v, and the other: %v", slow.p.Isolated(), quick.p.Isolated())
	}
	slow.stored() // the same bytes again, over the other connection

	// Now the broker waits for its followers for long.
	release := make(chan struct{})
	var times atomic.Int64
	b.ControlKey(int16(kmsg.Produce), func(q kmsg.Request) (kmsg.Response, error, bool) {
		b.KeepControl()
		want := sharedTime
		if of(q, id) {
			want = asideTime
			b.SleepControl(func() { <-release })
		}
		if got := q.(*kmsg.ProduceRequest).TimeoutMillis; int64(got) != want.Milliseconds() {
			times.Add(1)
		}
		return nil, nil, false
	})
	for range 6 {
		slow.push(batch.Gzip, 1)
	}
	eventually(t, "the broker to wait for followers", func() bool { return slow.p.inFlight() > 0 })
	for range 20 {
		quick.push(batch.Gzip, 1)
		quick.stored()
	}
	if slow.acked != 0 {
		t.Error("the broker did not wait: this proves nothing")
	}
	close(release)
	slow.stored()
	if times.Load() > 0 {
		t.Errorf("%d requests with another time-out than their connection's", times.Load())
	}
}

// Once all its answers have been quick for a while it goes back.
func TestAnIsolatedPartitionComesBack(t *testing.T) {
	s := newBench(t).partition("t", 0)
	for range 5 {
		s.push(batch.Gzip, 1)
	}
	answered := func(took time.Duration, err error) {
		s.p.wait(0)
		s.p.answered(s.taken(1), answer{took: took, err: err})
	}
	ago := func(d time.Duration) { s.p.slowAt = time.Now().Add(-d) }
	for _, step := range []struct {
		name string
		do   func()
		want bool
	}{
		{"quick from the beginning", func() { answered(0, nil) }, false},
		{"late, but stored", func() { answered(2*quickAnswer, nil) }, false},
		{"timed out", func() { answered(sharedTime, kerr.RequestTimedOut) }, true},
		{"quick for a moment", func() { answered(0, nil) }, true},
		{"late after a while", func() { ago(2 * quickFor); answered(2*quickAnswer, nil) }, true},
		{"quick for a while", func() { ago(2 * quickFor); answered(0, nil) }, false},
	} {
		if step.do(); s.p.Isolated() != step.want {
			t.Fatalf("%s: isolated: %v", step.name, s.p.Isolated())
		}
	}
	s.p.Stop()
}

// However many are slow, there are few connections.
func TestConnectionsAsideAreFew(t *testing.T) {
	b := newBench(t)
	ways := map[uint32]bool{}
	for n := range int32(50) {
		p := b.producer.Partition("t", n, nil)
		p.isolate()
		ways[p.aside.Load()] = true
	}
	if len(ways) != asideLinks || ways[0] {
		t.Errorf("50 slow partitions go over %v", ways)
	}
}
