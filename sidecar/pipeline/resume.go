package pipeline

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"

	"mirror/sidecar/batch"
	"mirror/sidecar/cluster"
	"mirror/sidecar/config"
	"mirror/sidecar/positions"
	"mirror/sidecar/resume"
	"mirror/sidecar/status"
)

const (
	// tailTime is how long reading a partition's tail may take.
	tailTime = time.Minute
	// tailMost is how many offsets a tail may have. More than that in one commit
	// interval means that others write to the topic.
	tailMost = 5_000_000
)

// errHidden is a tail whose end cannot be read yet.
var errHidden = errors.New("the target holds records above its high watermark: waiting for its followers")

// resume looks for what the targets hold after the positions already, because it
// was stored after the last save, and moves the positions past it. Those go on
// with the producer they have: its next sequence is taken only by a partition
// that holds just what was found. The others get a new producer, and what comes
// after their position may be repeated.
//
// What this process has sent itself is looked for even where the config says not
// to resume, which is about what others have.
func (f *Flow) resume(ctx context.Context, bs []*beginning) {
	var ours []*beginning
	for _, b := range bs {
		if b.going() && b.known && !b.cut && b.keptTo < 0 && !b.at.Plain && b.at.ProducerID >= 0 && (f.cfg().Resume || b.again) {
			ours = append(ours, b)
		}
	}
	ask := make([]cluster.TopicPartition, 0, len(ours))
	for _, b := range ours {
		ask = append(ask, targetPartition(b.p))
	}
	looking, cancel := context.WithTimeout(ctx, lookTime)
	remembered := f.target.DescribeProducers(looking, ask)
	cancel()
	logs := f.logEnds(ctx, ours, remembered)
	// Asked after that: what was there then is to be found before these ends.
	ends := f.offsets(ctx, f.target, ours, targetPartition, cluster.LatestOffset, config.ReadUncommitted)

	source := &resume.Reader{Leaders: f.sourceLeaders, Dial: f.dialer(f.source, nil), Committed: f.committed}
	target := &resume.Reader{Leaders: f.targetLeaders, Dial: f.dialer(f.target, nil)}
	defer source.Close()
	defer target.Close()
	away := map[int32]error{} // source brokers that could not be read from: no use in waiting for each of their partitions
	for _, b := range ours {
		end, ok := ends[b]
		if !ok || b.err != nil {
			continue
		}
		tail := tail{end: end, source: source, target: target}
		if p := remembered[targetPartition(b.p)]; p.Err == nil {
			if s, ok := p.ByID[b.at.ProducerID]; ok {
				tail.remembered = &s
			}
		} else if !canDoWithout(p.Err) {
			b.err = p.Err
			continue
		}
		if end < logs[targetPartition(b.p)].End {
			b.err = errHidden
			continue
		}
		node, _, _ := f.sourceLeaders.Leader(b.p.key.Topic, b.p.key.Partition)
		if b.err = away[node]; b.err == nil {
			b.resume(ctx, tail)
		}
		if b.err != nil && !errors.Is(b.err, errHidden) {
			away[node] = b.err
		}
	}
}

// logEnds asks where the logs end whose leaders have forgotten the position's
// producer, or cannot tell: nothing else shows what they hold above the high
// watermark. A leader answers where its own epoch ends with that.
func (f *Flow) logEnds(ctx context.Context, bs []*beginning, remembered map[cluster.TopicPartition]cluster.Producers) map[cluster.TopicPartition]cluster.EpochEnd {
	forgotten := slices.DeleteFunc(slices.Clone(bs), func(b *beginning) bool {
		_, ok := remembered[targetPartition(b.p)].ByID[b.at.ProducerID]
		return ok
	})
	if len(forgotten) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, lookTime)
	defer cancel()
	err := f.targetLeaders.Refresh(ctx)
	ask := make(map[cluster.TopicPartition]cluster.EpochQuestion, len(forgotten))
	for _, b := range forgotten {
		p := targetPartition(b.p)
		switch _, epoch, ok := f.targetLeaders.Leader(p.Topic, p.Partition); {
		case !ok:
			b.err = errors.Join(kerr.LeaderNotAvailable, err)
		case epoch >= 0:
			ask[p] = cluster.EpochQuestion{Epoch: epoch, Leader: epoch}
		}
	}
	ends := f.target.EpochEnds(ctx, ask)
	for _, b := range forgotten {
		if end, ok := ends[targetPartition(b.p)]; ok && end.Err != nil && !errors.Is(end.Err, kerr.UnsupportedVersion) {
			b.err = fmt.Errorf("topic %q, partition %d: %w", b.p.target, b.p.key.Partition, end.Err)
		}
	}
	return ends
}

// canDoWithout: a broker that is too old, or does not let us, leaves only what can
// be read.
func canDoWithout(err error) bool {
	return errors.Is(err, kerr.UnsupportedVersion) || errors.Is(err, kerr.TopicAuthorizationFailed)
}

// tail is the end of a target partition.
type tail struct {
	end            int64
	remembered     *cluster.ProducerState // what the leader said of the position's producer before end was asked for; nil: nothing
	source, target *resume.Reader
}

// resume moves b's position past what the target holds.
func (b *beginning) resume(ctx context.Context, t tail) {
	p, from, saved, after := b.p, b.at.TargetOffset+1, b.at.Sequence, b.at.Offset
	if err := t.readable(from); err != nil {
		b.repeat(t.end, err)
		return
	}
	found := resume.Found{At: b.at}
	if t.end > from {
		reading, cancel := context.WithTimeout(ctx, tailTime)
		found = resume.Match(
			t.source.Log(reading, resume.Partition{Topic: p.key.Topic, ID: b.sourceID, Number: p.key.Partition, From: b.at.Offset + 1, End: -1}),
			t.target.Log(reading, resume.Partition{Topic: p.target, ID: b.targetID, Number: p.key.Partition, From: from, End: t.end}),
			b.at, resume.Options{MaxDecompressed: maxDecompressed, AppendTime: p.appendTime()})
		cancel()
		if ctx.Err() != nil {
			b.err = ctx.Err()
			return
		}
	}
	b.at, b.matchedTo = found.At, found.At.TargetOffset
	if b.at.SourceEpochs.At(b.at.Offset) != b.at.SourceLeaderEpoch { // it began somewhere in what was found: not before it
		b.at.SourceEpochs = b.at.SourceEpochs.Seen(b.at.SourceLeaderEpoch, after+1)
	}
	b.ranges = found.Ranges
	for _, r := range found.Ranges {
		b.found += r.Count
	}
	switch {
	case found.Rest == nil:
	case unmatchable(found.Rest), !p.flow.cfg().Resume && errors.Is(found.Rest, kerr.TopicAuthorizationFailed):
		b.repeat(t.end, found.Rest)
		return
	default: // trouble that passes is no reason to repeat anything
		b.err = found.Rest
		return
	}
	if b.found > 0 && p.someoneElses(b.at.Offset) {
		p.log.Warn("another mirror writes there under the producer id of this one; the older of the two stops when it finds out")
	}
	r := t.remembered
	switch {
	case r == nil:
		b.resumed = true // it has forgotten the producer, and takes any sequence
	case r.Epoch != b.at.ProducerEpoch:
		b.repeat(t.end, fmt.Errorf("the target knows the producer with epoch %d, not %d: somebody has taken it over", r.Epoch, b.at.ProducerEpoch))
	case follows(saved, r.LastSequence):
		b.missing = (int64(saved) - int64(r.LastSequence)) & 0x7fffffff
	case follows(r.LastSequence, b.at.Sequence):
		b.err = errHidden
	default:
		b.resumed = true
	}
}

// unmatchable: another look would find no more.
func unmatchable(err error) bool {
	for _, e := range []error{resume.ErrMismatch, batch.ErrCorrupt, batch.ErrMagic, batch.ErrTooLarge, kerr.OffsetOutOfRange} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

// follows says whether sequence a is after b. They go round at 2^31.
func follows(a, b int32) bool {
	d := (int64(a) - int64(b)) & 0x7fffffff
	return d > 0 && d < 1<<30
}

// errTakenOver ends a mirror that was paused and has been replaced, or that was
// started twice.
var errTakenOver = errors.New("another mirror has been started for it, which goes on from the same positions, so this one stops: run one at a time")

// watch ends the flow when another mirror claims one of its partitions: that was
// started later. What both write meanwhile is in order and there once, since
// either's sequence is refused where the other has used it.
func (f *Flow) watch(ctx context.Context) {
	err := f.store.Watch(ctx, func(k positions.Key) {
		f.mu.Lock()
		_, ours := f.partitions[k]
		f.mu.Unlock()
		if ours {
			f.taken(k)
		}
	})
	if err != nil {
		f.log.Warn("another mirror of this flow would not be noticed", "err", err)
	}
}

// taken ends the flow: another mirror has claimed the partition.
func (f *Flow) taken(k positions.Key) {
	f.fail(fmt.Errorf("topic %q, partition %d: %w", k.Topic, k.Partition, errTakenOver))
}

// someoneElses says whether records up to the offset are on the target that this
// process has not sent.
func (p *partition) someoneElses(offset int64) bool {
	p.mu.Lock()
	began := p.began
	p.mu.Unlock()
	return began && offset > p.dst.SentTo()
}

// readable says why the tail from an offset on is not worth reading, if so.
func (t *tail) readable(from int64) error {
	switch {
	case t.end < from:
		return fmt.Errorf("the target ends at offset %d and has lost records up to %d that were acknowledged", t.end, from-1)
	case t.end-from > tailMost:
		return fmt.Errorf("the target has %d offsets after the position, more than are read back", t.end-from)
	}
	return nil
}

// repeat leaves the position as it is: from there on under a new producer.
func (b *beginning) repeat(end int64, why error) {
	b.unmatched = max(end-1-b.at.TargetOffset, 0)
	b.at.TargetOffset = end - 1
	b.repeats = why
}

// resumedAt says and counts what was found.
func (p *partition) resumedAt(b *beginning) {
	p.mu.Lock()
	p.repeats += uint64(b.unmatched)
	if b.found > 0 {
		p.counts.add(status.PathSkipped, status.ReasonStored, 0, int(b.found), 0)
	}
	p.mu.Unlock()
	if b.found > 0 {
		p.log.Info("records stored after the last saved position are on the target already, going on after them", "records", b.found, "offset", b.at.Offset)
	}
	if b.repeats != nil {
		p.flow.count(status.ErrorResume)
		p.log.Warn("what the target holds after the last saved position cannot be matched with the source: records after this offset may be there twice",
			"offset", b.at.Offset, "err", b.repeats)
	}
}
