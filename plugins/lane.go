package plugins

import (
	"context"
	"math"
	"sync"
	"time"

	"mirror/abi"
)

// Sink writes what plugins emit.
type Sink interface {
	// Produce returns nil once everything is acknowledged, in order. The emits and their
	// bytes are valid until it returns. After an error some of it may have been written;
	// the plugin is asked for it again.
	Produce(ctx context.Context, plugin string, emits []Emit) error
}

// Set is an instance of each plugin of a generation, for one lane.
type Set struct {
	lane    int
	members []*member
}

// Instantiate makes a Set: each plugin's init has been called when it returns. An
// error names the plugin.
func (g *Generation) Instantiate(ctx context.Context, lane int) (*Set, error) {
	s := &Set{lane: lane}
	for _, p := range g.programs {
		i, err := p.start(ctx, lane)
		if err != nil {
			s.Close()
			return nil, p.named(err)
		}
		s.members = append(s.members, newMember(p, lane, i))
	}
	return s, nil
}

// Close drops a Set that no Lane has.
func (s *Set) Close() {
	for _, m := range s.members {
		m.discard()
	}
}

// Lane is the plugins' side of a lane of the pipeline. Notify, Acknowledged, Safe,
// Waiting, Halted, Due and Status may be called by any goroutine at any time, and are
// quick. Round, Swap and Close are for one goroutine at a time.
type Lane struct {
	number int
	sink   Sink

	mu         sync.Mutex
	partitions map[Key]*assigned
	members    []*member
}

// assigned is a partition that the lane has.
type assigned struct {
	now    Event    // it as it is
	queues []*queue // of each member
}

// NewLane gives a Set the lane that it was made for.
func NewLane(s *Set, sink Sink) *Lane {
	return &Lane{number: s.lane, sink: sink, partitions: map[Key]*assigned{}, members: s.members}
}

// Notify tells what has happened to a partition. The first thing about each is that it
// is assigned; after it is revoked nothing more comes.
func (l *Lane) Notify(e Event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.notify(e)
}

func (l *Lane) notify(e Event) {
	for _, m := range l.members {
		if e.Kind != abi.Revoked || m.queues[e.Key] != nil {
			m.queue(e.Key).happened(e)
		}
	}
	if e.Kind == abi.Revoked {
		delete(l.partitions, e.Key)
	} else {
		l.assign(e)
	}
}

// assign keeps how a partition is, of which each member has a queue.
func (l *Lane) assign(e Event) {
	p := &assigned{now: e}
	for _, m := range l.members {
		p.queues = append(p.queues, m.queue(e.Key))
	}
	l.partitions[e.Key] = p
}

// Acknowledged tells that ranges of a partition, in order, are safe on the target.
func (l *Lane) Acknowledged(k Key, rs ...Range) {
	if len(rs) == 0 {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	p := l.partitions[k]
	if p == nil { // it should have been assigned
		l.notify(Event{Key: k, Kind: abi.Assigned, LogStart: -1, Position: rs[0].First - 1, TargetEnd: rs[0].TargetFirst})
		p = l.partitions[k]
	}
	for n := range rs {
		p.now.pass(&rs[n])
		for i, m := range l.members {
			m.push(p.queues[i], rs[n])
		}
	}
}

// Safe is the last source offset of a partition whose position may be saved: all
// plugins that must not be skipped were told so far and flushed, and what they emitted
// is written. Without such plugins that is math.MaxInt64.
func (l *Lane) Safe(k Key) int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := int64(math.MaxInt64)
	for _, m := range l.members {
		if m.optional() {
			continue
		}
		q := m.queues[k]
		if q == nil {
			return -1
		}
		s = min(s, q.safe())
	}
	return s
}

// Waiting is how many pieces of a partition are kept for the slowest plugin that
// must not be skipped. Without bound but for the caller's patience: it should fetch no
// more of a partition while this is above a thousand or so.
func (l *Lane) Waiting(k Key) (n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, m := range l.members {
		if q := m.queues[k]; q != nil && !m.optional() {
			n = max(n, len(q.items))
		}
	}
	return n
}

// Partitions is how many the lane has.
func (l *Lane) Partitions() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.partitions)
}

// Halted says that a plugin has halted a partition, which and why. That lasts until
// plugins are swapped.
func (l *Lane) Halted(k Key) (plugin string, why error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, m := range l.members {
		if m.optional() {
			continue
		}
		if m.broken != nil {
			return m.p.spec.Name, m.broken
		}
		if q := m.queues[k]; q != nil && q.halted != nil {
			return m.p.spec.Name, q.halted
		}
	}
	return "", nil
}

// Due is when a Round has something to do only because of the time: a tick, or
// something that is tried again. Zero: nothing.
func (l *Lane) Due() (at time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, m := range l.members {
		if t := m.due(); !t.IsZero() && (at.IsZero() || t.Before(at)) {
			at = t
		}
	}
	return at
}
