package cluster

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"
)

// While a partition has no leader the metadata is looked at again after a pause that doubles: an election takes about as long as the
// first one, a broker that has to be repaired takes long.
const (
	noLeaderWait = 250 * time.Millisecond
	noLeaderMost = 2 * time.Second
)

// Router brings partitions to the broker that leads them, and asks for fresh
// metadata when there is none. P is what its user calls a partition.
type Router[P comparable] struct {
	leaders *Leaders
	calls   RouterCalls[P]
	stale   chan struct{}

	mu      sync.Mutex
	running bool
	waiting map[P]bool
}

// RouterCalls is what a router asks and tells its user.
type RouterCalls[P comparable] struct {
	Name func(P) (topic string, number int32)
	// Arrive is called with the leader of each partition that Route is given.
	Arrive func(node int32, p P)
	// Leaderless is called with a partition that has no leader, after each look at the metadata.
	Leaderless func(P)
	// Failed is told that the metadata cannot be had.
	Failed func(error)
}

// NewRouter makes a router.
func NewRouter[P comparable](leaders *Leaders, calls RouterCalls[P]) *Router[P] {
	return &Router[P]{leaders: leaders, calls: calls, stale: make(chan struct{}, 1), waiting: map[P]bool{}}
}

// Route has p arrive at its leader: now, or once it has one and Run runs.
func (r *Router[P]) Route(p P) {
	if !r.route(p) {
		r.Stale()
	}
}

func (r *Router[P]) route(p P) bool {
	node, _, ok := r.leaders.Leader(r.calls.Name(p))
	r.mu.Lock()
	if !ok || !r.running {
		r.waiting[p] = true
		r.mu.Unlock()
		return false
	}
	r.mu.Unlock()
	r.calls.Arrive(node, p)
	return true
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
	var again <-chan time.Time
	for pause := noLeaderWait; ; {
		select {
		case <-ctx.Done():
			return
		case <-r.stale:
		case <-again:
		}
		if r.look(ctx) {
			again, pause = nil, noLeaderWait
			continue
		}
		again = time.After(pause)
		pause = min(2*pause, noLeaderMost)
	}
}

// look asks for fresh metadata and says whether nobody waits for a leader any more.
func (r *Router[P]) look(ctx context.Context) bool {
	err := r.leaders.Refresh(ctx)
	if err != nil && ctx.Err() == nil {
		r.calls.Failed(err)
	}
	r.mu.Lock()
	waiting := slices.Collect(maps.Keys(r.waiting))
	clear(r.waiting)
	r.mu.Unlock()
	done := true
	for _, p := range waiting {
		if r.route(p) {
			continue
		}
		done = false
		if err == nil {
			r.calls.Leaderless(p)
		}
	}
	return done
}

func (r *Router[P]) run(on bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.running = on; on && len(r.waiting) > 0 {
		r.Stale()
	}
}
