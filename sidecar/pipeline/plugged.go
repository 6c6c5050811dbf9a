package pipeline

import (
	"context"
	"slices"
	"sync"
	"time"

	"mirror/abi"
	"mirror/plugins"
	"mirror/sidecar/config"
	"mirror/sidecar/positions"
)

const (
	// tellPause is the time between two looks at what the plugins are to be told. What they
	// emit is a request to the target each time.
	tellPause = 250 * time.Millisecond
	// replayTime is how long reading an existing topic of offset syncs may take.
	replayTime = 30 * time.Second
	// replayMost is how many of a partition's are kept: as many as MirrorMaker keeps.
	replayMost = 64
	// closeTime is how long plugins may take to end.
	closeTime = 2 * time.Second
)

// startPlugins loads the first generation, beside whatever the flow does to begin.
// What it returns waits for that.
func (f *Flow) startPlugins(ctx context.Context) (loaded func()) {
	f.starting.Lock()
	f.started = true
	f.starting.Unlock()
	if len(f.cfg().Plugins) == 0 {
		close(f.pluginsLoaded)
		return func() {}
	}
	for _, l := range f.lanes {
		l.hooks.Store(newHooks())
	}
	var loading sync.WaitGroup
	loading.Go(func() {
		defer close(f.pluginsLoaded)
		f.loadPlugins(ctx)
		wake(f.failoverStale)
	})
	return loading.Wait
}

// stopPlugins ends them, flushed or not.
func (f *Flow) stopPlugins() {
	ctx, cancel := context.WithTimeout(context.Background(), closeTime)
	defer cancel()
	for _, l := range f.lanes {
		if h := l.hooks.Load(); h != nil && h.plugins() != nil {
			h.plugins().Close(ctx)
		}
		l.mu.Lock()
		now, next, due := l.generation, l.next, l.due
		l.generation, l.next, l.due = nil, nil, nil
		l.mu.Unlock()
		if due != nil {
			l.giveUp(next, due)
		}
		if now != nil {
			now.release(f)
		}
	}
	f.sink.close()
}

// loadPlugins loads the first generation, beside whatever the flow does to begin.
// A plugin that cannot be loaded ends the flow: positions would wait for it for ever.
func (f *Flow) loadPlugins(ctx context.Context) {
	c := f.cfg()
	specs, err := specsOf(c)
	var g *generation
	if err == nil {
		g, err = f.load(ctx, specs, c)
	}
	if err != nil {
		if ctx.Err() == nil {
			f.fail(err)
		}
		return
	}
	f.mu.Lock()
	f.loading = g
	f.mu.Unlock()
	known := f.replays(ctx, c)
	if err := f.readStates(ctx, g); err != nil { // the flow ends
		g.discard(f)
		return
	}
	g.lanes.Store(int32(len(f.lanes)))
	f.mu.Lock()
	f.generation, f.loading = g, nil
	f.mu.Unlock()
	for i, l := range f.lanes {
		l.mu.Lock()
		l.generation = g
		l.mu.Unlock()
		l.hooks.Load().loaded(plugins.NewLane(g.sets[i], f.sink), known[i])
		g.sets[i] = nil
	}
}

// replays reads what an existing topic of offset syncs says, for plugins that
// write it: MirrorMaker's before a takeover, or this mirror's own. Without it they
// begin knowing nothing, which is no reason to wait. Each lane has its own.
func (f *Flow) replays(ctx context.Context, c *config.Flow) []replays {
	all := make([]replays, len(f.lanes))
	if !slices.ContainsFunc(c.Plugins, func(p config.Plugin) bool { return p.Emit.OffsetSyncs }) {
		return all
	}
	ctx, cancel := context.WithTimeout(ctx, replayTime)
	defer cancel()
	syncs, err := f.sink.syncs.Read(ctx)
	if err != nil {
		if ctx.Err() == nil || context.Cause(ctx) == context.DeadlineExceeded {
			f.log.Warn("plugins begin without the offset syncs that there are", "err", err)
		}
		return all
	}
	for i := range all {
		all[i] = replays{}
	}
	for _, s := range syncs {
		k := plugins.Key{Topic: s.Topic, Partition: s.Partition}
		known := all[f.laneOf(positions.Key{Topic: s.Topic, Partition: s.Partition})]
		rs := known[k]
		for len(rs) > 0 && rs[len(rs)-1].First >= s.Upstream { // it went back there
			rs = rs[:len(rs)-1]
		}
		if len(rs) == replayMost {
			rs = slices.Delete(rs, 0, 1)
		}
		known[k] = append(rs, plugins.Range{
			First: s.Upstream, Last: s.Upstream, TargetFirst: s.Downstream, TargetLast: s.Downstream,
			MaxTimestamp: -1, Records: 1, LeaderEpoch: -1, Replay: true,
		})
	}
	return all
}

// swap is what a lane does between two rounds when there are other plugins, or
// none any more.
func (l *lane) swap(ctx context.Context) {
	l.mu.Lock()
	next, due := l.next, l.due
	l.next, l.due = nil, nil
	l.mu.Unlock()
	if due == nil {
		return
	}
	if err := l.change(ctx, next); err != nil { // the flow ends
		l.giveUp(next, due)
		return
	}
	l.mu.Lock()
	old := l.generation
	l.generation = next
	l.mu.Unlock()
	if next != nil {
		next.sets[l.number] = nil
	}
	if old != nil {
		old.release(l.flow)
	}
	close(due)
	l.flow.agenda.hurry() // what the old one has halted
}

func (l *lane) change(ctx context.Context, next *generation) error {
	h := l.hooks.Load()
	switch {
	case h == nil && next == nil:
	case h == nil:
		h = newHooks()
		h.loaded(plugins.NewLane(next.sets[l.number], l.flow.sink), nil)
		l.hooks.Store(h)
		l.each(func(p *partition) { p.plugIn(h) })
	case next == nil:
		if err := h.round(ctx, true); err != nil {
			return err
		}
		l.hooks.Store(nil)
		l.each((*partition).unplug)
		h.plugins().Close(ctx)
	default:
		h.catchUp() // what is stored by now is the old ones' to hear
		return h.plugins().Swap(ctx, next.sets[l.number])
	}
	return nil
}

// plugIn tells a plugin that is new of the partition as it is. What was copied
// before it does not learn. One that is about to begin finds it then.
func (p *partition) plugIn(h *hooks) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.began {
		p.plugInto(h)
	}
}

// plugInto is plugIn, with the lock held, for plugins that it may know already.
func (p *partition) plugInto(h *hooks) {
	switch {
	case p.hooks == h:
	case h == nil:
		p.leaveHooks()
	default:
		p.assign(h, abi.Assigned, p.position, -1, p.position.TargetOffset+1)
	}
}

func (p *partition) unplug() {
	p.mu.Lock()
	p.leaveHooks()
	p.mu.Unlock()
	p.unpause()
}

// leaveHooks is when there are no plugins any more. The caller holds the lock.
func (p *partition) leaveHooks() { p.hooks, p.untold, p.behind = nil, nil, false }

// assign begins what the plugins are told of the partition. The caller holds the
// lock.
func (p *partition) assign(h *hooks, kind abi.Event, at positions.Position, logStart, targetEnd int64) {
	if p.hooks != h {
		p.leaveHooks()
		p.hooks = h
	}
	p.toldTo, p.logStart = at.Offset, logStart
	p.happens(p.event(kind, at.Offset, logStart, targetEnd))
}
