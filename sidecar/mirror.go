// Package sidecar is the mirror: it opens the clusters of a config, runs its
// flows and says how they are doing.
package sidecar

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"mirror/sidecar/cluster"
	"mirror/sidecar/config"
	"mirror/sidecar/embedded"
	"mirror/sidecar/pipeline"
	"mirror/sidecar/status"
)

// Mirror is the flows of one config.
type Mirror struct {
	version  string
	started  time.Time
	log      *slog.Logger
	embedded map[string]*embedded.Cluster
	clusters map[string]*cluster.Cluster
	flows    []*pipeline.Flow
	level    *slog.LevelVar
	closing  sync.Once

	reloading sync.Mutex // one reload at a time
	mu        sync.Mutex
	config    configured
}

// New opens what the config names: embedded clusters start, certificates and
// keys are read. It connects to nothing. Run, or Close where that is never
// called, gives it all back. level is that of log, which a reload may change; nil
// where log.level is not about log.
func New(cfg *config.Config, version string, log *slog.Logger, level *slog.LevelVar) (*Mirror, error) {
	m := &Mirror{version: version, started: time.Now(), log: log, level: level, config: newConfigured(cfg),
		embedded: map[string]*embedded.Cluster{}, clusters: map[string]*cluster.Cluster{}}
	for alias, c := range cfg.Clusters {
		if err := m.open(alias, c); err != nil {
			m.Close()
			return nil, fmt.Errorf("cluster %q: %w", alias, err)
		}
	}
	for _, f := range cfg.Flows {
		m.flows = append(m.flows, pipeline.New(pipeline.Options{
			Config: f, Source: m.clusters[f.From], Target: m.clusters[f.To], Log: log,
		}))
	}
	return m, nil
}

func (m *Mirror) open(alias string, c config.Cluster) error {
	if c.Embedded() {
		e, err := embedded.Start(alias)
		if err != nil {
			return err
		}
		m.embedded[alias] = e
		c.Bootstrap = e.Bootstrap()
		m.log.Info("embedded cluster runs in this process", "cluster", alias, "bootstrap", c.Bootstrap)
	}
	opened, err := cluster.Open(c, m.log)
	if err != nil {
		return err
	}
	m.clusters[alias] = opened
	return nil
}

// Run copies until ctx ends; then each flow drains and saves its positions
// within its grace time. What waiting may mend is retried for ever and shows in
// Status. When a flow stops by itself, because another mirror has taken its place,
// the others stop too.
func (m *Mirror) Run(ctx context.Context) error {
	defer m.Close()
	flows, ctx := errgroup.WithContext(ctx)
	for _, f := range m.flows {
		flows.Go(func() error { return f.Run(ctx) })
	}
	return flows.Wait()
}

// Close ends the connections and the embedded clusters. Run does that by itself.
func (m *Mirror) Close() {
	m.closing.Do(func() {
		for _, c := range m.clusters {
			c.Close()
		}
		for _, e := range m.embedded {
			e.Close()
		}
	})
}

// Bootstrap has the addresses of an embedded cluster, none for others.
func (m *Mirror) Bootstrap(alias string) []string {
	if e := m.embedded[alias]; e != nil {
		return e.Bootstrap()
	}
	return nil
}

// Status says how the flows are doing. It may be called at any time.
func (m *Mirror) Status() status.Report {
	r := status.Report{Version: m.version, Started: m.started, Reasons: []string{}, Flows: make([]status.Flow, 0, len(m.flows))}
	for _, f := range m.flows {
		s := f.Status()
		r.Flows = append(r.Flows, s)
		r.Reasons = append(r.Reasons, reasons(&s)...)
	}
	r.Ready = len(r.Reasons) == 0
	r.Config, r.Warnings = m.configStatus()
	for i := range r.Flows {
		if f := &r.Flows[i]; f.Failover.Problem != "" {
			r.Warnings = append(r.Warnings, fmt.Sprintf("flow %s, consumer groups: %s", f.Name, f.Failover.Problem))
		}
	}
	return r
}

// reasons says why a flow is not ready.
func reasons(f *status.Flow) (rs []string) {
	if f.State != status.Running {
		rs = append(rs, fmt.Sprintf("flow %s is %s: %s", f.Name, f.State, f.Reason))
	}
	if f.PositionsProblem != "" {
		rs = append(rs, fmt.Sprintf("flow %s, positions: %s", f.Name, f.PositionsProblem))
	}
	for _, t := range f.Topics {
		rs = append(rs, fmt.Sprintf("flow %s, topic %s: %s", f.Name, t.Source, t.Reason))
	}
	for i := range f.Partitions {
		if p := &f.Partitions[i]; p.State == status.Stalled {
			rs = append(rs, fmt.Sprintf("flow %s, topic %s, partition %d is stalled at offset %d: %s", f.Name, p.Topic, p.Partition, p.StalledAt, p.Reason))
		}
	}
	return rs
}
