package pipeline

import (
	"context"

	"mirror/sidecar/cluster"
	"mirror/sidecar/config"
	"mirror/sidecar/status"
)

// checkTargets decides whether the target's logs are those that the positions
// were saved for. An empty one gets all that the source has.
func (f *Flow) checkTargets(ctx context.Context, bs []*beginning) {
	ends := f.offsets(ctx, f.target, bs, targetPartition, cluster.LatestOffset, config.ReadUncommitted)
	var there []*beginning
	for _, b := range bs {
		if b.going() {
			there = append(there, b)
		}
	}
	starts := f.offsets(ctx, f.target, there, targetPartition, cluster.EarliestOffset, config.ReadUncommitted)
	var shrunk []*beginning
	for _, b := range there {
		if !b.going() {
			continue
		}
		b.targetEnd, b.holds = ends[b], starts[b] < ends[b]
		switch {
		case !b.known: // checkUnplaced looks at it once it is known where it would begin
		case differ(b.at.TargetTopicID, b.targetID):
			b.otherTarget()
		case !b.at.Plain && b.shortAt() <= b.at.TargetOffset:
			shrunk = append(shrunk, b)
		}
	}
	f.checkShrunk(ctx, shrunk)
}

// otherTarget is a target topic that was made again.
func (b *beginning) otherTarget() {
	p, f := b.p, b.p.flow
	switch {
	case !b.holds:
		b.note("", "the target topic is a new one: copying from the beginning", "target", p.target, "old_position", b.at.Offset)
	case f.cfg().OnLostPositions == config.Restart:
		b.note(status.ErrorLostPositions, "the target topic was made again by somebody else: copying from the beginning, behind the records that it holds",
			"target", p.target, "old_position", b.at.Offset)
	default:
		b.halt(status.ErrorLostPositions, b.at.Offset+1, "topic %q on cluster %q was made again by somebody else and holds records: delete it to have %q copied from its beginning, "+
			`set on_lost_positions = "restart" to have it copied behind them, or exclude the topic`, p.target, f.cfg().To, p.key.Topic)
		return
	}
	b.begins()
}

// checkUnplaced looks at partitions without a position. One that this mirror
// began with an empty target has one from before its first record on. So records
// without a position are somebody else's, or the position is lost.
func (f *Flow) checkUnplaced(bs []*beginning) {
	for _, b := range bs {
		if !b.going() || b.known || b.anew || !b.holds {
			continue
		}
		p := b.p
		if f.cfg().OnLostPositions == config.Restart {
			b.note(status.ErrorLostPositions, "the target holds records, yet there is no position: copying again, behind them", "target", p.target, "from", b.at.Offset+1)
			continue
		}
		b.halt(status.ErrorLostPositions, b.at.Offset+1, "topic %q on cluster %q holds records, yet topic %q there has no position for it: "+
			`delete the former to have %q copied, set on_lost_positions = "restart" to have it copied behind them, or exclude it`,
			p.target, f.cfg().To, f.cfg().Positions.Topic, p.key.Topic)
	}
}
