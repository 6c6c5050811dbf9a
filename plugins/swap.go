package plugins

import (
	"context"
	"errors"
	"slices"
	"time"

	"mirror/abi"
)

// Swap replaces the plugins by those of s. Each of the old is flushed and asked to save
// first, unless it has halted anything or could not be flushed; one of the same name gets what it saved, and
// whatever it had not been told for good. A plugin that is new begins with what is
// acknowledged from now on. It is for the goroutine that runs rounds, between two
// of them. Its only error is ctx's; then nothing is replaced.
func (l *Lane) Swap(ctx context.Context, s *Set) error {
	if err := l.Round(ctx, true); err != nil {
		return err
	}
	old := map[string]*member{}
	saved := map[string][]byte{}
	for _, m := range l.members {
		name := m.p.spec.Name
		old[name] = m
		l.mu.Lock()
		asked := m.i != nil && !m.halting() && !m.unflushed()
		l.mu.Unlock()
		if !asked {
			continue
		}
		blob, err := l.save(ctx, m)
		if err != nil {
			return err
		}
		saved[name] = blob
	}
	for _, m := range s.members {
		if blob := saved[m.p.spec.Name]; blob != nil {
			if err := m.restore(ctx, l.number, blob); err != nil {
				return err
			}
		}
	}
	l.mu.Lock()
	gone := l.members
	for _, m := range s.members {
		l.hand(old[m.p.spec.Name], m)
	}
	l.members = s.members
	for _, p := range l.partitions {
		l.assign(p.now)
	}
	l.mu.Unlock()
	for _, m := range gone {
		m.close(ctx, l.number)
	}
	return nil
}

// hand gives a plugin the cursor of the one that it replaces, nil: a new one.
func (l *Lane) hand(from, to *member) {
	if from == nil {
		for k, p := range l.partitions {
			e := p.now
			e.Kind = abi.Assigned
			q := to.queue(k)
			q.base, q.view, q.known = e, e, true
		}
		return
	}
	to.queues, to.order = from.queues, from.order
	from.queues, from.order = map[Key]*queue{}, nil
	for _, q := range to.order {
		q.rewind()
		q.state = q.state.handed(q.key, to.p)
		q.muted, q.solo, q.attempt, q.notBefore, q.halted = false, false, 0, time.Time{}, nil
	}
}

// halting says that the plugin has halted something, or all. The caller holds the
// lock.
func (m *member) halting() bool {
	if m.broken != nil {
		return true
	}
	for _, q := range m.order {
		if q.halted != nil {
			return true
		}
	}
	return false
}

// unflushed says that the instance has been told ranges that the next one is told
// again: what it saved would have them in it already. The caller holds the lock.
func (m *member) unflushed() bool { return slices.ContainsFunc(m.order, (*queue).toldRanges) }

// save asks for what the next generation may want to know. nil: nothing. Its only error
// is ctx's.
func (l *Lane) save(ctx context.Context, m *member) ([]byte, error) {
	emits, err := m.i.tell(ctx, abi.OnSave, 0, 0, nil, nil)
	if errors.Is(err, errNoRoom) {
		err = noRoom(abi.OnSave)
	}
	failure, ended := asFailure(err)
	if ended != nil {
		return nil, ended
	}
	if failure != nil {
		m.log.Warn("the plugin saves nothing for the one that replaces it", "err", failure)
		l.mu.Lock()
		m.discard()
		l.mu.Unlock()
	}
	if len(emits) == 0 {
		return nil, nil
	}
	return emits[0].Data, nil
}

// restore gives an instance what another saved. One that fails is replaced: a cache
// is worth nothing more.
func (m *member) restore(ctx context.Context, lane int, blob []byte) error {
	_, err := m.i.tell(ctx, abi.OnRestore, 0, 0, nil, func(e *abi.Encoder) { e.Extra(abi.TagBlob, blob) })
	if errors.Is(err, errNoRoom) {
		err = noRoom(abi.OnRestore)
	}
	failure, ended := asFailure(err)
	if ended != nil {
		return ended
	}
	if failure == nil {
		return nil
	}
	m.log.Warn("the plugin cannot use what the one before it has saved", "err", failure)
	m.discard() // the next round begins another
	return nil
}

// close tells the plugin that it ends, and drops it.
func (m *member) close(ctx context.Context, lane int) {
	if m.i != nil {
		if _, err := m.i.tell(ctx, abi.OnClose, 0, 0, nil, nil); err != nil {
			m.log.Warn("the plugin did not close well", "err", err)
		}
		m.i.drop()
		m.i = nil
	}
	for _, q := range m.order {
		q.state.give(q.key)
	}
	m.p.board.leave(lane)
}

// Close ends the plugins. Who wants them flushed runs a Round before.
func (l *Lane) Close(ctx context.Context) {
	l.mu.Lock()
	members := l.members
	l.members = nil
	l.mu.Unlock()
	for _, m := range members {
		m.close(ctx, l.number)
	}
}
