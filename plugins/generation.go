package plugins

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/tetratelabs/wazero"

	"mirror/abi"
)

// Options are what all plugins of a generation have in common.
type Options struct {
	Flow     string // its name
	From, To string // the clusters' aliases
	// Number is the generation's; it rises with each reload.
	Number uint64
	// CacheDir keeps compiled code between runs; empty: nothing is kept.
	CacheDir string
	// Log gets what plugins say, and what is to be said of them. It should name the
	// flow already.
	Log *slog.Logger
}

// Generation is one loaded set of plugins with their config.
type Generation struct {
	opts     Options
	programs []*program
	cache    wazero.CompilationCache
}

// Load checks and compiles plugins. It changes nothing that runs. What it returns has
// to be closed.
func Load(ctx context.Context, o Options, specs []Spec) (_ *Generation, err error) {
	g := &Generation{opts: o}
	defer func() {
		if err != nil {
			g.Close()
		}
	}()
	if len(specs) == 0 {
		return g, nil
	}
	if g.cache, err = openCache(o.CacheDir); err != nil {
		o.Log.Warn("compiled plugins are not kept for the next start", "err", err)
	}
	var translator *program
	names := map[string]bool{}
	for _, s := range specs {
		if names[s.Name] {
			return nil, fmt.Errorf("there are two plugins %s: give one another name", s.Name)
		}
		names[s.Name] = true
		p, err := g.load(ctx, s)
		if p != nil {
			g.programs = append(g.programs, p)
		}
		if err != nil {
			return nil, fmt.Errorf("plugin %s (%s): %w", s.Name, s.place(), err)
		}
		if p.Has(abi.OnGroups) {
			if translator != nil {
				return nil, fmt.Errorf("plugins %s (%s) and %s (%s) both export %s: only one can translate groups' offsets, disable the other",
					translator.spec.Name, translator.spec.place(), s.Name, s.place(), abi.OnGroups.Export())
			}
			translator = p
		}
	}
	return g, nil
}

func (g *Generation) load(ctx context.Context, s Spec) (*program, error) {
	s.Limits = s.Limits.withDefaults()
	if err := s.check(); err != nil {
		return nil, err
	}
	m, err := Inspect(s.Binary)
	if err != nil {
		return nil, errors.Unwrap(err) // without the path, which Load names
	}
	if m.Has(abi.OnGroups) && !s.Emit.Groups {
		return nil, fmt.Errorf("it exports %s, and the config does not let it translate: set emit.groups, or take another plugin", abi.OnGroups.Export())
	}
	p := &program{Module: m, spec: s, topics: map[string]bool{}, board: newBoard(), lines: &lines{log: g.opts.Log.With("plugin", s.Name)}}
	for _, t := range s.Emit.Topics {
		p.topics[t] = true
	}
	p.about = about{plugin: s.Name, flow: g.opts.Flow, from: g.opts.From, to: g.opts.To, generation: g.opts.Number}
	if p.about.object, p.about.flat, err = encodeConfig(s.Config); err != nil {
		return nil, err
	}
	var e abi.Encoder
	e.Begin(abi.OnInit, 0)
	p.about.extras(&e)
	if e.Size() > abi.MaxFrame-smallExtras {
		return nil, fmt.Errorf("its config is %d bytes as JSON: it has to fit into a frame of %d, twice", len(p.about.object), abi.MaxFrame)
	}
	return p, p.compile(ctx, g.cache)
}

// Modules says what the plugins are, in the order of the config.
func (g *Generation) Modules() (all []Module) {
	for _, p := range g.programs {
		all = append(all, p.Module)
	}
	return all
}

// Minors are the minor versions of the contract that the plugins say they were built for,
// in the order of the config. It runs no more than what comes before mirror_init. The error
// is that of a plugin that fails there, or was built for a version that there is not.
func (g *Generation) Minors(ctx context.Context) (all []int, _ error) {
	for _, p := range g.programs {
		i, err := p.instantiate(ctx, 0)
		if err != nil {
			return nil, p.named(err)
		}
		minor, err := i.version()
		i.drop()
		if err != nil {
			return nil, p.named(err)
		}
		all = append(all, minor)
	}
	return all, nil
}

// Schemas are those of the plugins that have state, by name, once there is an instance.
func (g *Generation) Schemas() map[string]string {
	all := map[string]string{}
	for _, p := range g.programs {
		p.mu.Lock()
		if p.schema != nil && *p.schema != "" {
			all[p.spec.Name] = *p.schema
		}
		p.mu.Unlock()
	}
	return all
}

// Keep has the state of a plugin, one of those in Schemas, kept in a store, before the
// first Lane has its instances. Without it state ends with the generation.
func (g *Generation) Keep(plugin string, s Store) {
	for _, p := range g.programs {
		if p.spec.Name == plugin {
			p.store = s
		}
	}
}

// Metrics are what the plugins have defined, and what their instances have made of
// it since the generation was loaded.
func (g *Generation) Metrics() (all []Series) {
	for _, p := range g.programs {
		all = append(all, p.board.series(p.spec.Name)...)
	}
	return all
}

// Close gives everything back. No Set of the generation may be in use any more.
func (g *Generation) Close() {
	ctx := context.Background()
	for _, p := range g.programs {
		if p.runtime != nil {
			p.runtime.Close(ctx)
		}
	}
	if g.cache != nil {
		g.cache.Close(ctx)
	}
}
