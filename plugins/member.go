package plugins

import (
	"log/slog"
	"slices"
	"time"

	"mirror/abi"
)

const (
	maxTries   = 8                      // of a frame
	firstPause = 100 * time.Millisecond // before the second; it doubles
	longPause  = 30 * time.Second       // and no longer
	maxSkipped = 1 << 14                // items of a partition that wait for a plugin that may be skipped
)

// member is a plugin in a lane: an instance, or none for the time being, and its own
// cursor over each of the lane's partitions. Lane.mu guards it but for the instance,
// which belongs to the goroutine that runs a round.
type member struct {
	p      *program
	log    *slog.Logger
	i      *instance
	queues map[Key]*queue
	order  []*queue
	most   int      // entries in a frame
	held   []*frame // to be told again as they are

	notBefore time.Time // of anything
	fails     int       // to begin, or to have written what it emits, in a row
	breaker   breaker
	broken    *Failure // it is not called any more
	asking    breaker  // of questions about groups alone
	muted     *Failure // it is not asked them any more
	trouble   string   // that is said already; empty: none
	troubled  abi.Hook // by which

	tickAt    time.Time
	tickFrom  int // in order
	tickTries int

	count Counters
}

func newMember(p *program, lane int, i *instance) *member {
	return &member{p: p, log: p.lines.log.With("lane", lane), i: i, queues: map[Key]*queue{}, most: abi.MaxEntries}
}

// optional says that positions do not wait for the plugin.
func (m *member) optional() bool { return m.p.spec.Failure == Skip }

// pause is how long to wait after so many failures in a row.
func pause(failures int) time.Duration {
	return min(firstPause<<min(max(failures-1, 0), 16), longPause)
}

func (m *member) queue(k Key) *queue {
	q := m.queues[k]
	if q == nil {
		q = &queue{key: k, state: newState(k, m.p)}
		m.queues[k] = q
		m.order = append(m.order, q)
	}
	return q
}

// push adds a range to what a queue is to be told, unless that is one too many for a
// plugin which nobody waits for.
func (m *member) push(q *queue, r Range) {
	if m.optional() && (m.broken != nil || len(q.items) >= maxSkipped) {
		m.count.Skipped++
		return
	}
	q.push(r)
}

// seal begins a round: it is about what there is by now.
func (m *member) seal() {
	for _, q := range m.order {
		if m.broken != nil && m.optional() {
			q.skip(len(q.items))
		}
		q.seal()
		if n := len(q.items); q.halted != nil && n > 0 {
			if e := q.event(&q.items[n-1]); e != nil && e.Kind == abi.Revoked {
				q.skip(n)
			}
		}
	}
	m.sweep()
}

// sweep forgets partitions that the lane has no more.
func (m *member) sweep() {
	m.order = slices.DeleteFunc(m.order, func(q *queue) bool {
		if q.gone() {
			delete(m.queues, q.key)
			q.state.give(q.key)
		}
		return q.gone()
	})
}

// next is what the plugin is to be told now, nil: nothing.
func (m *member) next(now time.Time, flush bool) *frame {
	if m.broken != nil || now.Before(m.notBefore) {
		return nil
	}
	m.notBefore = time.Time{}
	for n, f := range m.held {
		if !now.Before(f.notBefore) {
			m.held = slices.Delete(m.held, n, n+1)
			return f
		}
	}
	var together []*queue
	for _, q := range m.order {
		switch {
		case q.halted != nil || q.busy || now.Before(q.notBefore):
		case q.solo:
			q.notBefore = time.Time{}
			if f := m.frame([]*queue{q}, flush); f != nil {
				return f
			}
		default:
			together = append(together, q)
		}
	}
	if f := m.frame(together, flush); f != nil {
		return f
	}
	return m.tick(now)
}

func (m *member) frame(qs []*queue, flush bool) *frame {
	for _, q := range qs {
		m.pass(q)
	}
	if f := introductions(qs, m.most); f != nil {
		return f
	}
	if f := replays(qs, m.most); f != nil {
		return f
	}
	if !flush {
		return commits(qs, m.most)
	}
	if m.p.Has(abi.OnCommit) {
		if f := flushes(qs, m.most); f != nil {
			return f
		}
	}
	f := &frame{flags: abi.Flush}
	for _, q := range qs {
		if q.state.pending() { // puts alone
			f.parts = append(f.parts, part{q: q})
		} else {
			q.flush() // events alone
		}
	}
	return f.orNil()
}

// pass goes over what the plugin has no hook for.
func (m *member) pass(q *queue) {
	events, ranges := m.p.Has(abi.OnPartitions), m.p.Has(abi.OnCommit)
	q.begin()
	q.introduced = q.introduced || !events
	for q.told < q.sealed {
		e := q.event(&q.items[q.told])
		if e != nil && events || e == nil && ranges {
			break
		}
		if e != nil {
			q.state.hear(e)
		}
		q.advance(1)
	}
	if !ranges && !q.state.pending() {
		q.flush()
	}
}

// tick is a frame of the hook of that name, if it is time.
func (m *member) tick(now time.Time) *frame {
	if !m.ticks() || now.Before(m.tickAt) {
		return nil
	}
	if m.tickAt.IsZero() {
		m.tickAt = now.Add(m.p.spec.Tick)
		return nil
	}
	f := &frame{hook: abi.OnTick, attempt: m.tickTries}
	from := min(m.tickFrom, len(m.order))
	for _, q := range m.order[from:] {
		if !f.room(q, m.most) {
			return f
		}
		m.tickFrom++
		if q.halted == nil && q.introduced {
			e := q.view
			e.Kind = abi.None
			f.addEvent(q, e)
		}
	}
	m.tickAt, m.tickFrom = now.Add(m.p.spec.Tick), 0
	return f
}

func (m *member) ticks() bool { return m.p.spec.Tick > 0 && m.p.Has(abi.OnTick) }

// due is when next has something because of the time alone; zero: never.
func (m *member) due() (at time.Time) {
	if m.broken != nil {
		return at
	}
	sooner := func(t time.Time) {
		if !t.IsZero() && (at.IsZero() || t.Before(at)) {
			at = t
		}
	}
	sooner(m.notBefore)
	if m.ticks() {
		sooner(m.tickAt)
	}
	for _, f := range m.held {
		sooner(f.notBefore)
	}
	for _, q := range m.order {
		if q.halted == nil && !q.busy {
			sooner(q.notBefore)
		}
	}
	if at.Before(m.notBefore) {
		return m.notBefore
	}
	return at
}

// discard drops the instance. The next one is told everything again that was not
// flushed.
func (m *member) discard() {
	if m.i != nil {
		m.i.drop()
		m.i = nil
		m.count.Discarded++
	}
	m.held = nil
	for _, q := range m.order {
		q.rewind()
	}
}
