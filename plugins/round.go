package plugins

import (
	"context"
	"errors"
	"fmt"
	"time"

	"mirror/abi"
)

// Round tells every plugin what was acknowledged before it began, has written what
// they emit, and does what has become due. With flush everything that was told is
// flushed, so that Safe says what may be saved now. What a plugin cannot be told stays
// for a later round. Its only error is ctx's.
func (l *Lane) Round(ctx context.Context, flush bool) error {
	l.mu.Lock()
	members := l.members
	for _, m := range members {
		m.seal()
	}
	l.mu.Unlock()
	for _, m := range members {
		if err := l.run(ctx, m, flush); err != nil {
			return err
		}
	}
	return ctx.Err()
}

// run tells one plugin what there is for it.
func (l *Lane) run(ctx context.Context, m *member, flush bool) error {
	for ctx.Err() == nil {
		l.mu.Lock()
		f := m.next(time.Now(), flush)
		m.sweep()
		l.mu.Unlock()
		if f == nil {
			return nil
		}
		if err := l.call(ctx, m, f); err != nil {
			return err
		}
	}
	return ctx.Err()
}

// call tells a plugin a frame, and sees to what comes of it. Its only error is ctx's.
func (l *Lane) call(ctx context.Context, m *member, f *frame) error {
	if f.hook == 0 {
		l.mu.Lock()
		defer l.mu.Unlock()
		return l.write(ctx, m, f, nil)
	}
	if m.i == nil {
		i, err := m.p.start(ctx, l.number)
		if err != nil {
			return l.notBegun(m, err)
		}
		m.i = i
	}
	began := time.Now()
	emits, err := m.i.tell(ctx, f.hook, f.flags, f.attempt, f.about, f.fill)
	took := time.Since(began)
	if errors.Is(err, errNoRoom) {
		if n := len(f.about); n > 1 {
			l.mu.Lock()
			defer l.mu.Unlock()
			m.halve(f)
			return nil
		}
		err = noRoom(f.hook)
	}
	failure, ended := asFailure(err)
	l.mu.Lock()
	defer l.mu.Unlock()
	m.called(f.hook, took, failure)
	switch {
	case ended != nil:
		m.discard()
		return ended
	case failure != nil:
		m.failed(f, failure, time.Now())
		return nil
	}
	return l.write(ctx, m, f, emits)
}

// write has the emits of a frame written, then with a flush what was put, and then it
// is done. The caller holds the lock, which is let go meanwhile.
func (l *Lane) write(ctx context.Context, m *member, f *frame, emits []Emit) error {
	if len(emits) > 0 {
		l.mu.Unlock()
		err := l.sink.Produce(ctx, m.p.spec.Name, emits)
		l.mu.Lock()
		if err != nil {
			return m.unwritten(ctx, f, fmt.Sprintf("what it emits cannot be written: %v", err))
		}
		m.count.Emits += uint64(len(emits))
	}
	if f.flags&abi.Flush != 0 && m.p.store != nil {
		if err := l.writeState(ctx, m, f); err != nil {
			return m.unwritten(ctx, f, fmt.Sprintf("its state cannot be written: %v", err))
		}
	}
	m.fails, m.notBefore = 0, time.Time{}
	f.done()
	if f.hook == abi.OnTick {
		m.tickTries = 0
	}
	m.well(f.hook)
	return nil
}

// unwritten discards the instance: what it emitted or put is asked for again. Its only
// error is ctx's.
func (m *member) unwritten(ctx context.Context, f *frame, why string) error {
	m.discard()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	m.fails++
	m.notBefore = time.Now().Add(pause(m.fails))
	m.say(f.hook, why)
	return nil
}

// writeState writes what was put of the partitions that are flushed. The caller holds
// the lock, which is let go meanwhile.
func (l *Lane) writeState(ctx context.Context, m *member, f *frame) error {
	var all []Change
	ends, doubts := make([]int, len(f.parts)), make([]uint64, len(f.parts))
	for n, p := range f.parts {
		changes, until := p.q.state.changes(p.q.key)
		all = append(all, changes...)
		ends[n], doubts[n] = len(all), until
	}
	if len(all) > 0 {
		l.mu.Unlock()
		err := m.p.store.Write(ctx, all)
		l.mu.Lock()
		if err != nil {
			from := 0
			for n, p := range f.parts {
				p.q.state.failed(all[from:ends[n]])
				from = ends[n]
			}
			return err
		}
	}
	for n, p := range f.parts {
		p.q.state.flushed(doubts[n])
	}
	return nil
}

// notBegun is a failure of all partitions.
func (l *Lane) notBegun(m *member, err error) error {
	failure, ended := asFailure(err)
	if ended != nil {
		return ended
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	m.count.called(failure.Hook, 0, 0, failure)
	m.fails++
	now := time.Now()
	m.notBefore = now.Add(pause(m.fails))
	m.say(0, failure.Error())
	if m.breaker.trip(now) {
		m.stop(failure)
	}
	return nil
}

func (p *program) named(err error) error {
	return fmt.Errorf("plugin %s (%s): %w", p.spec.Name, p.Path, err)
}
