package pipeline

import (
	"errors"
	"fmt"
	"io"
	"time"

	"mirror/sidecar/batch"
	"mirror/sidecar/fetch"
	"mirror/sidecar/produce"
	"mirror/sidecar/status"
)

// maxDecompressed is how large the records of a batch may be when it has to be
// opened. A megabyte of zstd can become a gigabyte.
const maxDecompressed = 256 << 20

// prepared is room for the work of a lane's goroutine.
type prepared struct {
	buf  []byte
	done []*partition // whose batches wait to be sent
}

// send has the target ends send what was prepared.
func (t *prepared) send() {
	for _, p := range t.done {
		p.dst.Send()
	}
	clear(t.done)
	t.done = t.done[:0]
}

// damagedPause is how long to wait before a batch is fetched again that arrived
// damaged.
const damagedPause = 100 * time.Millisecond

// keptRoom is what of it is kept from batch to batch.
const keptRoom = 4 << 20

// prepare looks at each batch of the data, once, while it is warm: checked, and
// then handed to the target end as it is, or made anew, or skipped.
func (p *partition) prepare(d fetch.Data, t *prepared) {
	defer d.Frame.Release()
	if p.wants(d) {
		p.walk(d, t)
	}
	p.mu.Lock()
	p.inbox -= len(d.Set)
	p.mu.Unlock()
	p.unpause()
}

func (p *partition) wants(d fetch.Data) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return d.Generation == p.generation
}

func (p *partition) walk(d fetch.Data, t *prepared) {
	aborted := batch.NewAborted(nil)
	if p.flow.committed {
		aborted = batch.NewAborted(d.Aborted)
	}
	want, epoch, passed := d.Offset, d.LeaderEpoch, false
	for set := d.Set; ; {
		b, rest, err := batch.Next(set)
		if err == io.EOF || err == batch.ErrPartial {
			return
		}
		if err == nil {
			err = b.Verify()
		}
		if err != nil {
			p.damaged(d.Generation, want, epoch, err)
			return
		}
		set = rest
		covered := aborted.Covers(b)
		last, leader := b.LastOffset(), b.LeaderEpoch() // once it is passed on its header is the target end's
		if last < want && !passed {
			continue // the response begins with the whole batch that holds the offset asked for
		}
		if passed && b.BaseOffset() < want { // offsets are not under the checksum
			p.damaged(d.Generation, want, epoch, fmt.Errorf("%w: offset %d comes after %d", batch.ErrCorrupt, b.BaseOffset(), want-1))
			return
		}
		if leader != epoch {
			p.sees(leader, b.BaseOffset())
		}
		if err := p.pass(b, d, want, covered, t); err != nil {
			p.unreadable(d.Generation, want, err)
			return
		}
		want, epoch, passed = last+1, leader, true
	}
}

// sees keeps that a batch of the leader epoch begins at the offset, which comes
// after one of another.
func (p *partition) sees(epoch int32, offset int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.epochs = p.epochs.Seen(epoch, offset)
}

// pass sends one batch the way it has to go.
func (p *partition) pass(b batch.Batch, d fetch.Data, want int64, aborted bool, t *prepared) error {
	limit := p.dst.Limit()
	path, reason := batch.Decide(b, batch.Conditions{
		FetchOffset: want, MaxBytes: limit, TargetLogAppendTime: p.appendTime(), Aborted: aborted,
	})
	e := produce.Entry{First: max(want, b.BaseOffset()), Last: b.LastOffset(), LeaderEpoch: b.LeaderEpoch(), Sources: 1}
	switch path {
	case batch.PathRaw:
		d.Frame.Retain()
		e.Batch, e.Frame = b, d.Frame
		p.dst.Push(d.Generation, e)
	case batch.PathReencode:
		out, runs, err := batch.Reencode(t.buf[:0], b, batch.ReencodeOptions{FetchOffset: want, MaxDecompressed: maxDecompressed})
		if err != nil {
			return err
		}
		if cap(out) <= keptRoom {
			t.buf = out
		}
		if len(runs) == 0 {
			p.skip(d.Generation, e, batch.ReasonEmpty, b)
			return nil
		}
		e.Reason, e.Runs = reason, runs
		p.pushParts(d.Generation, e, batch.Batch(out), limit)
	case batch.PathSkip:
		p.skip(d.Generation, e, reason, b)
	}
	return nil
}

func (p *partition) appendTime() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.targetAppendTime
}

func (p *partition) skip(generation uint64, e produce.Entry, reason batch.Reason, b batch.Batch) {
	p.mu.Lock()
	p.counts.add(status.PathSkipped, string(reason), 1, int(max(b.Count(), 0)), len(b))
	p.mu.Unlock()
	p.dst.Skip(generation, e.Last, e.LeaderEpoch)
}

// pushParts sends b, in parts where it is larger than the topic takes. A single
// record that is too large goes all the same: what the topic takes is for the
// target to say, and it names the offset.
func (p *partition) pushParts(generation uint64, e produce.Entry, b batch.Batch, limit int) {
	if limit > 0 && len(b) > limit {
		if head, tail, err := batch.Halves(b, maxDecompressed); err == nil {
			one, two := e.Split(head.Count())
			p.pushParts(generation, one, head, limit)
			p.pushParts(generation, two, tail, limit)
			return
		}
	}
	e.Frame = p.flow.frames.Get(len(b))
	e.Batch = batch.Batch(e.Frame.Bytes())
	copy(e.Batch, b)
	p.dst.Push(generation, e)
}

// damaged fetches again from the offset on: what came is not what the source
// has, or that is broken. Then the partition stalls, and is looked at now and
// again.
func (p *partition) damaged(generation uint64, offset int64, epoch int32, err error) {
	p.flow.count(status.ErrorCorrupt)
	p.mu.Lock()
	if generation != p.generation {
		p.mu.Unlock()
		return
	}
	if p.corruptAt != offset {
		p.corruptAt, p.corrupt = offset, 0
	}
	p.corrupt++
	n, id := p.corrupt, p.sourceID
	if n < corruptTries {
		p.renew()
	}
	g, stalled := p.generation, p.content
	p.mu.Unlock()
	if n >= corruptTries {
		p.unreadable(generation, offset, err)
		return
	}
	if n == 1 && !stalled {
		p.log.Warn("a batch arrived damaged, fetching it again", "offset", offset, "err", err)
	}
	p.dst.Continue(g)
	p.src.Start(fetch.Start{Generation: g, TopicID: id, Offset: offset, LeaderEpoch: epoch, After: damagedPause})
}

// unreadable stalls the partition at a batch that cannot be copied. What was
// read before it still goes out.
func (p *partition) unreadable(generation uint64, offset int64, err error) {
	reason := fmt.Sprintf("the source's batch at offset %d cannot be read: %v", offset, err)
	if errors.Is(err, batch.ErrTooLarge) {
		reason = fmt.Sprintf("the source's batch at offset %d has to be opened and is larger than %d MiB uncompressed: %v", offset, maxDecompressed>>20, err)
	}
	if p.stallOf(generation, offset, reason) {
		p.flow.beginAfter(p, p.flow.cfg().Refresh)
	}
}
