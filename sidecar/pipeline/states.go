package pipeline

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"mirror/plugins"
	"mirror/sidecar/state"
	"mirror/sidecar/status"
)

// readStateTime is how long reading a plugin's state may take at a reload; at the start
// it is tried again until it succeeds.
const readStateTime = 30 * time.Second

// states are the topics of the state of a flow's plugins that are in use. Generations
// that follow each other share one, so that nothing is read again.
type states struct {
	flow *Flow

	mu   sync.Mutex
	open map[stateName]*openState
}

type stateName struct{ plugin, schema string }

// openState is a plugin's state in use, as the plugins' store.
type openState struct {
	*state.Topic
	flow  *Flow
	name  stateName
	users int // generations, and who else uses it for a moment

	stuck bool // nothing can be removed of it, which is said; for the goroutine that looks for topics that are gone
}

// Write implements plugins.Store.
func (s *openState) Write(ctx context.Context, changes []plugins.Change) error {
	err := s.Topic.Write(ctx, changes)
	switch {
	case err == nil || ctx.Err() != nil:
	case errors.Is(err, state.ErrTakenOver):
		s.flow.fail(fmt.Errorf("state of plugin %s: %w", s.name.plugin, errTakenOver))
	default:
		s.flow.count(status.ErrorPlugin)
	}
	return err
}

// use is a plugin's state, which is read if no generation has it.
func (ss *states) use(ctx context.Context, name stateName) (*openState, error) {
	ss.mu.Lock()
	s := ss.open[name]
	if s != nil {
		s.users++
	}
	ss.mu.Unlock()
	if s != nil {
		return s, nil
	}
	f := ss.flow
	c := f.cfg()
	t, err := state.Open(ctx, state.Options{
		Cluster: f.target, Name: state.TopicName(c.From, name.plugin, c.Naming.Separator), Schema: name.schema, Create: c.Create,
		Log: f.log.With("plugin", name.plugin),
	})
	if err != nil {
		return nil, fmt.Errorf("plugin %s: %w", name.plugin, err)
	}
	s = &openState{Topic: t, flow: f, name: name, users: 1}
	ss.mu.Lock()
	defer ss.mu.Unlock()
	ss.open[name] = s
	return s, nil
}

// stay keeps a state open until leave, if it is still in use.
func (ss *states) stay(s *openState) bool {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	if s.users == 0 {
		return false
	}
	s.users++
	return true
}

// leave is when a generation ends.
func (ss *states) leave(s *openState) {
	ss.mu.Lock()
	s.users--
	last := s.users == 0
	if last {
		delete(ss.open, s.name)
	}
	ss.mu.Unlock()
	if last {
		s.Close()
	}
}

func (ss *states) all() (all []*openState) {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	for _, s := range ss.open {
		all = append(all, s)
	}
	return all
}

// keepState gives the plugins that have state theirs, before a lane has them.
func (g *generation) keepState(ctx context.Context, f *Flow) error {
	for plugin, schema := range g.Schemas() {
		if _, has := g.states[plugin]; has { // an earlier try
			continue
		}
		s, err := f.states.use(ctx, stateName{plugin, schema})
		if err != nil {
			return err
		}
		g.states[plugin] = s
		g.Keep(plugin, s)
	}
	return nil
}

// close ends the plugins, and gives back the states that they have.
func (g *generation) close(f *Flow) {
	g.Close()
	for _, s := range g.states {
		f.states.leave(s)
	}
}

// readStates reads the state of the first plugins, until that succeeds or ctx ends:
// beside connecting, and then once more what has come to it until the positions were
// read. A predecessor that still runs writes both, and state must never be behind.
func (f *Flow) readStates(ctx context.Context, g *generation) error {
	if len(g.Schemas()) == 0 {
		return nil
	}
	if err := f.untilDone(ctx, func(ctx context.Context) error { return g.keepState(ctx, f) }); err != nil {
		return err
	}
	select {
	case <-f.opened:
	case <-ctx.Done():
		return ctx.Err()
	}
	return f.untilDone(ctx, func(ctx context.Context) error {
		for _, s := range g.states {
			if err := s.Read(ctx); err != nil {
				return err
			}
		}
		return nil
	})
}

// untilDone tries until that succeeds. Its only error is ctx's.
func (f *Flow) untilDone(ctx context.Context, try func(context.Context) error) error {
	for n := 0; ; n++ {
		bounded, cancel := context.WithTimeout(ctx, openTime)
		err := try(bounded)
		cancel()
		problem := ""
		if err != nil {
			problem = "they wait for plugins' state: " + err.Error()
		}
		f.mu.Lock()
		f.stateProblem = problem
		f.mu.Unlock()
		if err == nil {
			if n > 0 {
				f.log.Info("plugins' state is read")
			}
			return nil
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		f.count(status.ErrorPlugin)
		if n == 0 {
			f.log.Error("plugins' state cannot be read yet, trying again; positions wait for it", "err", err)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(startPause(n)):
		}
	}
}

// forgetStates removes what plugins keep of topics that are gone from the source: found
// missing by name, which says more than a list that leaves out what it may not show, and
// twice, one refresh after the other. gone are those that were missing the first time.
func (f *Flow) forgetStates(ctx context.Context, gone map[string]bool) (next map[string]bool) {
	next = map[string]bool{}
	for _, s := range f.states.all() {
		if !f.states.stay(s) { // switched off just now
			continue
		}
		err := f.forgetIn(ctx, s, gone, next)
		f.states.leave(s)
		if err != nil {
			return gone
		}
	}
	return next
}

// forgetIn is forgetStates for one plugin. Its only error is the source's.
func (f *Flow) forgetIn(ctx context.Context, s *openState, gone, next map[string]bool) error {
	idle := s.Idle()
	if len(idle) == 0 {
		return nil
	}
	found, err := f.source.Topics(ctx, idle)
	if err != nil {
		return err
	}
	for _, topic := range idle {
		if _, there := found[topic]; there { // or it may not be seen
			continue
		}
		if next[topic] = true; !gone[topic] {
			continue
		}
		err := s.Forget(ctx, topic)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil && !s.stuck {
			f.log.Warn("what a plugin keeps of a topic that is gone cannot be removed yet", "topic", topic, "plugin", s.name.plugin, "err", err)
		}
		s.stuck = err != nil
	}
	return nil
}
