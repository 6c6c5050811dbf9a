package plugins

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"mirror/abi"
)

// Swaps while ranges and partitions come: with the race detector this finds what looks
// at a plugin's cursors without the lock; and every range is told once, in order.
func TestSwapsUnderLoad(t *testing.T) {
	spec := func() Spec { return does(t, "p", "save", "save", "restore", "load") }
	b := newBench(t, spec())
	b.assign(0)
	stop := make(chan struct{})
	acked := int64(10)
	var load sync.WaitGroup
	load.Go(func() {
		tick := time.NewTicker(time.Millisecond)
		defer tick.Stop()
		for n := int32(1); ; n++ {
			select {
			case <-stop:
				return
			case <-tick.C:
			}
			b.ack(0, copied(acked, acked+4))
			acked += 5
			b.assign(n)
			if n > 1 {
				b.Notify(Event{Key: key(n - 1), Kind: abi.Revoked})
			}
		}
	})
	for range 20 {
		b.round(false)
		b.swap(spec())
	}
	close(stop)
	load.Wait()
	b.round(true)
	b.safe(0, acked-1)
	next := int64(10)
	for _, f := range b.frames(t, "p") {
		if !strings.HasPrefix(f, "on_commit") {
			continue
		}
		for word := range strings.FieldsSeq(f) {
			var first, last int64
			if _, err := fmt.Sscanf(word, "t/0:%d-%d", &first, &last); err != nil {
				continue
			}
			if first != next {
				t.Fatalf("told %d to %d where %d is due", first, last, next)
			}
			next = last + 1
		}
	}
	if next != acked {
		t.Errorf("told up to %d, want %d", next-1, acked-1)
	}
}
