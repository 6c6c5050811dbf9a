package pipeline

import (
	"context"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"mirror/sidecar/fetch"
	"mirror/sidecar/positions"
	"mirror/sidecar/status"
)

// lane is a fixed set of partitions, by hash. Two goroutines work for it: one
// prepares what was fetched, the other saves positions. A batch takes the first
// on its way in and the second once it is acknowledged.
type lane struct {
	flow    *Flow
	number  int
	wake    chan struct{}
	changed chan struct{} // holds one token after the flow's Apply
	flush   chan struct{} // holds one token when positions are wanted before their time

	questions chan question // for the plugins, answered by the goroutine that saves
	over      chan struct{} // closed when it answers no more

	hooks atomic.Pointer[hooks] // nil: no plugins. Changed by the goroutine that saves

	mu         sync.Mutex
	members    map[*partition]bool
	inbox      []delivery
	working    bool // on what was in it
	savedAt    time.Time
	failure    string        // of the last save, "": none
	generation *generation   // of the plugins, nil: none
	next       *generation   // what takes its place, if due
	due        chan struct{} // closed once that is done; nil: nothing is due

	saving  sync.Mutex // one save at a time
	failing bool       // the last one did
}

// delivery is fetched data of a partition; without a frame it only asks for a look
// at what waits at the target end.
type delivery struct {
	p *partition
	fetch.Data
}

func newLane(f *Flow, number int) *lane {
	return &lane{flow: f, number: number, wake: make(chan struct{}, 1), changed: make(chan struct{}, 1), flush: make(chan struct{}, 1),
		questions: make(chan question), over: make(chan struct{}), members: map[*partition]bool{}}
}

// sendAfter is how many bytes are prepared before they are sent.
const sendAfter = 1 << 20

func (l *lane) deliver(d delivery) {
	l.mu.Lock()
	l.inbox = append(l.inbox, d)
	l.mu.Unlock()
	wake(l.wake)
}

// prepare makes entries of what arrives, until ctx ends.
func (l *lane) prepare(ctx context.Context) {
	var t prepared
	for ctx.Err() == nil {
		ds := l.take()
		for i, held := 0, 0; i < len(ds); i++ {
			d := ds[i]
			if d.Frame == nil {
				d.p.dst.Compact()
				continue
			}
			d.p.prepare(d.Data, &t)
			// What came in one answer goes out in as few requests as it can; not all
			// of it at the end, though, or nobody would work meanwhile.
			t.done = append(t.done, d.p)
			if held += len(d.Set); held >= sendAfter {
				t.send()
				held = 0
			}
		}
		t.send()
		if len(ds) > 0 {
			continue
		}
		select {
		case <-ctx.Done():
		case <-l.wake:
		}
	}
	for _, d := range l.take() {
		if d.Frame != nil {
			d.Frame.Release()
		}
	}
}

func (l *lane) take() []delivery {
	l.mu.Lock()
	defer l.mu.Unlock()
	ds := l.inbox
	l.inbox = nil
	l.working = len(ds) > 0
	return ds
}

// idle says that nothing fetched waits to be prepared.
func (l *lane) idle() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.inbox) == 0 && !l.working
}

func (l *lane) add(p *partition) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.members[p] = true
}

func (l *lane) remove(p *partition) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.members, p)
}

func (l *lane) each(f func(*partition)) {
	l.mu.Lock()
	ps := maps.Clone(l.members)
	l.mu.Unlock()
	for p := range ps {
		f(p)
	}
}

// commit saves the positions every interval, and calls the plugins, until ctx ends.
func (l *lane) commit(ctx context.Context) {
	defer close(l.over)
	every := l.flow.cfg().CommitInterval
	tick := time.NewTicker(every)
	defer tick.Stop()
	tell := time.NewTicker(tellPause)
	defer tell.Stop()
	for {
		var telling <-chan time.Time // nobody is woken where there are no plugins
		if l.hooks.Load() != nil {
			telling = tell.C
		}
		select {
		case <-ctx.Done():
			return
		case <-l.changed:
			if now := l.flow.cfg().CommitInterval; now != every { // else it would never tick while there are many changes
				every = now
				tick.Reset(every)
			}
			l.swap(ctx) // its only error is that ctx has ended
		case <-l.flush:
			l.save(ctx)
		case q := <-l.questions:
			l.answer(ctx, q)
		case <-telling:
			if h := l.hooks.Load(); h != nil {
				_ = h.round(ctx, false)
			}
		case <-tick.C:
			l.save(ctx)
		}
	}
}

// save writes the positions that have moved. One that cannot be written stays
// due.
func (l *lane) save(ctx context.Context) error {
	l.saving.Lock()
	defer l.saving.Unlock()
	at := time.Now()
	due := map[positions.Key]positions.Position{}
	var ps []*partition
	l.each(func(p *partition) {
		if at, ok := p.due(); ok {
			due[p.key] = at
			ps = append(ps, p)
		}
	})
	held, err := l.tellDue(ctx, due, &ps)
	if err != nil {
		return err
	}
	if len(due) == 0 {
		if !held {
			l.saved(at)
		}
		return nil
	}
	if err := l.write(ctx, due); err != nil {
		for _, p := range ps {
			p.unsaved()
		}
		if ctx.Err() != nil {
			return err
		}
		l.flow.count(status.ErrorPositions)
		if !l.failing {
			l.flow.log.Error("positions cannot be saved, trying again", "err", err)
		}
		l.failing = true
		l.failed(err)
		l.flow.keeper.failed(err)
		return err
	}
	if l.failing {
		l.flow.log.Info("positions are saved again")
	}
	l.failing = false
	for _, p := range ps {
		p.isSaved(due[p.key])
	}
	if !held {
		l.saved(at)
	}
	return nil
}

// write is bounded, so that brokers that never answer are an error that shows.
func (l *lane) write(ctx context.Context, due map[positions.Key]positions.Position) error {
	ctx, cancel := context.WithTimeout(ctx, saveTime)
	defer cancel()
	return l.flow.store.Save(ctx, due)
}

// tellDue has the plugins flush, and leaves out the positions that they do not
// allow to be saved yet. held: there are some.
func (l *lane) tellDue(ctx context.Context, due map[positions.Key]positions.Position, ps *[]*partition) (held bool, err error) {
	h := l.hooks.Load()
	if h == nil {
		return false, nil
	}
	if err := h.round(ctx, true); err != nil {
		for _, p := range *ps {
			p.unsaved()
		}
		return true, err
	}
	*ps = slices.DeleteFunc(*ps, func(p *partition) bool {
		if p.safe(due[p.key]) {
			return false
		}
		p.unsaved()
		delete(due, p.key)
		held = true
		return true
	})
	l.each(func(p *partition) {
		if why := p.haltedByPlugin(); why != nil {
			l.flow.halt(p, why)
		}
	})
	return held, nil
}

// saved keeps when all positions of the lane were on the target.
func (l *lane) saved(at time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.savedAt, l.failure = at, ""
}

func (l *lane) failed(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.failure = err.Error()
}

// unsavable is why positions are not saved, "": they are.
func (f *Flow) unsavable() string {
	for _, l := range f.lanes {
		l.mu.Lock()
		failure := l.failure
		l.mu.Unlock()
		if failure != "" {
			return failure
		}
	}
	return ""
}

// allSaved is when all positions were last on the target; zero: not yet.
func (f *Flow) allSaved() (at time.Time) {
	for i, l := range f.lanes {
		l.mu.Lock()
		if i == 0 || l.savedAt.Before(at) {
			at = l.savedAt
		}
		l.mu.Unlock()
	}
	return at
}

// due takes the position for saving, if it has moved.
func (p *partition) due() (positions.Position, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.dirty || !p.known {
		return positions.Position{}, false
	}
	p.dirty = false
	return p.at(), true
}

// isSaved keeps the position that is on the target.
func (p *partition) isSaved(at positions.Position) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.saved, p.kept = at, true
}

func (p *partition) unsaved() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.dirty = true
}
