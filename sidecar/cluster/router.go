package cluster

import (
	"context"
	"sync"
	"time"
)

// noLeaderWait is the time between two looks at the metadata while a partition
// has no leader: elections take about that long.
const noLeaderWait = 250 * time.Millisecond

// Router brings partitions to the broker that leads them, and asks for fresh
// metadata when there is none. P is what its user calls a partition.
type Router[P comparable] struct {
	leaders *Leaders
	name    func(P) (topic string, number int32)
	arrive  func(node int32, p P)
	failed  func(error)
	stale   chan struct{}

	mu      sync.Mutex
	running bool
	waiting map[P]bool
}

// NewRouter makes a router that calls arrive with the leader of each partition
// that Route is given, and failed when the metadata cannot be had.
func NewRouter[P comparable](leaders *Leaders, name func(P) (string, int32), arrive func(int32, P), failed func(error)) *Router[P] {
	return &Router[P]{leaders: leaders, name: name, arrive: arrive, failed: failed,
		stale: make(chan struct{}, 1), waiting: map[P]bool{}}
}

// Route has p arrive at its leader: now, or once it has one and Run runs.
func (r *Router[P]) Route(p P) {
	topic, number := r.name(p)
	node, _, ok := r.leaders.Leader(topic, number)
	r.mu.Lock()
	if !ok || node < 0 || !r.running {
		r.waiting[p] = true
		r.mu.Unlock()
		r.Stale()
		return
	}
	r.mu.Unlock()
	r.arrive(node, p)
}

// Forget gives up on p, which may be waiting for a leader.
func (r *Router[P]) Forget(p P) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.waiting, p)
}

// Stale says that the metadata is out of date.
func (r *Router[P]) Stale() {
	select {
	case r.stale <- struct{}{}:
	default:
	}
}

// Run looks for leaders until ctx ends.
func (r *Router[P]) Run(ctx context.Context) {
	r.run(true)
	defer r.run(false)
	for {
		select {
		case <-ctx.Done():
			return
		case <-r.stale:
		}
		if err := r.leaders.Refresh(ctx); err != nil && ctx.Err() == nil {
			r.failed(err)
		}
		r.mu.Lock()
		waiting := make([]P, 0, len(r.waiting))
		for p := range r.waiting {
			waiting = append(waiting, p)
		}
		clear(r.waiting)
		r.mu.Unlock()
		for _, p := range waiting {
			r.Route(p)
		}
		r.mu.Lock()
		still := len(r.waiting) > 0
		r.mu.Unlock()
		if still {
			select {
			case <-ctx.Done():
				return
			case <-time.After(noLeaderWait):
			}
		}
	}
}

func (r *Router[P]) run(on bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.running = on; on && len(r.waiting) > 0 {
		r.Stale()
	}
}
