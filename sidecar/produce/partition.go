package produce

import (
	"sync"
	"sync/atomic"
	"time"

	"mirror/sidecar/batch"
)

// inFlight is how many batches of a partition may be on their way at once. A
// broker remembers as many for each producer, to tell a resend from a gap.
const inFlight = 5

// Partition is one target partition: what waits for it and what is on its way
// there. Push, Skip and Compact are for the one goroutine that owns the source
// partition; the other methods may be called from anywhere.
type Partition struct {
	producer *Producer
	owner    Owner
	topic    string
	number   int32
	aside    atomic.Uint32 // the connection to its leader: 0 is shared, others are for the slow

	mu         sync.Mutex
	generation uint64
	id         [16]byte // of the topic
	pid        batch.Producer
	sequence   int32 // of the next record
	sentTo     int64 // the last source offset that was ever given a sequence, -1: none
	limit      int   // max.message.bytes as far as known, 0: not at all
	waiting    []Entry
	compacting *compaction // what is being recompressed, outside the lock; it comes before waiting
	sent       []*sent     // not acknowledged, by sequence
	next       int         // sent[next:] have to be sent (again)
	out        int         // of sent[:next], without an answer
	bytes      int         // of waiting, compacting and sent
	merging    bool        // the last batch taken was made of several
	isShed     bool        // the owner waits for Ready
	starved    bool        // the owner knows that the link is long
	trip       time.Duration

	known    bool      // the leader has acknowledged something of this producer
	knownAt  time.Time // when it last did
	knownBy  int64     // largest timestamp of what it acknowledged then
	session  int64     // the connection it was sent on last
	slowAt   time.Time // when an answer was last late, while aside
	flying   int       // requests without an answer, also of what was dropped
	failing  bool      // an answer was bad: nothing goes out until all are in
	failure  error
	failures int       // in a row
	retryAt  time.Time // nothing goes out before
	retry    *time.Timer
	refusal  *Refusal // to be said once sent[0] is acknowledged
	stopped  bool     // takes nothing until Reset
}

// Topic is the name of the topic on the target.
func (p *Partition) Topic() string { return p.topic }

// Number is the partition's number.
func (p *Partition) Number() int32 { return p.number }

// Push appends e to what waits, for the next Send. An entry of another generation
// than that of the last Reset or Shed is dropped.
func (p *Partition) Push(generation uint64, e Entry) {
	if !p.push(generation, e) {
		e.Frame.Release()
	}
}

// Send has what waits sent, as soon as it may. It is apart from Push so that the
// entries of several partitions go in one request.
func (p *Partition) Send() { p.kick() }

func (p *Partition) push(generation uint64, e Entry) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.takes(generation) {
		return false
	}
	p.waiting = append(p.waiting, e)
	p.bytes += len(e.Batch)
	return true
}

func (p *Partition) takes(generation uint64) bool {
	return !p.stopped && p.refusal == nil && generation == p.generation
}

// Skip says that the source offsets up to last hold nothing to be stored. They
// are done with when all before them is.
func (p *Partition) Skip(generation uint64, last int64, leaderEpoch int32) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.takes(generation) {
		return
	}
	switch w, s := len(p.waiting), len(p.sent); {
	case w > 0:
		p.waiting[w-1].Last, p.waiting[w-1].LeaderEpoch = last, leaderEpoch
	case s > 0:
		p.sent[s-1].Last, p.sent[s-1].LeaderEpoch = last, leaderEpoch
	default:
		p.owner.Acknowledged(Ack{Last: last, LeaderEpoch: leaderEpoch})
	}
}

// Bytes is the size of what waits and of what is on its way.
func (p *Partition) Bytes() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.bytes
}

// Oldest is the largest timestamp in the first batch that is not acknowledged, in
// ms since the epoch (-1: it has none), if there is such a batch.
func (p *Partition) Oldest() (ms int64, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case len(p.sent) > 0:
		return p.sent[0].Batch.MaxTimestamp(), true
	case p.compacting != nil:
		return p.compacting.entries[0].Batch.MaxTimestamp(), true
	case len(p.waiting) > 0:
		return p.waiting[0].Batch.MaxTimestamp(), true
	}
	return 0, false
}

// Merging says whether the last batch taken was merged from several.
func (p *Partition) Merging() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.merging
}

// Limit is the largest batch that the topic takes, in bytes; 0: not known.
func (p *Partition) Limit() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.limit
}

// SetLimit tells the topic's max.message.bytes; 0: not known.
func (p *Partition) SetLimit(n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if n > 0 {
		p.limit = n
	}
}

// Start is how a partition begins.
type Start struct {
	// Generation is what Push and Skip must say from now on.
	Generation uint64
	// TopicID is zero where the target has no topic ids.
	TopicID [16]byte
	// Producer sends from Sequence on, which no record here has had.
	Producer batch.Producer
	Sequence int32
}

// Reset drops what waits and what is unacknowledged, and begins anew. The answer
// to a request that is still on its way changes nothing any more.
func (p *Partition) Reset(s Start) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.drop()
	p.generation, p.id, p.pid, p.sequence = s.Generation, s.TopicID, s.Producer, s.Sequence
	p.stopped, p.known = false, false
}

// Continue takes pushes of this generation from now on, unless there is a later
// one, and keeps what there is: the source is read again from where the last push
// ended.
func (p *Partition) Continue(generation uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.generation = max(p.generation, generation)
}

// SentTo is the last source offset that was ever on its way here, -1: none.
func (p *Partition) SentTo() int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.sentTo
}

// Idle says that nothing waits and nothing is on its way: neither what may still
// be resent, nor what was dropped and may yet be stored.
func (p *Partition) Idle() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.flying == 0 && p.empty()
}

func (p *Partition) empty() bool {
	return len(p.waiting) == 0 && len(p.sent) == 0 && p.compacting == nil
}

// Stop drops everything; only Reset begins again.
func (p *Partition) Stop() {
	p.mu.Lock()
	p.stop()
	p.mu.Unlock()
	p.producer.router.Forget(p)
}

func (p *Partition) stop() {
	p.drop()
	p.stopped = true
}

// drop releases all that is held. Like all below, it wants the lock.
func (p *Partition) drop() {
	p.dropWaiting()
	for _, s := range p.sent {
		s.Frame.Release()
	}
	p.sent, p.next, p.out, p.bytes = nil, 0, 0, 0
	p.failing, p.failure, p.failures, p.refusal, p.merging, p.starved, p.isShed = false, nil, 0, nil, false, false, false
	p.wait(0)
}

func (p *Partition) dropWaiting() {
	p.compacting = nil // whoever is at it will find that it is not his any more
	release(p.waiting)
	p.waiting = nil
}

// wait keeps the partition from sending for d.
func (p *Partition) wait(d time.Duration) {
	if p.retry != nil {
		p.retry.Stop()
		p.retry = nil
	}
	p.retryAt = time.Time{}
	if d > 0 {
		p.retryAt = time.Now().Add(d)
		p.retry = time.AfterFunc(d, p.kick)
	}
}

// take returns the next batch to go out on the session, a connection to the
// leader; nil when there is none at the moment. Its sequence and producer are in
// its header.
func (p *Partition) take(session int64) *sent {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.stopped || p.failing || time.Now().Before(p.retryAt) {
		return nil
	}
	if session != p.session {
		// The old leader answers for all it was sent before the new one gets
		// anything.
		if p.out > 0 {
			return nil
		}
		p.session, p.known = session, false
	}
	// A leader that does not know the producer (it is new to it, or was restarted,
	// or has forgotten) takes any sequence. Had it more than one batch, a refused
	// first and an accepted second would be a gap.
	if p.out == 0 && !p.trusts() {
		p.known = false
	}
	if p.out >= inFlight || p.out > 0 && !p.known {
		return nil
	}
	for p.next < len(p.sent) && p.sent[p.next].stored {
		p.next++
	}
	if len(p.sent) == 0 {
		p.ready()
	}
	if p.next == len(p.sent) && (p.out > 0 && p.grows() || !p.assign()) {
		return nil
	}
	s := p.sent[p.next]
	if s.tries > 0 { // it may have waited for long
		if why := p.doubt(); why != nil {
			p.lose(why)
			return nil
		}
	}
	p.next++
	p.out++
	p.flying++
	s.tries++
	s.topic, s.held = p.id, s.Frame
	s.held.Retain()
	return s
}

// assign gives the next waiting batch, or several merged, its sequence.
func (p *Partition) assign() bool {
	if len(p.waiting) == 0 || p.compacting != nil || p.refusal != nil {
		return false
	}
	e, n := p.merge()
	if n == 0 {
		e, n = p.waiting[0], 1
	}
	clear(p.waiting[:n])
	if p.waiting = p.waiting[n:]; len(p.waiting) == 0 {
		p.waiting = nil
	}
	p.merging = n > 1 || e.Reason == batch.ReasonSmall
	s := &sent{Entry: e, sequence: p.sequence, count: e.Batch.Count(), merged: n > 1, base: -1}
	e.Batch.Rewrite(p.pid, s.sequence)
	p.sequence = batch.NextSequence(p.sequence, s.count)
	p.sent = append(p.sent, s)
	p.sentTo = max(p.sentTo, e.Last)
	return true
}
