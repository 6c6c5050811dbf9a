package fetch

import (
	"sync/atomic"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// A broker hangs with the request, and another takes over: reading goes on there,
// long before the first may be given up for silent.
func TestWhatAHungBrokerLedIsReadAtTheNextLeader(t *testing.T) {
	b := newBench(t)
	b.create("t", 1)
	if err := b.MoveTopicPartition("t", 0, 0); err != nil {
		t.Fatal(err)
	}
	b.write("t", 0, 2, 1)
	r := b.reader("t", 0, 0)
	b.run(r)
	r.gets(1, 0, 2)
	var hanging atomic.Bool
	release := make(chan struct{})
	b.ControlKey(int16(kmsg.Fetch), func(kmsg.Request) (kmsg.Response, error, bool) {
		b.KeepControl()
		if b.CurrentNode() == 0 {
			hanging.Store(true)
			b.SleepControl(func() { <-release })
		}
		return nil, nil, false
	})
	r.until("the broker to hang", hanging.Load)
	if err := b.MoveTopicPartition("t", 0, 1); err != nil {
		t.Fatal(err)
	}
	b.write("t", 0, 3, 1)
	r.gets(1, 0, 5)
	if n := b.failures(); n != 1 {
		t.Errorf("%d failed connections are told of, want the one that was given up", n)
	}
	close(release)
	b.write("t", 0, 1, 1)
	r.gets(1, 0, 6)
}
