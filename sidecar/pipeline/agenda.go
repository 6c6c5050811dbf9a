package pipeline

import (
	"context"
	"sync"
	"time"
)

// agenda holds the partitions that are to begin, and when.
type agenda struct {
	mu   *sync.Mutex
	due  map[*partition]time.Time
	wake chan struct{}
}

func newAgenda() agenda {
	return agenda{mu: &sync.Mutex{}, due: map[*partition]time.Time{}, wake: make(chan struct{}, 1)}
}

// add has p begin after d, or sooner if it was to begin sooner.
func (a *agenda) add(p *partition, d time.Duration) {
	at := time.Now().Add(d)
	a.mu.Lock()
	if old, ok := a.due[p]; !ok || at.Before(old) {
		a.due[p] = at
	}
	a.mu.Unlock()
	wake(a.wake)
}

// hurry makes due now whatever is due later.
func (a *agenda) hurry() {
	now := time.Now()
	a.mu.Lock()
	for p, at := range a.due {
		if at.After(now) {
			a.due[p] = now
		}
	}
	a.mu.Unlock()
	wake(a.wake)
}

func (a *agenda) remove(p *partition) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.due, p)
}

// next waits for partitions that are due and takes them. It returns none when
// ctx ends.
func (a *agenda) next(ctx context.Context) []*partition {
	for {
		a.mu.Lock()
		now, soonest := time.Now(), time.Time{}
		var ps []*partition
		for p, at := range a.due {
			if !at.After(now) {
				ps = append(ps, p)
				delete(a.due, p)
			} else if soonest.IsZero() || at.Before(soonest) {
				soonest = at
			}
		}
		a.mu.Unlock()
		if len(ps) > 0 {
			return ps
		}
		var timer <-chan time.Time
		if !soonest.IsZero() {
			timer = time.After(time.Until(soonest))
		}
		select {
		case <-ctx.Done():
			return nil
		case <-timer:
		case <-a.wake:
		}
	}
}
