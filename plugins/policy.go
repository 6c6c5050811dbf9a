package plugins

import (
	"time"

	"mirror/abi"
)

// failed decides what becomes of a frame that a hook failed at. The instance is
// dropped unless it only asked to be told again.
func (m *member) failed(f *frame, why *Failure, now time.Time) {
	if why.Status == abi.Retry && f.attempt+1 < maxTries {
		m.again(f, now)
		return
	}
	// A rewind comes first, and then counts from the front.
	upTo := make([]int, len(f.parts))
	for n, p := range f.parts {
		upTo[n] = p.q.told + p.n
	}
	m.discard()
	m.say(why.Hook, why.Error())
	if (why.trapped() || f.hook == abi.OnTick) && m.breaker.trip(now) {
		m.stop(why)
		return
	}
	switch {
	case f.hook == abi.OnTick:
		m.tickTries, m.tickFrom, m.tickAt = 0, 0, now.Add(m.p.spec.Tick)
	case len(f.parts) > 1:
		for _, p := range f.parts {
			p.q.solo = true
		}
	default:
		m.blame(f, upTo[0], why, now)
	}
}

// again keeps a frame to be told once more, as it is.
func (m *member) again(f *frame, now time.Time) {
	f.attempt++
	f.notBefore = now.Add(pause(f.attempt))
	if f.hook == abi.OnTick {
		m.tickTries, m.tickFrom, m.tickAt = f.attempt, 0, f.notBefore
		return
	}
	for _, p := range f.parts {
		p.q.busy = true
		p.q.attempt = f.attempt
	}
	m.held = append(m.held, f)
}

// halve has frames with half the entries, for there is no room for this one.
func (m *member) halve(f *frame) {
	m.most = max(1, len(f.about)/2)
	for _, p := range f.parts {
		p.q.busy = false
	}
	if f.hook == abi.OnTick {
		m.tickAt, m.tickFrom = time.Now(), 0
	}
}

// blame is for a partition that failed by itself, with its first n items.
func (m *member) blame(f *frame, n int, why *Failure, now time.Time) {
	q := f.parts[0].q
	q.attempt = max(q.attempt, f.attempt) + 1
	switch {
	case m.optional():
		m.count.Skipped += q.skip(n)
		q.attempt = 0
		q.muted = q.muted || f.hook == abi.OnPartitions
	case m.p.spec.Failure == Retry && q.attempt < maxTries:
		q.solo = true
		q.notBefore = now.Add(pause(q.attempt))
	default:
		q.halted = why
		m.log.Error("the plugin halts a partition until plugins are reloaded", "topic", q.key.Topic, "partition", q.key.Partition, "err", why)
	}
}

// stop ends all calls of the plugin, until it is swapped.
func (m *member) stop(why *Failure) {
	m.broken = why
	if !m.optional() {
		m.log.Error("the plugin failed too often, all its partitions halt until plugins are reloaded", "failures", breakAt, "within", breakTime, "err", why)
		return
	}
	m.log.Error("the plugin failed too often, it is left out until plugins are reloaded", "failures", breakAt, "within", breakTime, "err", why)
	for _, q := range m.order {
		m.count.Skipped += q.skip(len(q.items))
	}
}

// say logs trouble with a hook once, until it is over.
func (m *member) say(hook abi.Hook, what string) {
	if m.trouble == "" {
		m.log.Warn("the plugin has trouble", "err", what)
	}
	m.trouble, m.troubled = what, hook
}

// well ends trouble, once a call of the hook that had it went well and nothing waits
// because of it.
func (m *member) well(hook abi.Hook) {
	if m.trouble == "" || m.troubled != 0 && m.troubled != hook || len(m.held) > 0 {
		return
	}
	for _, q := range m.order {
		if q.solo || q.halted != nil {
			return
		}
	}
	m.trouble = ""
	m.log.Info("the plugin does its work again")
}
