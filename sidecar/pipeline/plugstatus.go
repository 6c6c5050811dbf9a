package pipeline

import (
	"fmt"
	"strings"

	"mirror/plugins"
	"mirror/sidecar/status"
)

// plugins says how the plugins are doing, over all lanes.
func (f *Flow) plugins() []status.Plugin {
	f.mu.Lock()
	g := f.generation
	f.mu.Unlock()
	if g == nil {
		return []status.Plugin{}
	}
	all := make([]status.Plugin, len(g.specs))
	for i, s := range g.specs {
		all[i] = status.Plugin{
			Name: s.Name, Path: s.Binary.Path, SHA256: fmt.Sprintf("%x", s.Binary.Digest), Generation: g.number, State: string(plugins.Running),
			Calls: map[string]uint64{}, Seconds: map[string]float64{}, Failures: map[string]uint64{}, Series: []status.Series{},
		}
		for _, h := range g.modules[i].Hooks {
			all[i].Hooks = append(all[i].Hooks, h.String())
		}
	}
	for _, s := range g.Metrics() {
		for i := range all {
			if all[i].Name == s.Plugin {
				all[i].Series = append(all[i].Series, series(s))
			}
		}
	}
	for _, l := range f.lanes {
		h := l.hooks.Load()
		if h == nil || h.plugins() == nil {
			continue
		}
		for _, s := range h.plugins().Status() {
			for i := range all {
				if all[i].Name == s.Plugin && g.number == s.Generation {
					add(&all[i], s)
				}
			}
		}
	}
	return all
}

// series is a metric of a plugin's own.
func series(s plugins.Series) status.Series {
	var labels []string
	for _, l := range s.Labels {
		labels = append(labels, fmt.Sprintf("%s=%q", l.Key, l.Value))
	}
	out := status.Series{Name: s.Name, Counter: s.Counter, Lane: s.Lane, Value: s.Value}
	if len(labels) > 0 {
		out.Name += "{" + strings.Join(labels, ",") + "}"
	}
	return out
}

// add adds what is so in a lane.
func add(p *status.Plugin, s plugins.Status) {
	if s.State != plugins.Running {
		p.State, p.Reason = string(s.State), s.Reason
		for _, why := range s.Halted {
			if p.Reason == "" {
				p.Reason = why.Error()
			}
		}
	}
	p.Halted += len(s.Halted)
	p.Waiting += s.Waiting
	p.Emits += s.Emits
	p.Skipped += s.Skipped
	p.Memory += int64(s.Memory)
	p.StateBytes += s.StateBytes
	p.StateKeys += s.StateKeys
	p.StateRefused += s.Refused
	for h, n := range s.Calls {
		p.Calls[h.String()] += n
		p.Seconds[h.String()] += s.Time[h].Seconds()
	}
	for c, n := range s.Failures {
		p.Failures[c.String()] += n
	}
}
