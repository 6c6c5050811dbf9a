package failover

import (
	"context"
	"fmt"

	"mirror/plugins"
	"mirror/sidecar/groups"
	"mirror/sidecar/status"
)

// view is how a group stands.
type view struct {
	name    string
	offsets []standing
	size    int   // how many offsets its coordinator has sent
	err     error // why its offsets could not be read
	there   groups.Group
	kind    kind // of the group there, where it matters
	// unread is why it is not known what the group has on the target.
	unread error
	// refused is why the target would not have a commit.
	refused error
}

// standing is how a group stands in one partition.
type standing struct {
	p     *Partition
	from  groups.Offset
	to    plugins.Translation
	there int64 // what the group has on the target, -1: nothing, or it was not looked at
	other bool  // with other metadata than on the source
	would string
	held  string
}

// mirrored is the partitions of a round.
type mirrored struct {
	all            []Partition
	byKey          map[plugins.Key]*Partition
	source, target groups.Topics
}

func (e *Engine) mirrored() *mirrored {
	m := &mirrored{
		all: e.o.Partitions(), byKey: map[plugins.Key]*Partition{},
		source: groups.Topics{Names: map[string]bool{}, ByID: map[[16]byte]string{}},
		target: groups.Topics{Names: map[string]bool{}, ByID: map[[16]byte]string{}},
	}
	for i := range m.all {
		p := &m.all[i]
		m.byKey[p.Key] = p
		m.source.Names[p.Topic], m.target.Names[p.Target] = true, true
		if p.SourceID != [16]byte{} {
			m.source.ByID[p.SourceID] = p.Topic
		}
		if p.TargetID != [16]byte{} {
			m.target.ByID[p.TargetID] = p.Target
		}
	}
	return m
}

// look reads what groups have committed of the mirrored partitions, and has it
// translated. Groups without any have none in their view.
func (e *Engine) look(ctx context.Context, names []string, m *mirrored) ([]*view, error) {
	var asked []plugins.GroupOffset
	views := make([]*view, len(names))
	for i, c := range e.source.Fetch(ctx, names, m.source) {
		v := &view{name: names[i], size: c.All, err: c.Err}
		views[i] = v
		for _, o := range c.Offsets {
			p := m.byKey[plugins.Key{Topic: o.Topic, Partition: o.Partition}]
			if p == nil {
				continue
			}
			v.offsets = append(v.offsets, standing{p: p, from: o, there: -1})
			asked = append(asked, plugins.GroupOffset{Key: p.Key, Group: v.name, Offset: o.Offset, LeaderEpoch: o.LeaderEpoch, Metadata: o.Metadata, LogStart: -1})
		}
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	answers, err := e.translate(ctx, asked)
	if err != nil {
		return nil, fmt.Errorf("translate offsets of groups: %w", err)
	}
	ends := e.ends(len(asked))
	n := 0
	for _, v := range views {
		for i := range v.offsets {
			s := &v.offsets[i]
			s.to = believed(answers[n], ends[s.p.Key])
			n++
		}
	}
	return views, nil
}

// translate asks the plugins.
func (e *Engine) translate(ctx context.Context, asked []plugins.GroupOffset) ([]plugins.Translation, error) {
	if len(asked) == 0 {
		return nil, nil
	}
	answers, err := e.o.Translate(ctx, asked)
	if err == nil && len(answers) != len(asked) {
		err = fmt.Errorf("%d answers for %d offsets", len(answers), len(asked))
	}
	return answers, err
}

// ends are where the target's logs end by now: what was stored while the plugins were
// asked may be in their answers.
func (e *Engine) ends(asked int) map[plugins.Key]int64 {
	if asked == 0 {
		return nil
	}
	ends := map[plugins.Key]int64{}
	for _, p := range e.o.Partitions() {
		ends[p.Key] = p.TargetEnd
	}
	return ends
}

// lookThere reads what the groups of views have on the target, and says what a sync
// would do. all are the groups that are listed there, nil where that is not known. With
// busy groups that have members there are read too.
func (e *Engine) lookThere(ctx context.Context, views []*view, m *mirrored, all map[string]groups.Group, busy bool) {
	var names []string
	var at []*view
	for _, v := range views {
		v.there = all[v.name]
		if len(v.offsets) > 0 && !v.there.Share() && (busy || !v.there.Active()) {
			names, at = append(names, v.name), append(at, v)
		}
	}
	for i, c := range e.target.Fetch(ctx, names, m.target) {
		at[i].unread = c.Err
		have := make(map[plugins.Key]groups.Offset, len(c.Offsets))
		for _, o := range c.Offsets {
			have[plugins.Key{Topic: o.Topic, Partition: o.Partition}] = o
		}
		for j := range at[i].offsets {
			s := &at[i].offsets[j]
			if o, ok := have[plugins.Key{Topic: s.p.Target, Partition: s.p.Partition}]; ok {
				s.there, s.other = o.Offset, o.Metadata != s.from.Metadata
			}
		}
	}
	for _, v := range views {
		v.judge()
	}
	if !busy {
		e.lookForMembers(ctx, views)
	}
}

// lookForMembers finds by what it will be told whether groups that have an epoch had
// members: those that are committed for now, and those that were in the last round.
func (e *Engine) lookForMembers(ctx context.Context, views []*view) {
	var all []groups.Group
	e.mu.Lock()
	for _, v := range views {
		g := e.marks.group(v.name)
		if v.there.HasEpoch() && !v.there.Active() && (v.commits() || g != nil && g.left != nil) {
			all = append(all, v.there)
		}
	}
	e.mu.Unlock()
	epochs := e.target.Epochs(ctx, all)
	for _, v := range views {
		v.kind = kind{v.there.Type, v.there.Protocol, epochs[v.name]}
	}
}

// judge says what a sync would do about each offset.
func (v *view) judge() {
	for i := range v.offsets {
		s := &v.offsets[i]
		if s.would, s.held = wouldSync(s.to, v.there, s.there, s.other); v.unread != nil && s.held == "" {
			s.would, s.held = status.SyncHold, heldUnread(v.unread)
		}
	}
}

// heldUnread is why nothing is committed where it is not known what is there.
func heldUnread(err error) string {
	if groups.Denied(err) {
		return status.HeldDenied
	}
	return status.HeldUnreadable
}
