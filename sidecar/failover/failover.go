// Package failover has consumer groups go on at the target: round after round it reads
// what the groups of the source have committed, has it translated, keeps the answers as
// checkpoints in MirrorMaker's topic and, where that is asked for, commits them to
// the groups on the target. What it would do it can also say without doing it.
//
//	groups.Client ──committed──► look ──asked──► Translate (the plugins)
//	 (source)                      │ views
//	                               ├──► checkpoints: offsets.Checkpoints (target)
//	                               └──► sync: groups.Client (target)
//
// failover.go runs the rounds, round.go is one of them, look.go finds how a few groups
// stand, checkpoints.go and sync.go act on it, rules.go decides, marks.go is what is
// remembered; explain.go and lag.go say it instead. It translates nothing itself.
package failover

import (
	"cmp"
	"context"
	"log/slog"
	"sync"
	"time"

	"mirror/plugins"
	"mirror/sidecar/cluster"
	"mirror/sidecar/config"
	"mirror/sidecar/groups"
	"mirror/sidecar/offsets"
	"mirror/sidecar/policy"
	"mirror/sidecar/status"
)

// Partition is a mirrored partition, as far as groups are concerned.
type Partition struct {
	plugins.Key                 // on the source
	Target             string   // its topic there
	SourceID, TargetID [16]byte // of the topics, zero where not known
	Position           int64    // the last source offset that the target has, -1: none
	TargetEnd          int64    // where the target's log ends, as far as is known; -1: not known
	SourceEnd          int64    // where what may be copied ends, -1: not known
}

// Options of an Engine.
type Options struct {
	Source, Target *cluster.Cluster
	// Config is the flow's, as it is now.
	Config func() *config.Flow
	// On says whether checkpoints are to be written now, and if not why. Changed holds a
	// token after it may have changed, or the config.
	On      func() (on bool, reason string)
	Changed <-chan struct{}
	// Partitions are those that are mirrored now.
	Partitions func() []Partition
	// Translate has offsets translated: one answer for each, in order.
	Translate func(context.Context, []plugins.GroupOffset) ([]plugins.Translation, error)
	// Syncs reads the flow's offset syncs, to explain translations with.
	Syncs func(context.Context) ([]offsets.Sync, error)
	// Count counts an error.
	Count func()
	Log   *slog.Logger
}

// Engine does the rounds of one flow. Its methods may be called by several
// goroutines.
type Engine struct {
	o              Options
	source, target *groups.Client
	topic          *offsets.Checkpoints
	topicID        [16]byte  // as it was last seen; for the goroutine of Run
	topicSeen      time.Time // and when

	mu        sync.Mutex
	marks     *marks // nil: off, or not loaded yet
	loadedFor string // see chosen
	failing   string // why the last round failed, "": it did not
	ailing    string // what was wrong with some groups in the last whole round, "": nothing
	reported  report
	counts    counts
}

// New does no I/O.
func New(o Options) *Engine {
	c := o.Config()
	return &Engine{
		o: o, source: groups.New(o.Source), target: groups.New(o.Target),
		topic: offsets.NewCheckpoints(offsets.TopicOptions{
			Cluster: o.Target, Name: c.CheckpointsTopic(), Create: c.Create, Log: o.Log,
		}),
		counts: counts{refused: map[string]uint64{}},
	}
}

// Run does rounds until ctx ends. While it is off it waits, and does nothing.
func (e *Engine) Run(ctx context.Context) {
	defer e.topic.Close()
	for ctx.Err() == nil {
		on, _ := e.o.On()
		var again <-chan time.Time
		if on {
			began := time.Now()
			c := e.o.Config()
			err := e.round(ctx, c)
			if ctx.Err() != nil {
				return
			}
			if e.stale(c) { // then what came of it says nothing
				continue
			}
			e.ended(err)
			again = time.After(max(time.Until(began.Add(c.Checkpoints.Interval)), leastPause))
		} else {
			e.rest()
		}
		select {
		case <-ctx.Done():
		case <-e.o.Changed:
		case <-again:
		}
	}
}

// leastPause is the time between two rounds, however long one takes.
const leastPause = time.Millisecond

// stale says that a config does not hold any more for what groups are about.
func (e *Engine) stale(c *config.Flow) bool {
	on, _ := e.o.On()
	now := e.o.Config()
	return !on || now.Checkpoints != c.Checkpoints || chosen(now) != chosen(c)
}

// rest gives back what is remembered: the topic has it.
func (e *Engine) rest() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.marks, e.reported, e.failing, e.ailing = nil, report{}, "", ""
}

// ended keeps what came of a round, and says it when that is new.
func (e *Engine) ended(err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if err != nil {
		e.o.Count()
		if e.failing == "" {
			e.o.Log.Error("consumer groups cannot be followed, trying again", "err", err)
		}
		e.failing = err.Error()
		return
	}
	if e.failing != "" {
		e.o.Log.Info("consumer groups are followed again")
	}
	e.failing = ""
}

// filter selects groups.
func filter(c *config.Flow) policy.Filter { return policy.NewFilter(c.Groups, c.ExcludeGroups) }

// Status says how it is going.
func (e *Engine) Status() status.Failover {
	c := e.o.Config()
	on, reason := e.o.On()
	e.mu.Lock()
	defer e.mu.Unlock()
	s := e.reported.status()
	s.Enabled, s.Reason, s.Topic = on, reason, e.topic.Name()
	s.SyncGroups = on && c.Checkpoints.SyncGroups.On
	s.Problem = cmp.Or(e.failing, e.ailing)
	if err := e.topic.Problem(); err != nil && s.Problem == "" {
		s.Problem = err.Error()
	}
	s.Checkpoints = e.marks.count()
	e.counts.into(&s)
	return s
}
