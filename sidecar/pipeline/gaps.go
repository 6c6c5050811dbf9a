package pipeline

import (
	"context"
	"fmt"

	"mirror/sidecar/cluster"
	"mirror/sidecar/config"
	"mirror/sidecar/positions"
)

// checkTopics compares the topics' ids with those of the position. A position
// counts the offsets of one topic; one of the same name made later is another.
func (f *Flow) checkTopics(ctx context.Context, bs []*beginning) {
	var renewed []*beginning
	for _, b := range bs {
		if !b.known {
			continue
		}
		source := differ(b.at.SourceTopicID, b.sourceID)
		target := differ(b.at.TargetTopicID, b.targetID)
		switch {
		case target:
			renewed = append(renewed, b)
		case source:
			b.stall = fmt.Sprintf("topic %q was deleted and made again on cluster %q, and topic %q on cluster %q holds records of the old one: "+
				"delete the latter to have the new one copied from its beginning, or exclude the topic",
				b.p.key.Topic, f.cfg.From, b.p.target, f.cfg.To)
			b.stallAt = b.at.Offset + 1
		}
	}
	ends := f.offsets(ctx, f.target, renewed, targetPartition, cluster.LatestOffset, config.ReadUncommitted)
	for _, b := range renewed {
		switch end, ok := ends[b]; {
		case !ok:
		case end > 0:
			b.stall = fmt.Sprintf("topic %q on cluster %q was made again by somebody else and holds records: delete it to have %q copied from its beginning",
				b.p.target, f.cfg.To, b.p.key.Topic)
			b.stallAt = b.at.Offset + 1
		default:
			b.at, b.known, b.gap, b.renewed = positions.Plain(-1), false, nil, true
		}
	}
}

func differ(saved, now [16]byte) bool {
	return saved != [16]byte{} && now != [16]byte{} && saved != now
}

// fillGaps decides what an offset that the source does not have means. Below the
// log's start it was taken by retention: that is counted, said, and copying goes
// on at the start. Beyond the end, or where the logs part, the source is not the
// one that was copied.
func (f *Flow) fillGaps(ctx context.Context, bs []*beginning) {
	var out []*beginning
	for _, b := range bs {
		if !b.going() || b.gap == nil {
			continue
		}
		if b.gap.Diverged {
			b.stall = fmt.Sprintf("topic %q on cluster %q was truncated: its log parts from the one that was copied at offset %d or before, and records up to %d are on the target",
				b.p.key.Topic, f.cfg.From, b.gap.End, b.at.Offset)
			b.stallAt = b.gap.End
			continue
		}
		out = append(out, b)
	}
	first := f.offsets(ctx, f.source, out, sourcePartition, cluster.EarliestOffset, config.ReadUncommitted)
	last := f.offsets(ctx, f.source, out, sourcePartition, cluster.LatestOffset, config.ReadUncommitted)
	for _, b := range out {
		if !b.going() {
			continue
		}
		start, end, want := first[b], last[b], b.at.Offset+1
		switch {
		case want < start:
			b.lost = start - want
			b.at.Offset, b.at.SourceLeaderEpoch = start-1, -1
		case want > end:
			b.stall = fmt.Sprintf("topic %q on cluster %q ends at offset %d, but records up to %d were copied: it was truncated or made again",
				b.p.key.Topic, f.cfg.From, end, b.at.Offset)
			b.stallAt = end
		case b.p.odd(want):
			b.stall = fmt.Sprintf("topic %q on cluster %q has offsets %d to %d, yet says that it does not have offset %d after leader epoch %d: it was truncated or made again",
				b.p.key.Topic, f.cfg.From, start, end, want, b.at.SourceLeaderEpoch)
			b.stallAt = want
		}
	}
}

// odd says whether the source has denied before, and since then not served, an
// offset that its log reaches to. Once it may have changed in the meantime; again,
// it means that the log does not have the leader epoch that was read last.
func (p *partition) odd(offset int64) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	before := p.oddGap
	p.oddGap = offset
	return before == offset
}
