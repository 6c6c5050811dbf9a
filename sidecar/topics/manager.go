package topics

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"mirror/sidecar/cluster"
	"mirror/sidecar/config"
	"mirror/sidecar/policy"
)

// Options say for which clusters a manager keeps up topics.
type Options struct {
	Source, Target *cluster.Cluster
	Policy         *policy.Policy
	Log            *slog.Logger // with the flow's name
}

// Manager keeps up the target topics of one flow. It is used by one goroutine.
type Manager struct {
	source, target *cluster.Cluster
	policy         *policy.Policy
	filter         policy.Filter
	create         config.Create
	log            *slog.Logger

	patience time.Duration     // for leaders of what was just made
	trouble  map[string]string // what was last logged of a source topic
	denied   bool              // it was logged that target configs cannot be read
}

// New returns a manager. It does no I/O.
func New(o Options) *Manager {
	return &Manager{
		source: o.Source, target: o.Target, policy: o.Policy, log: o.Log,
		patience: 5 * time.Second,
		trouble:  map[string]string{},
	}
}

// Choose says which topics are to be mirrored from the next round on, and how
// those are made that the target lacks. Without it there are none.
func (m *Manager) Choose(filter policy.Filter, create config.Create) {
	m.filter, m.create = filter, create
}

// Selects says whether the source topic is to be mirrored.
func (m *Manager) Selects(topic string) bool { return m.policy.Mirrors(m.filter, topic) }

// Snapshot is what one round found and made.
type Snapshot struct {
	Topics []Topic // every selected source topic, sorted by name
}

// Topic is a selected source topic and its target.
type Topic struct {
	Source, Target string
	// SourceID and TargetID change when a topic is deleted and made again. They
	// are zero where a cluster has no ids (before Kafka 2.8).
	SourceID, TargetID [16]byte
	// Partitions is how many there are on both sides, the ones that can be
	// mirrored now; 0 when the topic cannot be mirrored at all.
	Partitions int32
	// MaxMessageBytes is the largest batch that the target topic takes, 0 when
	// that is not known.
	MaxMessageBytes int
	// LogAppendTime says that the target topic stamps records itself.
	LogAppendTime bool
	// Err says why the topic, or with Partitions > 0 the rest of its partitions,
	// cannot be mirrored now, and what to do about it.
	Err error
}

// Sync does one round: it looks at both clusters, plans, applies the plan and
// says what there is. A topic's trouble is in its Err, and logged when it
// changes. The error is one of the whole round; what the round had done until
// then stays, and the next one goes on from there.
func (m *Manager) Sync(ctx context.Context) (Snapshot, error) {
	view, pairs, err := m.discover(ctx)
	if err != nil {
		return Snapshot{}, err
	}
	plan := NewPlan(view, pairs, m.create)
	failed, err := m.apply(ctx, plan)
	if err != nil {
		return Snapshot{}, err
	}
	if err := m.settle(ctx, plan, failed, view.Target); err != nil {
		return Snapshot{}, err
	}
	s, err := m.snapshot(ctx, view, plan, failed)
	if err != nil {
		return Snapshot{}, err
	}
	m.report(s)
	return s, nil
}

// settle waits until the target shows what was made, with leaders: a new
// partition answers NOT_LEADER for a moment. It does not wait for ever, and
// updates target with what it saw last.
func (m *Manager) settle(ctx context.Context, plan Plan, failed map[string]error, target map[string]cluster.Topic) error {
	want := map[string]int32{}
	for _, c := range plan.Create {
		if failed[c.Source] == nil {
			want[c.Target] = c.Partitions
		}
	}
	for _, g := range plan.Grow {
		if failed[g.Source] == nil {
			want[g.Target] = g.To
		}
	}
	const pause = 50 * time.Millisecond
	for deadline := time.Now().Add(m.patience); len(want) > 0; {
		names := make([]string, 0, len(want))
		for name := range want {
			names = append(names, name)
		}
		seen, err := m.target.Topics(ctx, names)
		if err != nil {
			return err
		}
		for name, topic := range seen {
			if topic.Err != nil {
				continue
			}
			target[name] = topic
			if led(topic) && int32(len(topic.Partitions)) >= want[name] {
				delete(want, name)
			}
		}
		if len(want) == 0 || time.Now().After(deadline) {
			return nil
		}
		if err := wait(ctx, pause); err != nil {
			return err
		}
	}
	return nil
}

func led(t cluster.Topic) bool {
	for _, p := range t.Partitions {
		if p.Leader < 0 {
			return false
		}
	}
	return true
}

func (m *Manager) snapshot(ctx context.Context, view View, plan Plan, failed map[string]error) (Snapshot, error) {
	var names []string
	for _, pair := range plan.Pairs {
		if _, ok := view.Target[pair.Target]; ok {
			names = append(names, pair.Target)
		}
	}
	known, gone, denied, err := m.settings(ctx, names)
	if err != nil {
		return Snapshot{}, err
	}
	if denied != nil && !m.denied {
		m.log.Warn("cannot read topic configs of the target: batches that it refuses are found out by trying; "+
			"allow DescribeConfigs on its topics", "cluster", m.target.Alias(), "err", denied)
	}
	m.denied = denied != nil

	s := Snapshot{Topics: make([]Topic, 0, len(plan.Pairs))}
	for _, pair := range plan.Pairs {
		source := view.Source[pair.Source]
		t := Topic{Source: pair.Source, Target: pair.Target, SourceID: source.ID, Err: failed[pair.Source]}
		target, exists := view.Target[pair.Target]
		switch {
		case gone[pair.Target] != nil:
			t.Err = fmt.Errorf("topic %q on cluster %q was deleted a moment ago: it is made again in the next round",
				pair.Target, m.target.Alias())
		case exists:
			t.TargetID = target.ID
			t.Partitions = int32(min(len(source.Partitions), len(target.Partitions)))
			t.MaxMessageBytes = known[pair.Target].maxMessageBytes
			t.LogAppendTime = known[pair.Target].logAppendTime
			if short := len(source.Partitions) - len(target.Partitions); short > 0 && t.Err == nil {
				t.Err = fmt.Errorf("topic %q on cluster %q lacks %d partitions: added in the next round",
					pair.Target, m.target.Alias(), short)
			}
		case t.Err == nil:
			t.Err = fmt.Errorf("topic %q was made on cluster %q, which does not show it yet: looked up again in the next round",
				pair.Target, m.target.Alias())
		}
		s.Topics = append(s.Topics, t)
	}
	return s, nil
}

// report logs what changed since the last round.
func (m *Manager) report(s Snapshot) {
	now := map[string]string{}
	for _, t := range s.Topics {
		if t.Err == nil {
			if _, ok := m.trouble[t.Source]; ok {
				m.log.Info("topic is mirrored again", "topic", t.Source)
			}
			continue
		}
		now[t.Source] = t.Err.Error()
		if m.trouble[t.Source] != now[t.Source] {
			message := "topic cannot be mirrored"
			if t.Partitions > 0 {
				message = "topic cannot be mirrored whole"
			}
			m.log.Warn(message, "topic", t.Source, "err", t.Err)
		}
	}
	m.trouble = now
}
