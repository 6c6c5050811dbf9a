package pipeline

import (
	"context"
	"fmt"

	"mirror/sidecar/batch"
	"mirror/sidecar/config"
	"mirror/sidecar/resume"
	"mirror/sidecar/status"
)

// refill finds out which records targets have lost that had acknowledged them, and
// moves the positions back before those, so that they are copied again. How many
// they are is told by sequences: that of the last record that is left, and the
// position's. As many records before the position they are at the source. Where that
// cannot be known, and for what the source does not have any more, it is as
// on_data_loss says.
func (f *Flow) refill(ctx context.Context, bs []*beginning) {
	source := &resume.Reader{Leaders: f.sourceLeaders, Dial: f.dialer(f.source, nil), Committed: f.committed}
	target := &resume.Reader{Leaders: f.targetLeaders, Dial: f.dialer(f.target, nil)}
	defer source.Close()
	defer target.Close()
	for _, b := range bs {
		if !b.going() || b.anew || b.keptTo < 0 && b.missing == 0 {
			continue
		}
		reading, cancel := context.WithTimeout(ctx, tailTime)
		err := b.refill(reading, source, target)
		cancel()
		switch {
		case err == nil:
		case unmatchable(err):
			b.holed(err)
		default:
			b.err = err
		}
	}
}

// errUntold wraps resume.ErrMismatch: another look would not tell more.
var errUntold = fmt.Errorf("%w: how many are missing cannot be told", resume.ErrMismatch)

func (b *beginning) refill(ctx context.Context, source, target *resume.Reader) (err error) {
	if b.cut { // the source's log was cut off as well
		return errUntold
	}
	n := b.missing
	if b.keptTo >= 0 {
		if n, err = b.lacks(ctx, target); err != nil {
			return err
		}
	}
	at, err := b.before(ctx, source, n)
	if err != nil {
		return err
	}
	b.note(status.ErrorDataLoss, "the target has lost records that it had acknowledged, copying them again", "target", b.p.target,
		"records", n, "from", at+1, "to", b.at.Offset)
	b.at.SourceEpochs = b.at.SourceEpochs.UpTo(at)
	b.at.Offset, b.at.SourceLeaderEpoch, b.cut = at, b.at.SourceEpochs.At(at), true
	return nil
}

// lacks is how many records of the position's producer the target has lost at its
// end.
func (b *beginning) lacks(ctx context.Context, target *resume.Reader) (int64, error) {
	if b.at.Sequence < 0 {
		return 0, errUntold
	}
	last := resume.Partition{Topic: b.p.target, ID: b.targetID, Number: b.p.key.Partition, From: b.keptTo - 1, End: b.keptTo}
	for t, err := range target.Log(ctx, last) {
		if err != nil {
			return 0, err
		}
		if t.ProducerID() != b.at.ProducerID || t.ProducerEpoch() != b.at.ProducerEpoch || t.Control() || t.Count() < 1 {
			break
		}
		kept := batch.NextSequence(t.BaseSequence(), t.Count()-1)
		n := (int64(b.at.Sequence) - int64(kept)) & 0x7fffffff
		if n > b.at.TargetOffset-b.keptTo+1 {
			break // more than were there
		}
		return n, nil
	}
	return 0, errUntold
}

// before is the source offset after which the last n records up to the position
// are.
func (b *beginning) before(ctx context.Context, source *resume.Reader, n int64) (int64, error) {
	for at, count := b.at.Offset, int64(0); ; {
		if count >= n {
			return at, nil
		}
		if at -= n - count; at < -1 || b.at.Offset-at > tailMost {
			return 0, errUntold
		}
		var err error
		if count, err = b.between(ctx, source, at, b.at.Offset); err != nil {
			return 0, err
		}
	}
}

// between counts the source's records after one offset and up to another, as far
// as they are copied.
func (b *beginning) between(ctx context.Context, source *resume.Reader, after, last int64) (n int64, err error) {
	log := source.Log(ctx, resume.Partition{Topic: b.p.key.Topic, ID: b.sourceID, Number: b.p.key.Partition, From: after + 1, End: last + 1})
	for s, err := range log {
		switch {
		case err != nil:
			return 0, err
		case s.Control() || s.Aborted:
		case s.BaseOffset() > after && s.LastOffset() <= last && s.Count() >= 0:
			n += int64(s.Count())
		default:
			for r, err := range s.Records(maxDecompressed) {
				if err != nil {
					return 0, err
				}
				if r.Offset > after && r.Offset <= last {
					n++
				}
			}
		}
	}
	return n, nil
}

// holed is a target that has lost records which cannot be copied again.
func (b *beginning) holed(why error) {
	p, f := b.p, b.p.flow
	if b.keptTo >= 0 {
		why = fmt.Errorf("offsets %d to %d are gone: %w", b.keptTo, b.at.TargetOffset, why)
	} else {
		why = fmt.Errorf("%d records are gone: %w", b.missing, why)
	}
	if f.cfg().OnDataLoss == config.Halt {
		b.halt(status.ErrorDataLoss, b.at.Offset+1, "topic %q on cluster %q has lost records that it had acknowledged (%v): "+
			`set on_data_loss = "continue" and reload the config to go on without them, delete the topic to have all copied again, or exclude %q`,
			p.target, f.cfg().To, why, p.key.Topic)
		return
	}
	b.note(status.ErrorDataLoss, "the target has lost records that it had acknowledged, going on without them; delete the topic to have all copied again",
		"target", p.target, "err", why)
	b.cut = true
}

// checkShrunk confirms that target logs are shorter than what they have
// acknowledged: the high watermark of a new leader may be behind for a moment.
func (f *Flow) checkShrunk(ctx context.Context, bs []*beginning) {
	logs := f.logEnds(ctx, bs, nil)
	for _, b := range bs {
		log, ok := logs[targetPartition(b.p)]
		switch {
		case b.err != nil:
		case b.short < 0 && ok && log.Err == nil && log.End > b.at.TargetOffset:
			b.err = errHidden
		case b.shortAt() == 0:
			b.note(status.ErrorDataLoss, "the target has lost all records that it had acknowledged: copying from the beginning", "target", b.p.target, "old_position", b.at.Offset)
			b.begins()
		default:
			b.keptTo = b.shortAt()
		}
	}
}

// shortAt is where the target's log ended when it was found to be shorter than
// what it has acknowledged, or where it ends.
func (b *beginning) shortAt() int64 {
	if b.short >= 0 {
		return min(b.short, b.targetEnd)
	}
	return b.targetEnd
}
