package plugins

import (
	"maps"
	"time"

	"mirror/abi"
)

// State is how a plugin fares in a lane.
type State string

// The states.
const (
	Running  State = "running"
	Retrying State = "retrying" // something is tried again
	Halting  State = "halted"   // some of its partitions, or all
	Off      State = "off"      // it failed too often, and the data goes on without it
)

// Status is what there is to say of a plugin in a lane.
type Status struct {
	Plugin     string
	Generation uint64
	Lane       int
	State      State
	Reason     string        // unless it is running
	Halted     map[Key]error // partitions that are halted one by one
	StateBytes int64         // of all partitions, as limits.state counts them
	StateKeys  int           // the same
	Waiting    int           // pieces of all partitions that it is still to be told, or to flush
	Counters
}

// Counters count since the generation was loaded.
type Counters struct {
	Calls     map[abi.Hook]uint64
	Failures  map[abi.Status]uint64
	Time      map[abi.Hook]time.Duration // spent in them
	Emits     uint64                     // that were written
	Skipped   uint64                     // ranges that the plugin was not told because of its policy
	Discarded uint64                     // instances
	LostLines uint64                     // of its log, in all lanes
	Refused   uint64                     // puts for which a partition's state had no room
	Memory    uint32                     // bytes that the instance had at last
}

func (c *Counters) called(h abi.Hook, took time.Duration, memory uint32, f *Failure) {
	if c.Calls == nil {
		c.Calls, c.Time, c.Failures = map[abi.Hook]uint64{}, map[abi.Hook]time.Duration{}, map[abi.Status]uint64{}
	}
	c.Calls[h]++
	c.Time[h] += took
	c.Memory = memory
	if f != nil {
		c.Failures[f.Status]++
	}
}

// called counts a call of the instance.
func (m *member) called(h abi.Hook, took time.Duration, f *Failure) {
	m.count.called(h, took, m.i.size(), f)
	m.count.Refused += m.i.refused
	m.i.refused = 0
}

// Status says how the plugins fare, in the order of the config.
func (l *Lane) Status() (all []Status) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, m := range l.members {
		s := m.status()
		s.Lane = l.number
		all = append(all, s)
	}
	return all
}

func (m *member) status() Status {
	s := Status{Plugin: m.p.spec.Name, Generation: m.p.about.generation, State: Running, Reason: m.trouble, Counters: m.count, Halted: map[Key]error{}}
	s.Calls, s.Time, s.Failures = maps.Clone(m.count.Calls), maps.Clone(m.count.Time), maps.Clone(m.count.Failures)
	s.LostLines = m.p.lines.Lost()
	for _, q := range m.order {
		s.Waiting += len(q.items)
		if q.state != nil {
			s.StateBytes += q.state.kept.size
			s.StateKeys += len(q.state.kept.pairs)
		}
		if q.halted != nil {
			s.Halted[q.key] = q.halted
		}
	}
	switch {
	case m.broken != nil && m.optional():
		s.State, s.Reason = Off, m.broken.Error()
	case m.broken != nil:
		s.State, s.Reason = Halting, m.broken.Error()
	case len(s.Halted) > 0:
		s.State = Halting
	case m.muted != nil:
		s.State, s.Reason = Retrying, m.muted.Error()
	case m.trouble != "" || len(m.held) > 0:
		s.State = Retrying
	}
	return s
}
