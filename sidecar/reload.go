package sidecar

import (
	"context"
	"crypto/sha256"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"mirror/sidecar/config"
	"mirror/sidecar/pipeline"
	"mirror/sidecar/reload"
	"mirror/sidecar/status"
)

// configured is the config in force and how it came to be. Mirror.mu guards it.
type configured struct {
	now    *config.Config
	status status.Config
	// wanted are the files of plugins that a refused config names, as they were then: one
	// that comes or changes may make it a good one.
	wanted map[string][sha256.Size]byte
}

func newConfigured(c *config.Config) configured {
	return configured{now: c, status: status.Config{
		File: c.File, Generation: 1, Loaded: time.Now(), Reloads: map[string]uint64{}, NeedsRestart: []config.Change{},
	}}
}

// Reload reads the config again by load and applies what does not need a restart,
// without a pause for anything that stays as it is. Whatever may fail does so
// before the first change: a config that is refused changes nothing. One reload
// is done at a time; trigger is one of the status's.
func (m *Mirror) Reload(ctx context.Context, trigger string, load func() (*config.Config, error)) status.Reload {
	m.reloading.Lock()
	defer m.reloading.Unlock()
	r := status.Reload{
		At: time.Now(), Trigger: trigger, Result: status.ReloadApplied,
		Applied: []config.Change{}, NeedsRestart: []config.Change{}, Problems: []string{},
	}
	var wanted map[string][sha256.Size]byte
	next, err := load()
	if err == nil {
		wanted = pluginFiles(next) // before they are read: what changes meanwhile will differ
		err = m.turn(ctx, next, &r)
	}
	if err != nil {
		r.Result, r.Problems = status.ReloadRefused, config.Problems(err)
	} else {
		wanted = nil
	}
	m.mu.Lock()
	m.config.wanted = wanted
	m.mu.Unlock()
	m.record(&r)
	return r
}

// pluginFiles are the files of a config's plugins, with their SHA-256, zero where there is
// none.
func pluginFiles(c *config.Config) map[string][sha256.Size]byte {
	files := map[string][sha256.Size]byte{}
	for i := range c.Flows {
		for _, p := range c.Flows[i].Plugins {
			if !p.BuiltIn() {
				files[p.Path], _ = reload.Digest(p.Path)
			}
		}
	}
	return files
}

// turn makes what runs into next, as far as it can be. On an error nothing has
// changed.
func (m *Mirror) turn(ctx context.Context, next *config.Config, r *status.Reload) error {
	running := m.config.now // only a reload changes it
	merged, err := config.Merge(running, next)
	if err != nil {
		return err
	}
	changes := config.Diff(running, next)
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("the mirror is stopping: %w", err)
	}
	prepared, err := m.prepare(ctx, merged)
	if err != nil {
		return err
	}
	for i, p := range prepared {
		name := merged.Flows[i].Name()
		key := fmt.Sprintf("flows[%d].plugins", i)
		same := func(c config.Change) bool { return c.Flow == name && strings.HasSuffix(c.Key, ".plugins") }
		if p.Plugins() && !slices.ContainsFunc(changes, same) {
			changes = append(changes, config.Change{Key: key, Flow: name, Old: "files as they were", New: "files as they are", Live: true})
		}
	}
	for _, c := range changes {
		if c.Live {
			r.Applied = append(r.Applied, c)
		} else {
			r.NeedsRestart = append(r.NeedsRestart, c)
		}
	}

	// From here on nothing fails.
	if m.level != nil {
		m.level.Set(merged.Log.Level)
	}
	for i, f := range merged.Flows { // as many, in the same order, as there run
		if slices.ContainsFunc(r.Applied, func(c config.Change) bool { return c.Flow == f.Name() }) {
			swapping, cancel := context.WithTimeout(ctx, swapTime)
			m.flows[i].Apply(swapping, prepared[i])
			cancel()
		} else {
			prepared[i].Discard()
		}
	}
	m.mu.Lock()
	m.config.now = merged
	m.mu.Unlock()
	return nil
}

// swapTime is how long a reload waits for the lanes to change their plugins. They
// do all the same when it takes longer.
const swapTime = 10 * time.Second

// prepare loads the plugins of every flow. On an error none is kept.
func (m *Mirror) prepare(ctx context.Context, c *config.Config) (all []*pipeline.Prepared, err error) {
	for i, f := range c.Flows {
		p, err := m.flows[i].Prepare(ctx, f)
		if err != nil {
			for _, p := range all {
				p.Discard()
			}
			return nil, err
		}
		all = append(all, p)
	}
	return all, nil
}

// record keeps and logs what came of a reload.
func (m *Mirror) record(r *status.Reload) {
	m.mu.Lock()
	s := &m.config.status
	waiting := s.NeedsRestart
	if r.Result == status.ReloadApplied {
		s.Loaded, s.NeedsRestart = r.At, r.NeedsRestart
		if len(r.Applied) > 0 {
			s.Generation++
		}
	}
	r.Generation = s.Generation
	s.Reloads[r.Result]++
	last := *r
	s.Last = &last
	m.mu.Unlock()

	if r.Result == status.ReloadRefused {
		m.log.Error("the config is refused, nothing has changed", "trigger", r.Trigger, "err", strings.Join(r.Problems, "; "))
		return
	}
	m.log.Info("the config is reloaded", "trigger", r.Trigger, "generation", r.Generation, "applied", len(r.Applied), "needs_restart", len(r.NeedsRestart))
	for _, c := range r.Applied {
		m.log.Info("config change applied", described(c)...)
	}
	for _, c := range r.NeedsRestart {
		if !slices.ContainsFunc(waiting, func(w config.Change) bool { return w.Key == c.Key && w.New == c.New }) {
			m.log.Warn("config change needs a restart", described(c)...)
		}
	}
}

func described(c config.Change) []any {
	args := []any{"key", c.Key, "old", c.Old, "new", c.New}
	if c.Flow != "" {
		args = append(args, "flow", c.Flow)
	}
	return args
}

// Files are those that the mirror is made of, or would be if its config were not refused, so
// that a change of one calls for a reload; and the SHA-256 of what is in force of them.
func (m *Mirror) Files() map[string][sha256.Size]byte {
	m.mu.Lock()
	defer m.mu.Unlock()
	files := map[string][sha256.Size]byte{m.config.now.File: m.config.now.Digest}
	maps.Copy(files, m.config.wanted)
	for _, f := range m.flows {
		maps.Copy(files, f.PluginFiles())
	}
	return files
}

// configStatus is a copy of the config's status, and what somebody should see to.
func (m *Mirror) configStatus() (s status.Config, warnings []string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	s = m.config.status
	s.Reloads = map[string]uint64{}
	for _, result := range status.ReloadResults {
		s.Reloads[result] = m.config.status.Reloads[result]
	}
	warnings = []string{}
	if s.Last != nil && s.Last.Result == status.ReloadRefused {
		for _, p := range s.Last.Problems {
			warnings = append(warnings, "the config was refused and the one before is in force: "+p)
		}
	}
	for _, c := range s.NeedsRestart {
		warnings = append(warnings, "a config change waits for a restart: "+c.String())
	}
	return s, warnings
}
