package failover

import (
	"context"
	"fmt"
	"slices"
	"time"

	"mirror/abi"
	"mirror/plugins"
	"mirror/sidecar/groups"
	"mirror/sidecar/offsets"
	"mirror/sidecar/status"
)

// Why nothing can be said of groups, or of one.
var (
	ErrOff     error = silence("checkpoints are off")
	ErrNoGroup error = silence("no such group")
)

// silence is an error that is an answer: there is nothing to say.
type silence string

func (s silence) Error() string { return string(s) }

// NothingToSay tells it from trouble.
func (silence) NothingToSay() bool { return true }

// Explain says where a group would go on at the target, as it is now, for all
// mirrored partitions that it has offsets of, or those of one topic, and what a sync
// would do; it changes nothing. Beside ctx's its errors are ErrOff, ErrNoGroup, and
// what the clusters answer.
func (e *Engine) Explain(ctx context.Context, name, topic string) (status.GroupTranslation, error) {
	c := e.o.Config()
	out := status.GroupTranslation{
		Flow: c.Name(), Group: name, At: time.Now(), SyncGroups: c.Checkpoints.SyncGroups.On, Partitions: []status.TranslatedOffset{},
	}
	if on, why := e.o.On(); !on {
		return out, fmt.Errorf("flow %s: %w: %s", c.Name(), ErrOff, why)
	}
	if !filter(c).Selects(name) {
		return out, fmt.Errorf("flow %s: %w: group %q is not selected: see groups and exclude_groups", c.Name(), ErrNoGroup, name)
	}
	m := e.mirrored()
	listed, err := e.source.List(ctx)
	if err != nil && listed == nil {
		return out, err
	}
	views, err := e.look(ctx, []string{name}, m)
	if err != nil {
		return out, err
	}
	v := views[0]
	g, known := listed[name]
	switch {
	case v.err != nil:
		return out, v.err
	case g.Share():
		return out, fmt.Errorf("flow %s: %w: %q is a share group, which has no offsets to translate", c.Name(), ErrNoGroup, name)
	case !known && len(v.offsets) == 0:
		return out, fmt.Errorf("flow %s: %w: cluster %q has no group %q that the mirror's user may DESCRIBE", c.Name(), ErrNoGroup, c.From, name)
	}
	there, err := e.target.List(ctx)
	if err != nil && there == nil {
		return out, err
	}
	e.lookThere(ctx, views, m, there, true)
	if v.unread != nil {
		return out, v.unread
	}
	out.State, out.TargetState = stateOf(listed, name), stateOf(there, name)
	nearest := e.nearest(ctx, v)
	for i := range v.offsets {
		if s := &v.offsets[i]; topic == "" || s.p.Topic == topic {
			out.Partitions = append(out.Partitions, e.explained(v.name, s, nearest[s.p.Key], out.At))
		}
	}
	slices.SortFunc(out.Partitions, byTopic)
	return out, nil
}

func stateOf(listed map[string]groups.Group, name string) string {
	g, ok := listed[name]
	if !ok {
		return "Absent"
	}
	return g.State
}

func (e *Engine) explained(group string, s *standing, nearest *status.SyncPoint, now time.Time) status.TranslatedOffset {
	out := status.TranslatedOffset{
		Topic: s.p.Topic, Target: s.p.Target, Partition: s.p.Partition, Source: s.from.Offset, Metadata: s.from.Metadata,
		Offset: s.to.Offset, Outcome: outcome(s.to), Reason: inexact(s.to), Plugin: s.to.Plugin, Run: run(s.to.Run), Nearest: nearest,
		Committed: s.there, Would: s.would, Held: s.held,
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if k := e.marked(group, s); k != nil && k.down >= 0 {
		at := time.Unix(int64(k.at), 0)
		out.Checkpoint = &status.WrittenCheckpoint{Upstream: k.up, Downstream: k.down, Written: at.UTC(), Age: max(now.Sub(at).Seconds(), 0)}
	}
	return out
}

// run is a run as it is shown, nil: none.
func run(r abi.Run) *status.Run {
	if r.Records == 0 {
		return nil
	}
	return &status.Run{First: r.First, Last: r.Last(), Target: r.Target}
}

// marked is the checkpoint of a group, nil: none. The caller holds the lock.
func (e *Engine) marked(group string, s *standing) *mark {
	if e.marks == nil {
		return nil
	}
	place, ok := e.marks.places[s.onTarget()]
	if !ok {
		return nil
	}
	return e.marks.group(group).find(place)
}

// nearest are the offset syncs that MirrorMaker would translate a group's offsets by.
// Without any, or where they cannot be read, there is less to say.
func (e *Engine) nearest(ctx context.Context, v *view) map[plugins.Key]*status.SyncPoint {
	want := map[plugins.Key]int64{}
	for i := range v.offsets {
		want[v.offsets[i].p.Key] = v.offsets[i].from.Offset
	}
	found := map[plugins.Key]*status.SyncPoint{}
	syncs, err := e.o.Syncs(ctx)
	if err != nil {
		return found
	}
	for _, s := range syncs {
		k := plugins.Key{Topic: s.Topic, Partition: s.Partition}
		if offset, ok := want[k]; ok {
			found[k] = closer(found[k], s, offset)
		}
	}
	return found
}

// closer is the better one of two syncs for an offset: the one at or before it that is
// further, or the later one where they are of one source record.
func closer(was *status.SyncPoint, s offsets.Sync, offset int64) *status.SyncPoint {
	if s.Upstream > offset || was != nil && s.Upstream < was.Upstream {
		return was
	}
	return &status.SyncPoint{Upstream: s.Upstream, Downstream: s.Downstream}
}

func byTopic(a, b status.TranslatedOffset) int {
	if a.Topic != b.Topic {
		if a.Topic < b.Topic {
			return -1
		}
		return 1
	}
	return int(a.Partition) - int(b.Partition)
}
