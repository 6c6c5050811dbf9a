package pipeline

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"mirror/sidecar/status"
)

// Status says how the flow is doing.
func (f *Flow) Status() status.Flow {
	ps := f.all()
	f.mu.Lock()
	s := status.Flow{
		Name: f.cfg().Name(), From: f.cfg().From, To: f.cfg().To,
		State: f.state, Reason: f.reason, Lanes: len(f.lanes),
		MemoryInUse: f.frames.InUse() + f.producer.SetAside(), MemoryLimit: f.frames.Limit(),
		PositionsSave: f.allSaved(), PositionsProblem: cmp.Or(f.positionsProblem, f.stateProblem, f.unsavable()), Topics: slices.Clone(f.problems), Errors: map[string]uint64{},
		Latency: f.latencies.histogram(),
	}
	for _, kind := range status.ErrorKinds {
		s.Errors[kind] = 0
	}
	maps.Copy(s.Errors, f.errors)
	f.mu.Unlock()
	if s.State == status.Running {
		for _, t := range []struct {
			alias string
			*trouble
		}{{f.cfg().From, &f.sourceTrouble}, {f.cfg().To, &f.targetTrouble}} {
			if err := t.lasting(); err != nil {
				s.State, s.Reason = status.Stalled, fmt.Sprintf("cluster %q: %v", t.alias, err)
			}
		}
	}
	s.Plugins = f.plugins()
	s.Failover = f.failover.Status()
	s.Partitions = make([]status.Partition, 0, len(ps))
	for _, p := range ps {
		s.Partitions = append(s.Partitions, p.status())
	}
	slices.SortFunc(s.Partitions, func(a, b status.Partition) int {
		return cmp.Or(cmp.Compare(a.Topic, b.Topic), cmp.Compare(a.Partition, b.Partition))
	})
	return s
}

func (p *partition) status() status.Partition {
	merging := p.dst.Merging()
	oldest, _ := p.dst.Oldest()
	p.mu.Lock()
	defer p.mu.Unlock()
	s := status.Partition{
		Topic: p.key.Topic, Target: p.target, Partition: p.key.Partition, Lane: p.lane.number,
		State: p.state, Reason: p.reason, StalledAt: p.stalledAt,
		Position: p.position.Offset, SourceEnd: p.end, Merging: merging, Isolated: p.dst.Isolated(),
		Lost: p.lost, Repeats: p.repeats, Paths: append([]status.Count{}, p.counts...), Batches: map[string]uint64{},
	}
	for _, path := range status.Paths {
		s.Batches[path] = 0
	}
	for _, c := range p.counts {
		s.Batches[c.Path] += c.Batches
		if c.Path != status.PathSkipped {
			s.Records += c.Records
			s.Bytes += c.Bytes
		}
	}
	if p.end >= 0 {
		s.Lag = max(p.end-(p.position.Offset+1), 0)
		s.LagSeconds = p.lag(time.Now(), oldest).Seconds()
	}
	if p.lastTimestamp > 0 {
		s.LastRecord = time.UnixMilli(p.lastTimestamp).UTC()
	}
	return s
}
