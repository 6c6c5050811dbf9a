package pipeline

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"

	"mirror/plugins"
	"mirror/plugins/offsetsync"
	"mirror/sidecar/config"
	"mirror/sidecar/state"
)

// Prepared is a config of a flow whose plugins are loaded, each with an instance
// for each lane: nothing that could fail is left to do.
type Prepared struct {
	flow       *Flow
	config     config.Flow
	generation *generation // nil: without plugins
	same       bool        // the plugins are those that run
	early      bool        // the flow has not begun, and does not before this is applied or discarded
}

// Plugins says whether other plugins run once it is applied.
func (p *Prepared) Plugins() bool { return !p.same }

// PluginFiles are the files of the plugins that run, by path, with their SHA-256
// as they were read.
func (f *Flow) PluginFiles() map[string][sha256.Size]byte {
	f.mu.Lock()
	g := f.generation
	f.mu.Unlock()
	files := map[string][sha256.Size]byte{}
	if g == nil {
		return files
	}
	for i, p := range g.config {
		if !p.BuiltIn() {
			files[p.Path] = g.specs[i].Binary.Digest
		}
	}
	return files
}

// Discard gives up what is not applied.
func (p *Prepared) Discard() {
	if p.early {
		p.flow.starting.Unlock()
	}
	if p.generation != nil && !p.same {
		p.generation.discard(p.flow)
	}
}

// generation is the plugins that run, or are about to.
type generation struct {
	*plugins.Generation
	number  uint64
	specs   []plugins.Spec
	config  []config.Plugin
	sets    []*plugins.Set // by lane, until the lane takes it
	lanes   atomic.Int32   // that use it
	modules []plugins.Module
	states  map[string]*openState // by plugin
}

func (g *generation) discard(f *Flow) {
	for _, s := range g.sets {
		if s != nil {
			s.Close()
		}
	}
	g.close(f)
}

// release says that one lane less uses it.
func (g *generation) release(f *Flow) {
	if g.lanes.Add(-1) == 0 {
		g.close(f)
	}
}

// Prepare loads the plugins of a config, if they are not those that run: the same
// files with the same contents, and the same tables.
func (f *Flow) Prepare(ctx context.Context, c config.Flow) (*Prepared, error) {
	specs, err := specsOf(&c)
	if err != nil {
		return nil, fmt.Errorf("flow %s: %w", c.Name(), err)
	}
	f.starting.Lock()
	if !f.started { // it loads them itself
		if _, err := CheckPlugins(ctx, &c); err != nil {
			f.starting.Unlock()
			return nil, err
		}
		return &Prepared{flow: f, config: c, same: true, early: true}, nil
	}
	f.starting.Unlock()
	now, err := f.current(ctx, specs, &c)
	if err != nil {
		return nil, fmt.Errorf("flow %s: %w", c.Name(), err)
	}
	if now.same(specs, &c) {
		if now != nil {
			err = checkTranslates(&c, now.modules)
		}
		if err != nil {
			return nil, fmt.Errorf("flow %s: %w", c.Name(), err)
		}
		return &Prepared{flow: f, config: c, generation: now, same: true}, nil
	}
	g, err := f.load(ctx, specs, &c)
	if err == nil && g != nil {
		reading, cancel := context.WithTimeout(ctx, readStateTime)
		defer cancel()
		if err = g.keepState(reading, f); err != nil {
			g.discard(f)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("flow %s: %w", c.Name(), err)
	}
	return &Prepared{flow: f, config: c, generation: g}, nil
}

// current is the generation that runs, or that is about to: while the first one waits
// for its state, all that leaves the plugins as they are can be changed. Others have to
// wait for it, and do not wait long.
func (f *Flow) current(ctx context.Context, specs []plugins.Spec, c *config.Flow) (*generation, error) {
	f.mu.Lock()
	loading := f.loading
	f.mu.Unlock()
	if loading != nil && loading.same(specs, c) {
		return loading, nil
	}
	waiting, cancel := context.WithTimeout(ctx, readStateTime)
	defer cancel()
	select {
	case <-f.pluginsLoaded:
		f.mu.Lock()
		defer f.mu.Unlock()
		return f.generation, nil
	case <-waiting.Done():
		f.mu.Lock()
		defer f.mu.Unlock()
		why := waiting.Err()
		if f.stateProblem != "" {
			why = errors.New(f.stateProblem)
		}
		return nil, fmt.Errorf("its first plugins are not there yet, and others can only follow them (reload again when they are, or restart): %w", why)
	}
}

// same says whether g is made of just this.
func (g *generation) same(specs []plugins.Spec, c *config.Flow) bool {
	if g == nil {
		return len(specs) == 0
	}
	return slices.EqualFunc(g.specs, specs, func(a, b plugins.Spec) bool { return a.Binary.Digest == b.Binary.Digest }) &&
		slices.EqualFunc(g.config, c.Plugins, config.Plugin.Same)
}

// specsOf reads the plugins' files.
func specsOf(c *config.Flow) (specs []plugins.Spec, err error) {
	for _, p := range c.Plugins {
		s, err := specOf(p)
		if err != nil {
			return nil, err
		}
		specs = append(specs, s)
	}
	return specs, nil
}

func specOf(p config.Plugin) (plugins.Spec, error) {
	s := plugins.Spec{
		Name: p.Name, Where: p.Where, Config: p.Config, Tick: p.Tick,
		Emit:    plugins.Allow{Topics: p.Emit.Topics, OffsetSyncs: p.Emit.OffsetSyncs, Groups: p.Emit.Groups},
		Failure: map[string]plugins.Policy{config.FailureHalt: plugins.Halt, config.FailureRetry: plugins.Retry, config.FailureSkip: plugins.Skip}[p.Failure],
		Limits:  plugins.Limits{Memory: p.Limits.Memory, Call: p.Limits.Call, State: p.Limits.State},
	}
	var err error
	if p.BuiltIn() {
		s.Binary, err = plugins.Embedded(p.Name+" (built in)", offsetsync.Wasm)
	} else {
		s.Binary, err = plugins.Read(p.Path, p.SHA256)
	}
	if err != nil {
		return s, fmt.Errorf("plugin %s: %w", p.Name, err)
	}
	return s, nil
}

// CheckPlugins loads the plugins of a config as a flow does, has each begin with its
// own config, and drops them. It returns the topics on the target that they keep state in.
func CheckPlugins(ctx context.Context, c *config.Flow) (stateTopics []string, err error) {
	specs, err := specsOf(c)
	if err == nil && len(specs) > 0 {
		var g *plugins.Generation
		quiet := slog.New(slog.DiscardHandler)
		if g, err = plugins.Load(ctx, plugins.Options{Flow: c.Name(), From: c.From, To: c.To, CacheDir: cacheDir(), Log: quiet}, specs); err == nil {
			defer g.Close()
			var set *plugins.Set
			if set, err = g.Instantiate(ctx, 0); err == nil {
				set.Close()
				err = checkTranslates(c, g.Modules())
			}
			for plugin := range g.Schemas() {
				stateTopics = append(stateTopics, state.TopicName(c.From, plugin, c.Naming.Separator))
			}
		}
	}
	if err != nil {
		return nil, fmt.Errorf("flow %s: %w", c.Name(), err)
	}
	slices.Sort(stateTopics)
	return stateTopics, nil
}

// load compiles plugins and makes their instances; nil where there are none.
func (f *Flow) load(ctx context.Context, specs []plugins.Spec, c *config.Flow) (*generation, error) {
	if len(specs) == 0 {
		return nil, nil
	}
	number := f.generations.Add(1)
	loaded, err := plugins.Load(ctx, plugins.Options{Flow: c.Name(), From: c.From, To: c.To, Number: number, CacheDir: cacheDir(), Log: f.log}, specs)
	if err != nil {
		return nil, err
	}
	g := &generation{Generation: loaded, number: number, specs: specs, config: c.Plugins, modules: loaded.Modules(), states: map[string]*openState{}}
	if err := checkTranslates(c, g.modules); err != nil {
		g.discard(f)
		return nil, err
	}
	for i := range f.lanes {
		set, err := loaded.Instantiate(ctx, i)
		if err != nil {
			g.discard(f)
			return nil, err
		}
		g.sets = append(g.sets, set)
	}
	return g, nil
}

// cacheDir is where compiled plugins are kept; "" where the system has no place.
func cacheDir() string {
	dir, err := os.UserCacheDir()
	if err != nil {
		return ""
	}
	return filepath.Join(dir, "mirror")
}
