package produce

import (
	"slices"
	"time"

	"mirror/sidecar/batch"
	"mirror/sidecar/wire"
)

const (
	// mergeTo is how large a merged batch may grow. Larger ones save nothing
	// more: the cost of a request is spread thin by then.
	mergeTo = 512 << 10
	// compactTo is the same for batches that are recompressed, which is done
	// only where a round trip is dear.
	compactTo = 1 << 20
	// compactRoom is what the records may take uncompressed: as much as there is
	// room for that is used again (batch.Concat).
	compactRoom = 3 << 20
	// small is a compressed batch worth recompressing with others.
	small = 128 << 10
	// longTrip is the length of a link from which on a full window of small
	// batches is taken for a link that starves them. On a near target the same
	// window is full because the broker is busy, and recompressing helps nobody.
	longTrip = 20 * time.Millisecond
	// compactFrom is how many must wait.
	compactFrom = 4
)

// grows says that what waits at the head is uncompressed and may still become a
// larger batch. With something in flight it is worth waiting for: until the next
// answer at most, as Nagle's algorithm has it (RFC 896), so that an idle
// partition's batch goes at once and a busy one's in few requests.
func (p *Partition) grows() bool {
	sum, limit := 0, p.mergeLimit()
	for i := range p.waiting {
		e := &p.waiting[i]
		if sum += len(e.Batch); e.Batch.Codec() != batch.None || sum >= limit {
			return false
		}
	}
	return len(p.waiting) > 0
}

// mergeLimit is how large a merged batch may be.
func (p *Partition) mergeLimit() int {
	if p.limit > 0 {
		return min(mergeTo, p.limit)
	}
	return mergeTo
}

// merge copies the uncompressed batches that wait at the head into one and says
// how many those were; 0: there is nothing to merge. It keeps nobody waiting:
// only what is there anyway is merged.
func (p *Partition) merge() (Entry, int) {
	n, sum, limit := 0, 0, p.mergeLimit()
	for i := range p.waiting {
		e := &p.waiting[i]
		if e.Batch.Codec() != batch.None || sum+len(e.Batch) > limit {
			break
		}
		n, sum = n+1, sum+len(e.Batch)
	}
	if n < 2 {
		return Entry{}, 0
	}
	batches := make([]batch.Batch, n)
	for i := range batches {
		batches[i] = p.waiting[i].Batch
	}
	// The varints of a later batch's records can grow, so the result can be
	// larger than the sum; where that breaks the limit, fewer are merged.
	room := batch.MergedSize(batches)
	for p.limit > 0 && room > p.limit && n > 2 {
		n--
		batches = batches[:n]
		room = batch.MergedSize(batches)
	}
	if p.limit > 0 && room > p.limit {
		return Entry{}, 0
	}
	frame := p.producer.o.Frames.Get(room)
	out, err := batch.Merge(frame.Bytes()[:0], batches)
	if err != nil {
		// A body that cannot be walked crosses as it is: the target judges it.
		frame.Release()
		return Entry{}, 0
	}
	e := join(p.waiting[:n])
	e.Batch, e.Frame = batch.Batch(out), frame
	p.bytes += len(out) - size(p.waiting[:n])
	release(p.waiting[:n])
	return e, n
}

// join makes one entry of several, but for the batch and its frame.
func join(es []Entry) Entry {
	first, last := &es[0], &es[len(es)-1]
	e := Entry{First: first.First, Last: last.Last, LeaderEpoch: last.LeaderEpoch}
	for i := range es {
		e.Sources += es[i].Sources
		for _, r := range es[i].runs() {
			if k := len(e.Runs) - 1; k >= 0 && e.Runs[k].Source+int64(e.Runs[k].Count) == r.Source {
				e.Runs[k].Count += r.Count
			} else {
				e.Runs = append(e.Runs, r)
			}
		}
	}
	return e
}

// compaction is the batches that are being recompressed into one.
type compaction struct {
	entries []Entry
	from    int64 // first source offset
}

// Compact recompresses small compressed batches into larger ones, if they wait
// because the link is long: five of them for each round trip is all it carries.
func (p *Partition) Compact() {
	c := p.beginCompact()
	if c == nil {
		return
	}
	batches := make([]batch.Batch, len(c.entries))
	for i := range batches {
		batches[i] = c.entries[i].Batch
	}
	frame := p.producer.o.Frames.Get(size(c.entries))
	out, taken, err := batch.Concat(frame.Bytes()[:0], batches, compactRoom)
	if err != nil {
		taken = 0 // they cross as they are, and the target judges
	}
	if !p.endCompact(c, frame, out, taken) {
		frame.Release()
	}
	p.kick()
}

// compactable is how many waiting batches are worth recompressing into one now.
func (p *Partition) compactable() int {
	// One less than all in flight: an answer has just made room for the next.
	if p.stopped || p.failing || p.compacting != nil || p.out < inFlight-1 || p.trip < longTrip {
		return 0
	}
	limit := compactTo
	if p.limit > 0 {
		limit = min(limit, p.limit)
	}
	n, sum := 0, 0
	for i := range p.waiting {
		e := &p.waiting[i]
		if e.Batch.Codec() == batch.None || len(e.Batch) > small || sum+len(e.Batch) > limit {
			break
		}
		n, sum = n+1, sum+len(e.Batch)
	}
	return n
}

func (p *Partition) beginCompact() *compaction {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.starved = false
	n := p.compactable()
	if n < compactFrom {
		return nil
	}
	p.compacting = &compaction{entries: p.waiting[:n:n], from: p.waiting[0].First}
	p.waiting = p.waiting[n:]
	return p.compacting
}

// endCompact puts the result, of the first n entries, and the rest at the head
// again, and says whether the frame is in use then. A result that is larger than
// what it was made of has no room in the frame, and is worth nothing.
func (p *Partition) endCompact(c *compaction, frame *wire.Frame, out batch.Batch, n int) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.compacting != c { // dropped meanwhile
		release(c.entries)
		return false
	}
	p.compacting = nil
	if n < 2 || len(out) > len(frame.Bytes()) || p.limit > 0 && len(out) > p.limit {
		p.waiting = append(c.entries, p.waiting...)
		return false
	}
	e := join(c.entries[:n])
	e.Frame = frame
	e.Batch = frame.Bytes()[:copy(frame.Bytes(), out)] // a codec may have made room of its own
	e.Reason = batch.ReasonSmall
	p.bytes += len(out) - size(c.entries[:n])
	release(c.entries[:n])
	p.waiting = slices.Concat([]Entry{e}, c.entries[n:], p.waiting)
	return true
}

// size is the bytes of the entries' batches.
func size(es []Entry) (n int) {
	for i := range es {
		n += len(es[i].Batch)
	}
	return n
}

func release(es []Entry) {
	for i := range es {
		es[i].Frame.Release()
	}
}
