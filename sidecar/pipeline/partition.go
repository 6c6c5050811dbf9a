package pipeline

import (
	"fmt"
	"log/slog"
	"sync"
	"time"

	"mirror/sidecar/fetch"
	"mirror/sidecar/positions"
	"mirror/sidecar/produce"
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
	content            bool // stalled at a batch: that ends when it is passed
	unfetched          bool // stalled because fetching fails: that ends when it does not
	failing            bool // said in the log; until something gets through
	position           positions.Position
	known              bool       // there is a position
	dirty              bool       // it has moved since it was saved
	leaving            bool       // the topic is gone or not selected any more
	fromStart          bool       // without a position it begins at the beginning, whatever the flow's start
	gap                *fetch.Gap // the source does not have what comes next
	lost               uint64
	end                int64
	inbox              int // bytes fetched that its lane has not looked at
	corruptAt          int64
	corrupt            int // times in a row that the batch there was
	records, bytes     uint64
	batches            counts
}

// counts of source batches by path.
type counts struct{ raw, merged, reencoded, skipped uint64 }

// corruptTries is how often a batch that arrives damaged is fetched again at
// once, before the partition counts as stalled: the link may have done it.
const corruptTries = 5

// shedPause is how long what was shed is left at the source.
const shedPause = 5 * time.Second

func (f *Flow) newPartition(key positions.Key, target string) *partition {
	p := &partition{
		flow: f, key: key, target: target,
		state: status.Starting, stalledAt: -1, end: -1, corruptAt: -1,
		position: positions.Plain(-1),
		log:      f.log.With("topic", key.Topic, "partition", key.Partition),
	}
	p.lane = f.lanes[f.laneOf(key)]
	p.src = f.fetcher.Partition(key.Topic, key.Partition, sourceEnd{p})
	p.dst = f.producer.Partition(target, key.Partition, targetEnd{p})
	return p
}

// open begins to copy after the position, under a new producer that has been
// saved in it.
func (p *partition) open() {
	p.mu.Lock()
	p.generation++
	at := p.position
	to := produce.Start{Generation: p.generation, TopicID: p.targetID, Producer: producerOf(at)}
	from := fetch.Start{Generation: p.generation, TopicID: p.sourceID, Offset: at.Offset + 1, LeaderEpoch: at.SourceLeaderEpoch}
	p.corruptAt, p.corrupt = -1, 0
	if !p.content {
		p.state, p.reason, p.stalledAt, p.unfetched = status.Running, "", -1, false
	}
	p.mu.Unlock()
	p.dst.Reset(to)
	p.src.Start(from)
}

// close stops both ends and drops what is on its way.
func (p *partition) close() {
	p.src.Stop()
	p.dst.Stop()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.generation++
}

// stall says why the partition goes no further, once. content: it is a batch that
// cannot pass.
func (p *partition) stall(offset int64, reason string, content bool) {
	p.mu.Lock()
	p.generation++ // what was fetched meanwhile is not wanted
	said := p.state == status.Stalled && p.stalledAt == offset && p.reason == reason
	p.state, p.reason, p.stalledAt, p.content, p.unfetched = status.Stalled, reason, offset, content, false
	p.mu.Unlock()
	if !said {
		p.log.Error("partition is stalled", "offset", offset, "reason", reason)
	}
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
	if held+p.dst.Bytes() > p.flow.partitionLimit {
		p.src.Pause()
	}
	p.lane.deliver(delivery{p.partition, d})
}

// Ends keeps how far the source is.
func (p sourceEnd) Ends(highWatermark, lastStable int64) {
	p.flow.sourceTrouble.end()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.end = highWatermark
	if p.flow.committed && lastStable >= 0 {
		p.end = lastStable
	}
	if p.unfetched {
		p.state, p.reason, p.stalledAt, p.unfetched = status.Running, "", -1, false
	}
}

// failed counts, and says the first of a row.
func (p *partition) failed(kind string, err error) {
	p.flow.count(kind)
	p.mu.Lock()
	said := p.failing
	p.failing = true
	p.mu.Unlock()
	if !said {
		p.log.Warn("trouble, trying again", "kind", kind, "err", err)
	}
}

// fetchTries is how often in a row fetching may fail before that is a state.
const fetchTries = 8

// Failed counts; what lasts is a state that shows.
func (p sourceEnd) Failed(err error, n int) {
	p.failed(status.ErrorFetch, err)
	if n < fetchTries {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.state == status.Running {
		p.state, p.stalledAt, p.unfetched = status.Stalled, p.position.Offset+1, true
		p.reason = fmt.Sprintf("cannot be fetched from the source: %v; it is tried again", err)
	}
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

// Acknowledged moves the position.
func (p targetEnd) Acknowledged(a produce.Ack) {
	p.flow.targetTrouble.end()
	p.mu.Lock()
	if a.Last > p.position.Offset {
		p.position.Offset, p.position.SourceLeaderEpoch = a.Last, a.LeaderEpoch
	}
	p.dirty = true
	if a.Count > 0 {
		p.position.ProducerID, p.position.ProducerEpoch = a.Producer.ID, a.Producer.Epoch
		p.position.Sequence = a.Sequence
		if a.TargetOffset >= 0 {
			p.position.TargetOffset = a.TargetOffset + int64(a.Count) - 1
		}
		p.records += uint64(a.Count)
		p.bytes += uint64(a.Bytes)
		switch {
		case a.Reencoded:
			p.batches.reencoded += uint64(a.Sources)
		case a.Merged:
			p.batches.merged += uint64(a.Sources)
		default:
			p.batches.raw += uint64(a.Sources)
		}
	}
	passed := p.content && a.Last >= p.stalledAt
	if passed {
		p.state, p.reason, p.stalledAt, p.content = status.Running, "", -1, false
	}
	mended := p.failing || passed
	p.failing = false
	held := a.Held + p.inbox
	p.mu.Unlock()
	if mended {
		p.log.Info("copying again", "offset", a.Last)
	}
	if held <= p.flow.partitionLimit/2 {
		p.src.Resume()
	}
}

// Refused stalls the partition at a record that the target will not have.
func (p targetEnd) Refused(r produce.Refusal) {
	p.flow.count(status.ErrorRefused)
	p.src.Stop()
	p.stall(r.Offset, fmt.Sprintf("the target refuses %v", r.Err), true)
	p.flow.beginAfter(p.partition, p.flow.cfg.Refresh)
}

// Lost begins again under a new producer.
func (p targetEnd) Lost(err error) {
	p.flow.count(status.ErrorProduce)
	p.src.Stop()
	p.mu.Lock()
	p.generation++
	p.mu.Unlock()
	p.log.Warn("the target's idea of what was sent is another: going on from the last position under a new producer, records after it may be repeated", "err", err)
	p.flow.beginAfter(p.partition, 0)
}

// Shed fetches again, later, what the target end dropped.
func (p targetEnd) Shed(from int64) uint64 {
	p.mu.Lock()
	p.generation++
	g, id := p.generation, p.sourceID
	p.mu.Unlock()
	p.src.Start(fetch.Start{Generation: g, TopicID: id, Offset: from, LeaderEpoch: -1, After: shedPause})
	return g
}

// Starved has the lane recompress what waits.
func (p targetEnd) Starved() { p.lane.deliver(delivery{p: p.partition}) }

// Failed counts.
func (p targetEnd) Failed(err error) { p.failed(status.ErrorProduce, err) }
