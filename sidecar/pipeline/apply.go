package pipeline

import (
	"context"

	"mirror/sidecar/config"
)

// cfg is the config as it is now. Who looks at several keys that belong together
// asks once.
func (f *Flow) cfg() *config.Flow { return f.config.Load() }

// Apply changes the config of a flow, running or not: the keys that apply live
// (see config.Diff). The others must be as they were. What is copied goes on; the
// topics are looked up anew at once, so that those begin that are selected now,
// and what is stalled is tried again. Each lane changes its plugins between two
// rounds; Apply waits for that until ctx ends.
func (f *Flow) Apply(ctx context.Context, p *Prepared) {
	f.config.Store(&p.config)
	if p.early {
		f.starting.Unlock()
	}
	var dues []chan struct{}
	if !p.same {
		dues = f.replace(p.generation)
	}
	wake(f.changed)
	wake(f.failoverStale)
	for _, l := range f.lanes {
		wake(l.changed)
	}
	f.agenda.hurry()
	for _, due := range dues {
		select {
		case <-due:
		case <-ctx.Done():
		}
	}
}

// replace has each lane take its part of a generation. What the last one has
// left untaken is given up.
func (f *Flow) replace(g *generation) (dues []chan struct{}) {
	f.mu.Lock()
	f.generation = g
	f.mu.Unlock()
	if g != nil {
		g.lanes.Store(int32(len(f.lanes)))
	}
	for _, l := range f.lanes {
		due := make(chan struct{})
		dues = append(dues, due)
		l.mu.Lock()
		given, was := l.next, l.due
		l.next, l.due = g, due
		l.mu.Unlock()
		if was != nil {
			l.giveUp(given, was)
		}
	}
	return dues
}

// giveUp ends the wait for a generation that the lane has not taken.
func (l *lane) giveUp(g *generation, due chan struct{}) {
	close(due)
	if g == nil {
		return
	}
	g.sets[l.number].Close()
	g.sets[l.number] = nil
	g.release(l.flow)
}

func wake(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
