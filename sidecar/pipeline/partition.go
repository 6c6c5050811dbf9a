package pipeline

import (
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"

	"mirror/plugins"
	"mirror/sidecar/batch"
	"mirror/sidecar/fetch"
	"mirror/sidecar/positions"
	"mirror/sidecar/produce"
	"mirror/sidecar/resume"
	"mirror/sidecar/status"
)

// partition is one source partition on its way to the target partition of the
// same number. It owns both ends, and knows how far the target is.
//
// Lock order: the target end calls in with its own lock held, so p.mu is never
// held while calling dst.
type partition struct {
	flow   *Flow
	lane   *lane
	key    positions.Key
	target string
	src    *fetch.Partition
	dst    *produce.Partition
	log    *slog.Logger

	mu                 sync.Mutex
	sourceID, targetID [16]byte
	targetAppendTime   bool // the target topic stamps records itself
	generation         uint64
	state              status.State
	reason             string
	stalledAt          int64
	content            bool   // stalled at a batch: that ends when it is passed
	halted             *halt  // why it stalled, if a begin said so
	retrying           string // stalled because this (status.ErrorFetch or ErrorProduce) fails: that ends when it does not
	failing            bool   // said in the log; until something gets through
	position, saved    positions.Position
	known              bool             // there is a position
	kept               bool             // there is one on the target: saved
	returned           bool             // it was here before, in this process
	began              bool             // in this process
	claimed            bool             // by this process
	dirty              bool             // it has moved since it was saved
	leaving            bool             // the topic is gone or not selected any more
	fromStart          bool             // without a position it begins at the beginning, whatever the flow's start
	gap                *fetch.Gap       // the source does not have what comes next
	epochs             positions.Epochs // of what was fetched
	short              int64            // where the target stored a batch below what it had acknowledged: nothing counts until it begins again; -1
	oddGap             int64            // the last offset that it said it did not have though its log reaches there, -1: none
	shedFrom           int64            // where to read on when the target takes something again, -1: it does
	losses             int              // of the sequence, in a row
	postponed          int              // times in a row that it could not begin
	lost               uint64
	end                int64
	inbox              int // bytes fetched that its lane has not looked at
	corruptAt          int64
	corrupt            int // times in a row that the batch there was
	counts             counts
	repeats            uint64          // records that may be on the target twice
	lastTimestamp      int64           // of the last batch stored, in ms since the epoch, 0: not known
	made               time.Time       // by this process
	seenAtEnd          time.Time       // when there was last nothing that waited, zero: never yet
	hooks              *hooks          // the plugins that know of it, nil: none do
	toldTo             int64           // the last source offset that they know of
	logStart           int64           // of the source, as they know it; -1: they do not
	telling            []resume.Range  // room for tellStored
	untold             []plugins.Range // what they are to be told of next
	behind             bool            // they will be when the next round begins, for untold alone

	heldBy atomic.Pointer[hooks] // because too much waits for them
}

// corruptTries is how often a batch that arrives damaged is fetched again at
// once, before the partition counts as stalled: the link may have done it.
const corruptTries = 5

func (f *Flow) newPartition(key positions.Key, target string) *partition {
	p := &partition{
		flow: f, key: key, target: target,
		state: status.Starting, stalledAt: -1, end: -1, corruptAt: -1, short: -1, oddGap: -1, shedFrom: -1,
		position: positions.Plain(-1), made: time.Now(),
		log: f.log.With("topic", key.Topic, "partition", key.Partition),
	}
	p.lane = f.lanes[f.laneOf(key)]
	p.src = f.fetcher.Partition(key.Topic, key.Partition, sourceEnd{p})
	p.dst = f.producer.Partition(target, key.Partition, targetEnd{p})
	return p
}

// open begins to copy after the position, which has been saved with the producer
// in it.
func (p *partition) open() {
	p.mu.Lock()
	if p.leaving {
		p.mu.Unlock()
		return
	}
	p.renew()
	at := p.position
	to := produce.Start{Generation: p.generation, TopicID: p.targetID, Producer: producerOf(at), Sequence: batch.NextSequence(at.Sequence, 1)}
	from := fetch.Start{Generation: p.generation, TopicID: p.sourceID, Offset: at.Offset + 1, LeaderEpoch: at.SourceLeaderEpoch}
	p.corruptAt, p.corrupt = -1, 0
	ended := false
	if !p.content {
		ended = p.state == status.Stalled
		p.runs()
	}
	p.mu.Unlock()
	if ended {
		p.log.Info("copying again", "offset", from.Offset)
	}
	p.dst.Reset(to)
	p.src.Start(from)
}

// renew begins another generation: what was fetched before is not wanted any
// more. The caller holds the lock.
func (p *partition) renew() uint64 {
	p.generation++
	p.shedFrom = -1
	return p.generation
}

// runs ends a stall. The caller holds the lock.
func (p *partition) runs() {
	p.state, p.reason, p.stalledAt, p.content, p.retrying, p.halted = status.Running, "", -1, false, "", nil
}

// at is the position. The caller holds the lock.
func (p *partition) at() positions.Position {
	at := p.position
	at.SourceEpochs = p.epochs.UpTo(at.Offset)
	return at
}

// close stops both ends and drops what is on its way.
func (p *partition) close() {
	p.mu.Lock()
	g := p.renew()
	p.mu.Unlock()
	p.src.Stop(g)
	p.dst.Stop()
}

// stall stops fetching and says which batch cannot pass, and why, once.
func (p *partition) stall(offset int64, reason string) {
	p.mu.Lock()
	g, said := p.stalled(offset, reason, true)
	p.mu.Unlock()
	p.src.Stop(g)
	if !said {
		p.log.Error("partition is stalled", "offset", offset, "reason", reason)
	}
}

// halt is stall, for a reason that a begin has found. It says whether that is new.
func (p *partition) halt(h *halt) (fresh bool) {
	p.mu.Lock()
	before := p.halted
	g, said := p.stalled(h.at, h.reason, false)
	p.halted = h
	// How far it goes may change with each look; what it is does not.
	said = said || before != nil && before.kind == h.kind && before.at == h.at
	p.mu.Unlock()
	p.src.Stop(g)
	if !said {
		p.log.Error("partition is stalled", "offset", h.at, "reason", h.reason)
	}
	return !said
}

// stallOf is stall, unless another generation has begun. It says whether it did.
func (p *partition) stallOf(generation uint64, offset int64, reason string) bool {
	p.mu.Lock()
	if p.generation != generation {
		p.mu.Unlock()
		return false
	}
	g, said := p.stalled(offset, reason, true)
	p.mu.Unlock()
	p.src.Stop(g)
	if !said {
		p.log.Error("partition is stalled", "offset", offset, "reason", reason)
	}
	return true
}

func (p *partition) stalled(offset int64, reason string, content bool) (generation uint64, said bool) {
	said = p.state == status.Stalled && p.stalledAt == offset && p.reason == reason
	p.state, p.reason, p.stalledAt, p.content, p.retrying, p.halted = status.Stalled, reason, offset, content, "", nil
	return p.renew(), said
}

// sourceEnd is a partition as the owner of its source end, targetEnd of its
// target end.
type (
	sourceEnd struct{ *partition }
	targetEnd struct{ *partition }
)

// Fetched hands the data to the lane.
func (p sourceEnd) Fetched(d fetch.Data) {
	p.mu.Lock()
	p.inbox += len(d.Set)
	held := p.inbox
	p.mu.Unlock()
	if held+p.dst.Bytes() > p.flow.partitionLimit() || p.crowded() {
		p.src.Pause()
	}
	p.lane.deliver(delivery{p.partition, d})
}

// Ends keeps how far the source is.
func (p sourceEnd) Ends(highWatermark, lastStable int64) {
	p.flow.sourceTrouble.end()
	p.mu.Lock()
	defer p.mu.Unlock()
	end := highWatermark
	if p.flow.committed && lastStable >= 0 {
		end = lastStable
	}
	p.ends(end, time.Now())
	p.oddGap = -1
	p.gotThrough(status.ErrorFetch)
}

const (
	// failuresSay is how many failures in a row are worth a line: a leader that
	// moves costs one or two.
	failuresSay = 3
	// failuresShow is how many are a state.
	failuresShow = 8
)

// failed says the n-th failure in a row once, if it is worth it; what lasts is a
// state that shows.
func (p *partition) failed(kind, what string, err error, n int) {
	p.mu.Lock()
	say := n >= failuresSay && !p.failing
	p.failing = p.failing || say
	if n >= failuresShow && p.state == status.Running {
		p.state, p.stalledAt, p.retrying = status.Stalled, p.position.Offset+1, kind
		p.reason = fmt.Sprintf("%s: %v; it is tried again", what, err)
	}
	p.mu.Unlock()
	if say {
		p.log.Warn("trouble, trying again", "kind", kind, "err", err)
	}
}

// gotThrough ends a stall of such failures. The caller holds the lock.
func (p *partition) gotThrough(kind string) {
	if p.retrying == kind {
		p.runs()
	}
}

// Failed counts.
func (p sourceEnd) Failed(err error, n int) {
	p.flow.count(status.ErrorFetch)
	p.failed(status.ErrorFetch, "cannot be fetched from the source", p.flow.source.Explain(err), n)
}

// Stopped is a log that does not have what comes next. What was fetched before
// still goes out; then the flow looks at it.
func (p sourceEnd) Stopped(g fetch.Gap) {
	p.flow.count(status.ErrorFetch)
	p.mu.Lock()
	p.gap = &g
	p.mu.Unlock()
	p.flow.beginAfter(p.partition, 0)
}

// Acknowledged moves the position. A batch that is stored below what has been
// acknowledged says that the target's log was cut off, or is another one: what it
// has lost is looked for once nothing is on its way.
func (p targetEnd) Acknowledged(a produce.Ack) {
	now := time.Now()
	if a.Count > 0 {
		p.flow.targetTrouble.end()
		p.flow.latencies.observe(a.Timestamp, now)
	}
	p.mu.Lock()
	if a.Count > 0 && a.TargetOffset >= 0 && a.TargetOffset <= p.position.TargetOffset && p.short < 0 {
		p.short = a.TargetOffset
		g := p.renew()
		p.src.Stop(g)
		p.flow.beginAfter(p.partition, 0)
	}
	if p.short >= 0 { // the position must not pass what the target has lost
		p.mu.Unlock()
		return
	}
	if a.Last > p.position.Offset {
		p.position.Offset, p.position.SourceLeaderEpoch = a.Last, a.LeaderEpoch
	}
	p.dirty = true
	p.tellStored(&a)
	if a.Count > 0 {
		p.gotThrough(status.ErrorProduce)
		p.losses = 0
		p.position.ProducerID, p.position.ProducerEpoch = a.Producer.ID, a.Producer.Epoch
		p.position.Sequence = a.Sequence
		if a.TargetOffset >= 0 {
			p.position.TargetOffset = a.TargetOffset + int64(a.Count) - 1
		}
		if a.Timestamp > 0 {
			p.lastTimestamp = a.Timestamp
		}
		path := status.PathRaw
		switch {
		case a.Reason != "":
			path = status.PathReencoded
		case a.Merged:
			path = status.PathMerged
		}
		p.counts.add(path, string(a.Reason), a.Sources, int(a.Count), a.Bytes)
	}
	if p.atEnd() {
		p.seenAtEnd = now
	}
	passed := p.content && a.Last >= p.stalledAt
	if passed {
		p.runs()
	}
	mended := p.failing || passed
	p.failing = false
	held := a.Held + p.inbox
	crowded := p.hooks != nil && p.heldBy.Load() == p.hooks // then it goes on when it is relieved
	p.mu.Unlock()
	if mended {
		p.log.Info("copying again", "offset", a.Last)
	}
	if held <= p.flow.partitionLimit()/2 && !crowded {
		p.src.Resume()
	}
}

// Refused stalls the partition at a record that the target will not have.
func (p targetEnd) Refused(r produce.Refusal) {
	p.flow.count(status.ErrorRefused)
	p.stall(r.Offset, fmt.Sprintf("the target refuses %v", r.Err))
	p.flow.beginAfter(p.partition, p.flow.cfg().Refresh)
}

// Lost begins again: what the target holds tells how to go on.
func (p targetEnd) Lost(err error) {
	p.flow.count(status.ErrorProduce)
	p.mu.Lock()
	g := p.renew()
	p.losses++
	n := p.losses
	p.mu.Unlock()
	p.src.Stop(g)
	if n == 1 {
		if !errors.Is(err, produce.ErrAged) { // that is as common as cut connections
			p.log.Warn("the target's idea of what was sent is another: looking at what it holds", "err", err)
		}
		p.flow.beginAfter(p.partition, 0)
		return
	}
	p.failed(status.ErrorProduce, "the target loses track of what it was sent", err, n)
	p.flow.beginAfter(p.partition, beginPause)
}

// Shed leaves at the source what the target end dropped, until it is Ready.
func (p targetEnd) Shed(from int64) uint64 {
	p.mu.Lock()
	g := p.renew()
	p.shedFrom = from
	p.mu.Unlock()
	p.src.Stop(g)
	return g
}

// Ready fetches again what was shed.
func (p targetEnd) Ready() {
	p.mu.Lock()
	s := fetch.Start{Generation: p.generation, TopicID: p.sourceID, Offset: p.shedFrom, LeaderEpoch: p.epochs.At(p.shedFrom - 1)}
	begins := p.short >= 0
	p.shedFrom = -1
	p.mu.Unlock()
	if s.Offset >= 0 && !begins {
		p.src.Start(s)
	}
}

// Starved has the lane recompress what waits.
func (p targetEnd) Starved() { p.lane.deliver(delivery{p: p.partition}) }

// Failed counts what brokers answer: connections count for the flow.
func (p targetEnd) Failed(err error, n int) {
	if errors.As(err, new(*kerr.Error)) {
		p.flow.count(status.ErrorProduce)
	}
	p.failed(status.ErrorProduce, "cannot be stored on the target", p.flow.target.Explain(err), n)
}
