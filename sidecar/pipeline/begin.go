package pipeline

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"

	"mirror/abi"
	"mirror/sidecar/batch"
	"mirror/sidecar/cluster"
	"mirror/sidecar/config"
	"mirror/sidecar/fetch"
	"mirror/sidecar/positions"
	"mirror/sidecar/resume"
	"mirror/sidecar/status"
)

const (
	// lookTime is how long one look at offsets may take. It is short, for one
	// broker that does not answer must not keep the others' partitions waiting.
	lookTime = 5 * time.Second
	// saveTime is the same for a new producer id and the positions under it.
	saveTime = 30 * time.Second
	// beginPause is the time before a second try. It is doubled up to
	// beginPauseMost.
	beginPause     = time.Second
	beginPauseMost = 5 * time.Second
	// idlePause is the time between two looks at a partition that has still to
	// store what it was given before.
	idlePause = 100 * time.Millisecond
)

// beginAfter has the partition begin, or begin again, after d.
func (f *Flow) beginAfter(p *partition, d time.Duration) { f.agenda.add(p, d) }

// beginLoop begins with what is due until ctx ends.
func (f *Flow) beginLoop(ctx context.Context) {
	for {
		due := f.agenda.next(ctx)
		if len(due) == 0 {
			return
		}
		var ready []*partition
		for _, p := range due {
			switch {
			case p.leaves(): // and begins if it comes back
			case p.quiet():
				ready = append(ready, p)
			default:
				f.beginAfter(p, idlePause)
			}
		}
		if len(ready) > 0 {
			f.begin(ctx, ready)
		}
	}
}

func (p *partition) leaves() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.leaving
}

// quiet says that nothing of the partition is on its way.
func (p *partition) quiet() bool {
	p.mu.Lock()
	fetched := p.inbox
	p.mu.Unlock()
	return fetched == 0 && p.dst.Idle()
}

// beginning is a partition on its way to its position.
type beginning struct {
	p                  *partition
	at                 positions.Position
	known              bool
	sourceID, targetID [16]byte
	gap                *fetch.Gap
	short              int64 // where the target stored what came next, if that is below what it had acknowledged; -1
	targetEnd          int64
	keptTo             int64 // where the target's log ended after it had lost what it acknowledged, -1: it has not
	missing            int64 // how many of the records it has lost, where that is known otherwise
	holds              bool  // the target partition has records
	again              bool  // not for the first time in this process
	anew               bool  // it begins where the source does, wherever it was
	cut                bool  // what the target holds after at is not what comes next
	lost               int64 // offsets that are gone before at
	resumed            bool  // at's producer goes on
	matchedTo          int64 // the last target offset of what was found
	found              int64 // records that were on the target already
	repeats            error // why there may be more of them
	unmatched          int64 // how many there may be
	err                error // why it cannot begin now
	halted             *halt
	notes              []note         // to be said once it has begun
	from               int64          // the position before what was found
	ranges             []resume.Range // what was found
	event              abi.Event      // what has happened to the log, for plugins
}

// halt is why a partition stalls, until somebody acts. kind is of status.ErrorKinds.
type halt struct {
	kind   string
	at     int64
	reason string
}

func (b *beginning) halt(kind string, at int64, reason string, args ...any) {
	b.halted = &halt{kind, at, fmt.Sprintf(reason, args...)}
}

// note is what was found and acted upon. An error counts by its kind; without one
// it is a warning.
type note struct {
	kind, text string
	args       []any
}

func (b *beginning) note(kind, text string, args ...any) {
	b.notes = append(b.notes, note{kind, text, args})
}

// begin finds where the partitions resume and saves that, with the producer that
// is going to write, before the first of their records is asked for: from then on
// whatever is on the target has a position before it. Then they run.
func (f *Flow) begin(ctx context.Context, ps []*partition) {
	bs := make([]*beginning, len(ps))
	for i, p := range ps {
		bs[i] = p.beginning()
	}
	f.checkTargets(ctx, bs)
	f.checkSources(ctx, bs)
	f.findStarts(ctx, bs)
	f.checkUnplaced(bs)
	for _, b := range bs {
		b.from = b.at.Offset
	}
	f.resume(ctx, bs)
	f.refill(ctx, bs)
	f.tellBeginnings(ctx, bs)
	err := f.saveBeginnings(ctx, bs)
	if err != nil {
		f.count(status.ErrorPositions)
		f.keeper.failed(err)
	}
	for _, b := range bs {
		if b.going() {
			b.err = err
		}
		switch {
		case b.halted != nil:
			f.halt(b.p, b.halted)
		case b.err == errLeaves: // it begins if it comes back
		case b.err == errPluginsBehind:
			f.beginAfter(b.p, idlePause)
		case b.err != nil:
			f.beginAfter(b.p, b.p.postpone(b.err))
		default:
			b.p.begun(b)
		}
	}
}

// halt stalls the partition and looks at it again with the next refresh.
func (f *Flow) halt(p *partition, h *halt) {
	if p.halt(h) {
		f.count(h.kind)
	}
	f.beginAfter(p, f.cfg().Refresh)
}

func (p *partition) beginning() *beginning {
	p.mu.Lock()
	defer p.mu.Unlock()
	b := &beginning{p: p, at: p.at(), known: p.known, again: p.began || p.returned, sourceID: p.sourceID, targetID: p.targetID, gap: p.gap, short: p.short, keptTo: -1}
	if b.at.SourceEpochs.At(b.at.Offset) != b.at.SourceLeaderEpoch { // where that one began is not known
		b.at.SourceEpochs = positions.Epochs{}.Seen(b.at.SourceLeaderEpoch, b.at.Offset)
	}
	return b
}

// begun keeps the position, which is saved, and runs.
func (p *partition) begun(b *beginning) {
	p.mu.Lock()
	p.saved, p.kept = b.at, true
	if p.sourceID != b.sourceID || p.targetID != b.targetID || p.leaving {
		p.mu.Unlock() // it is due again, or gone
		return
	}
	// It is saved once more with the others: a save that took the old position
	// before may have written it after this one.
	p.position, p.known, p.dirty, p.gap, p.short, p.postponed, p.began = b.at, true, true, nil, -1, 0, true
	p.epochs = b.at.SourceEpochs
	p.lost += uint64(b.lost)
	p.plugInto(p.lane.hooks.Load()) // those that were switched on, or off, while it began
	p.mu.Unlock()
	for _, n := range b.notes {
		if n.kind == "" {
			p.log.Warn(n.text, n.args...)
			continue
		}
		p.flow.count(n.kind)
		p.log.Error(n.text, n.args...)
	}
	p.resumedAt(b)
	p.open()
}

// postpone says why the partition does not begin, once, and how long to wait
// before the next try. The first time is not worth a line: the brokers of a new topic
// learn of it one by one.
func (p *partition) postpone(err error) time.Duration {
	p.mu.Lock()
	pause := min(beginPause<<min(p.postponed, 10), beginPauseMost)
	p.postponed++
	say := p.postponed == 2 || p.postponed > 2 && p.reason != err.Error()
	if p.state != status.Stalled {
		p.state, p.reason = status.Starting, err.Error()
	}
	p.mu.Unlock()
	if say && !errors.Is(err, context.Canceled) {
		p.log.Warn("partition cannot begin yet, trying again", "err", err)
	}
	return pause
}

func (b *beginning) going() bool { return b.err == nil && b.halted == nil }

// findStarts gives a position to those that have none.
func (f *Flow) findStarts(ctx context.Context, bs []*beginning) {
	kinds := map[int64][]*beginning{}
	for _, b := range bs {
		if !b.going() || b.known {
			continue
		}
		at := cluster.EarliestOffset
		if !b.anew && !b.p.startsAtBeginning() {
			switch f.cfg().Start.Kind {
			case config.Latest:
				at = cluster.LatestOffset
			case config.AtTime:
				at = f.cfg().Start.At.UnixMilli()
			}
		}
		kinds[at] = append(kinds[at], b)
	}
	var later []*beginning // nothing is as young as the start time: begin at the end
	for at, bs := range kinds {
		found := f.offsets(ctx, f.source, bs, sourcePartition, at, f.cfg().Isolation)
		for _, b := range bs {
			if o, ok := found[b]; ok && o >= 0 {
				b.at.Offset = o - 1
			} else if ok {
				later = append(later, b)
			}
		}
	}
	ends := f.offsets(ctx, f.source, later, sourcePartition, cluster.LatestOffset, f.cfg().Isolation)
	for b, o := range ends {
		b.at.Offset = o - 1
	}
}

func (p *partition) startsAtBeginning() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.fromStart
}

func sourcePartition(p *partition) cluster.TopicPartition {
	return cluster.TopicPartition{Topic: p.key.Topic, Partition: p.key.Partition}
}

func targetPartition(p *partition) cluster.TopicPartition {
	return cluster.TopicPartition{Topic: p.target, Partition: p.key.Partition}
}

// offsets asks for one offset of each; those that have none get an error.
func (f *Flow) offsets(ctx context.Context, c *cluster.Cluster, bs []*beginning, of func(*partition) cluster.TopicPartition,
	at int64, isolation config.Isolation) map[*beginning]int64 {
	ask := make([]cluster.TopicPartition, 0, len(bs))
	for _, b := range bs {
		ask = append(ask, of(b.p))
	}
	ctx, cancel := context.WithTimeout(ctx, lookTime)
	defer cancel()
	got := c.ListOffsets(ctx, ask, at, isolation)
	out := make(map[*beginning]int64, len(bs))
	unanswered := false
	for _, b := range bs {
		o := got[of(b.p)]
		if o.Err != nil {
			unanswered = unanswered || !errors.As(o.Err, new(*kerr.Error))
			b.err = fmt.Errorf("cluster %q, topic %q, partition %d: %w", c.Alias(), of(b.p).Topic, b.p.key.Partition, o.Err)
			continue
		}
		out[b] = o.Offset
	}
	if unanswered { // for all of them it is one trouble
		if c == f.source {
			f.count(status.ErrorSourceConnection)
		} else {
			f.count(status.ErrorTargetConnection)
		}
	}
	return out
}

// saveBeginnings saves the positions, of those that do not resume under a new
// producer id.
func (f *Flow) saveBeginnings(ctx context.Context, bs []*beginning) error {
	due := map[positions.Key]positions.Position{}
	var going []*beginning
	for _, b := range bs {
		if b.going() {
			going = append(going, b)
		}
	}
	if len(going) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, saveTime)
	defer cancel()
	fresh, err := f.freshProducer(ctx, going)
	if err != nil {
		return err
	}
	for _, b := range going {
		if !b.resumed {
			b.at.ProducerID, b.at.ProducerEpoch, b.at.Sequence = fresh.ID, fresh.Epoch, -1
			if b.at.TargetOffset < 0 || b.cut {
				b.at.TargetOffset = b.targetEnd - 1 // what it writes comes after that
			}
		}
		b.at.SourceTopicID, b.at.TargetTopicID = b.sourceID, b.targetID
		b.at.Plain = false
		due[b.p.key] = b.at
	}
	if err := f.claim(ctx, going); err != nil {
		return err
	}
	return f.store.Save(ctx, due)
}

// claim claims the partitions that this process has not claimed yet.
func (f *Flow) claim(ctx context.Context, bs []*beginning) error {
	var keys []positions.Key
	var ps []*partition
	for _, b := range bs {
		b.p.mu.Lock()
		if !b.p.claimed {
			keys, ps = append(keys, b.p.key), append(ps, b.p)
		}
		b.p.mu.Unlock()
	}
	if err := f.store.Claim(ctx, keys); err != nil {
		return err
	}
	for _, p := range ps {
		p.mu.Lock()
		p.claimed = true
		p.mu.Unlock()
	}
	return nil
}

// freshProducer is a new producer id, if one of bs needs it.
func (f *Flow) freshProducer(ctx context.Context, bs []*beginning) (batch.Producer, error) {
	if !slices.ContainsFunc(bs, func(b *beginning) bool { return !b.resumed }) {
		return batch.NoProducer, nil
	}
	id, epoch, err := f.target.InitProducerID(ctx)
	return batch.Producer{ID: id, Epoch: epoch}, err
}

func producerOf(at positions.Position) batch.Producer {
	return batch.Producer{ID: at.ProducerID, Epoch: at.ProducerEpoch}
}
