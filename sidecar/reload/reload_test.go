package reload

import (
	"context"
	"errors"
	"sync"
	"syscall"
	"testing"

	"mirror/sidecar/status"
)

func TestSignalsAndRequests(t *testing.T) {
	file := configFile(t, "one")
	l := start(t, nil, file)
	l.signals <- syscall.SIGHUP
	l.reloads(status.TriggerSignal, "one")
	write(t, file, "two")
	if r, err := l.Request(t.Context()); err != nil || r.Trigger != status.TriggerRequest || r.Problems[0] != "two" {
		t.Errorf("got %+v, %v", r, err)
	}
	l.reloads(status.TriggerRequest, "two")
	l.quiet("two") // the request has seen the change
}

func TestOneReloadAtATime(t *testing.T) {
	l := start(t, nil, configFile(t, "one"))
	busy := false // -race tells
	do := l.o.Do
	l.o.Do = func(ctx context.Context, trigger string) status.Reload {
		if busy {
			t.Error("two at once")
		}
		busy = true
		defer func() { busy = false }()
		return do(ctx, trigger)
	}
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			if _, err := l.Request(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if n := len(l.done); n != 20 {
		t.Errorf("%d reloads, want 20", n)
	}
}

func TestRequestsThatAreNotAnswered(t *testing.T) {
	l := start(t, nil, configFile(t, "one"))
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	// It may have been taken before it was noticed that nobody waits.
	if _, err := l.Request(gone); err != nil && !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	l.stop()
	if _, err := l.Request(t.Context()); !errors.Is(err, ErrEnded) {
		t.Error(err)
	}
}
