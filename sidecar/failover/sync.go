package failover

import (
	"context"

	"golang.org/x/sync/errgroup"

	"mirror/sidecar/groups"
	"mirror/sidecar/status"
)

// commits is how many groups are committed for at a time.
const commits = 8

// sync commits what is to be committed to groups on the target, that were looked at a
// moment ago. Kafka takes one group in a request. The coordinator refuses what a
// member has overtaken; that is not tried again before the next look.
func (e *Engine) sync(ctx context.Context, views []*view) {
	var todo errgroup.Group
	todo.SetLimit(commits)
	for _, v := range views {
		if v.commits() {
			todo.Go(func() error {
				e.commit(ctx, v)
				return nil
			})
		}
	}
	todo.Wait()
}

func (v *view) commits() bool {
	for i := range v.offsets {
		if v.offsets[i].would == status.SyncCommit {
			return true
		}
	}
	return false
}

// commit commits for one group.
func (e *Engine) commit(ctx context.Context, v *view) {
	var offsets []groups.Offset
	var of []*standing
	for i := range v.offsets {
		if s := &v.offsets[i]; s.would == status.SyncCommit {
			of = append(of, s)
			// The source's leader epochs mean nothing on the target.
			offsets = append(offsets, groups.Offset{Topic: s.p.Target, TopicID: s.p.TargetID, Partition: s.p.Partition,
				Offset: s.to.Offset, LeaderEpoch: -1, Metadata: s.from.Metadata})
		}
	}
	errs := e.target.Commit(ctx, v.name, offsets)
	e.mu.Lock()
	defer e.mu.Unlock()
	g := e.marks.of(v.name)
	for i, s := range of {
		if errs[i] != nil {
			s.would, s.held = status.SyncHold, heldBy(errs[i])
			e.counts.refused[s.held]++
			v.refused = errs[i]
			continue
		}
		m := g.at(e.marks.placeOf(s.onTarget()))
		if m.synced >= 0 && s.there < 0 {
			e.counts.expired++
		}
		m.synced = s.to.Offset
		s.there, s.other = s.to.Offset, false
		e.counts.committed++
		g.left = &v.kind
	}
}

// notice compares what groups have on the target with what the mirror last committed
// there, and says what else has happened to them.
func (e *Engine) notice(views []*view) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, v := range views {
		g := e.marks.group(v.name)
		if g == nil || v.unread != nil {
			continue
		}
		left := g.left
		g.left = nil
		if v.there.Active() || v.there.Share() {
			continue
		}
		ours, gone, on, back := 0, 0, 0, (*standing)(nil)
		for i := range v.offsets {
			s := &v.offsets[i]
			m := g.find(e.marks.placeOf(s.onTarget()))
			switch {
			case m == nil || m.synced < 0:
				continue
			case s.there == m.synced:
				ours++
				continue
			case s.there < 0:
				gone++
				continue
			case s.there > m.synced:
				on++
			case back == nil:
				back = s
			}
			m.synced = s.there // said once
		}
		if gone > 0 {
			e.o.Log.Info("the group's offsets are gone from the target (expired, or deleted), committing them again", "group", v.name, "offsets", gone)
		}
		if back != nil {
			e.o.Log.Warn("the group was moved back on the target since the mirror committed for it", "group", v.name,
				"topic", back.p.Target, "partition", back.p.Partition, "offset", back.there)
		}
		if left != nil && ours > 0 && left.visited(v.kind) {
			e.counts.crossed++
			e.o.Log.Warn("a member of the group came and went on the target around a commit of the mirror's: "+
				"if it committed just before that, this is overwritten, and may be read again", "group", v.name)
		}
	}
}
