package pipeline

import (
	"context"
	"errors"
	"fmt"

	"github.com/twmb/franz-go/pkg/kerr"

	"mirror/abi"
	"mirror/sidecar/cluster"
	"mirror/sidecar/config"
	"mirror/sidecar/positions"
	"mirror/sidecar/status"
)

// checkSources decides whether the source's logs are those that the positions
// count the offsets of. Another topic of the same name has another id; one that
// was truncated, or made again where topics have no ids, does not have the leader
// epochs that were copied, or not as far. What retention took is below the start of
// a log that is the same otherwise.
func (f *Flow) checkSources(ctx context.Context, bs []*beginning) {
	var same []*beginning
	for _, b := range bs {
		switch {
		case !b.going() || !b.known:
			continue
		case differ(b.at.SourceTopicID, b.sourceID):
			b.another("was deleted and made again")
			continue
		}
		if b.gap != nil && b.gap.Offset != b.at.Offset+1 {
			b.gap = nil // of what was read ahead and came to nothing
		}
		same = append(same, b)
	}
	f.checkEpochs(ctx, same)
	f.fillGaps(ctx, same)
}

// differ is false where one of the ids is not known.
func differ(saved, now [16]byte) bool { return known(saved) && known(now) && saved != now }

func known(id [16]byte) bool { return id != [16]byte{} }

// another is a source topic whose offsets are not those of the position, and of
// which nothing is known to be on the target: it is copied from its beginning, if at all.
func (b *beginning) another(what string) {
	p, f := b.p, b.p.flow
	switch {
	case b.at.Offset < 0: // nothing of the old one was ever copied
		b.note("", "the source topic "+what+" before anything of it was copied", "target", p.target)
	case f.cfg().OnRecreated == config.Restart:
		b.note(status.ErrorRecreated, "the source topic "+what+": copying it from its beginning, behind what the target holds of the old one",
			"target", p.target, "old_position", b.at.Offset)
	default:
		b.halt(status.ErrorRecreated, b.at.Offset+1, "topic %q %s on cluster %q, and topic %q on cluster %q holds records of the old one: "+
			`delete the latter to have the new one copied from its beginning, set on_recreated = "restart" to have it copied behind them, or exclude the topic`,
			p.key.Topic, what, f.cfg().From, p.target, f.cfg().To)
		return
	}
	b.begins()
}

// begins has the partition copied from the beginning of its source.
func (b *beginning) begins() {
	b.at, b.known, b.gap, b.anew, b.event = positions.Plain(-1), false, nil, true, abi.Recreated
}

// truncated is a source log that parts from the one that was copied at an
// offset; -1: nobody knows where.
func (b *beginning) truncated(at int64) {
	p, f := b.p, b.p.flow
	if at < 0 || !known(b.at.SourceTopicID) || !known(b.sourceID) {
		// Without ids a truncated topic looks like one that was made again.
		b.another("was truncated or made again")
		return
	}
	if f.cfg().OnRecreated != config.Restart {
		b.halt(status.ErrorRecreated, at, "topic %q on cluster %q was truncated: its log parts from the one that was copied at offset %d, and records up to %d are on the target: "+
			`set on_recreated = "restart" to go on from there, delete topic %q on cluster %q to have all that is left copied from the beginning, or exclude the topic`,
			p.key.Topic, f.cfg().From, at, b.at.Offset, p.target, f.cfg().To)
		return
	}
	b.note(status.ErrorRecreated, "the source topic was truncated: going on where its log parts from the one that was copied; the target keeps what was copied after that",
		"from", at, "copied_to", b.at.Offset)
	b.at.SourceEpochs = b.at.SourceEpochs.UpTo(at - 1)
	b.at.Offset, b.at.SourceLeaderEpoch = at-1, b.at.SourceEpochs.At(at-1)
	b.gap, b.cut, b.event = nil, true, abi.Truncated
}

// checkEpochs looks where the leader epochs end that were copied last. A log that
// has them as far as they were copied is the same up to there (KIP-101).
func (f *Flow) checkEpochs(ctx context.Context, bs []*beginning) {
	asked := map[*beginning]int32{}
	for _, b := range bs {
		if b.at.SourceLeaderEpoch >= 0 {
			asked[b] = b.at.SourceLeaderEpoch
		}
	}
	for len(asked) > 0 { // each time for lower epochs
		ends := f.epochEnds(ctx, asked)
		next := map[*beginning]int32{}
		for b, epoch := range asked {
			end, ok := ends[b]
			if !ok {
				continue
			}
			parts, at, ask := b.parting(epoch, end)
			switch {
			case ask >= 0:
				next[b] = ask
			case parts:
				b.truncated(at)
			}
		}
		asked = next
	}
}

// epochEnds asks the source's leaders. Partitions have no entry where nothing is
// known: those whose leader does not answer have to wait.
func (f *Flow) epochEnds(ctx context.Context, asked map[*beginning]int32) map[*beginning]cluster.EpochEnd {
	ctx, cancel := context.WithTimeout(ctx, lookTime)
	defer cancel()
	for b := range asked {
		if _, _, ok := f.sourceLeaders.Leader(b.p.key.Topic, b.p.key.Partition); !ok {
			_ = f.sourceLeaders.Refresh(ctx) // who is not known then answers for himself
			break
		}
	}
	ask := map[cluster.TopicPartition]cluster.EpochQuestion{}
	for b, epoch := range asked {
		_, leader, _ := f.sourceLeaders.Leader(b.p.key.Topic, b.p.key.Partition)
		ask[sourcePartition(b.p)] = cluster.EpochQuestion{Epoch: epoch, Leader: leader}
	}
	got := f.source.EpochEnds(ctx, ask)
	out := map[*beginning]cluster.EpochEnd{}
	stale := false
	for b, epoch := range asked {
		at := sourcePartition(b.p)
		switch end := got[at]; {
		case errors.Is(end.Err, kerr.UnsupportedVersion): // then fetching has to tell
		case end.Err != nil:
			b.err, stale = fmt.Errorf("cluster %q, topic %q, partition %d: %w", f.source.Alias(), at.Topic, at.Partition, end.Err), true
		case end.Epoch < 0 && ask[at].Leader >= epoch: // it does not know yet, for it leads in a later one
		default:
			out[b] = end
		}
	}
	if stale {
		_ = f.sourceLeaders.Refresh(ctx) // for the next try
	}
	return out
}

// parting says whether the source's log parts from the one that was copied, and
// at which offset: -1 where that cannot be known. The end is where the epoch ends
// at the source; ask is a lower one to be asked for, -1: that was all.
func (b *beginning) parting(epoch int32, end cluster.EpochEnd) (parts bool, at int64, ask int32) {
	want := b.at.Offset + 1
	switch {
	case end.Epoch < 0 || end.End < 0:
		return true, -1, -1
	case end.Epoch > epoch: // no answer to the question
		return false, -1, -1
	}
	// The epoch that both may have, and where it ended in the log that was copied.
	own, ended, ok := b.at.SourceEpochs.Below(end.Epoch)
	if ended < 0 {
		ended = want
	}
	switch {
	case end.Epoch == b.at.SourceLeaderEpoch && end.End >= want:
		return false, -1, -1
	case !ok:
		return true, -1, -1
	case own < end.Epoch:
		return false, -1, own
	default:
		return true, min(end.End, ended), -1
	}
}

// fillGaps decides what an offset that the source does not have means, where the
// log is the same as far as can be told. Below the log's start it was taken by
// retention.
func (f *Flow) fillGaps(ctx context.Context, bs []*beginning) {
	var out []*beginning
	for _, b := range bs {
		if b.going() && b.gap != nil {
			out = append(out, b)
		}
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
			b.dropped(start)
		case want > end:
			b.another(fmt.Sprintf("ends at offset %d, though records up to %d were copied: it was truncated or made again", end, b.at.Offset))
		case b.p.odd(want):
			b.halt(status.ErrorRecreated, want, "topic %q on cluster %q has offsets %d to %d, yet says that it does not have offset %d after leader epoch %d: it was truncated or made again; "+
				"delete topic %q on cluster %q to have it copied from its beginning, or exclude the topic",
				b.p.key.Topic, f.cfg().From, start, end, want, b.at.SourceLeaderEpoch, b.p.target, f.cfg().To)
		}
	}
}

// dropped is what the source deleted before it was copied: all before start.
func (b *beginning) dropped(start int64) {
	p, f, from := b.p, b.p.flow, b.at.Offset+1
	if f.cfg().OnDataLoss == config.Halt {
		b.halt(status.ErrorDataLoss, from, "the source deleted offsets %d to %d of topic %q before they were copied: "+
			`set on_data_loss = "continue" and reload the config to go on after them, delete topic %q on cluster %q to have what is left copied from the beginning, or exclude the topic`,
			from, start-1, p.key.Topic, p.target, f.cfg().To)
		return
	}
	b.lost, b.event = start-from, abi.LogStartMoved
	b.note(status.ErrorDataLoss, "the source deleted records before they were copied, going on after them", "from", from, "to", start-1, "offsets", b.lost)
	b.at.Offset, b.at.SourceLeaderEpoch, b.at.SourceEpochs = start-1, -1, positions.Epochs{}
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
