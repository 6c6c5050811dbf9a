package produce

import (
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"

	"mirror/sidecar/batch"
	"mirror/sidecar/cluster"
)

// answer is what came of one batch.
type answer struct {
	err     error // of the connection, or the broker's code as a *kerr.Error; nil: stored
	message string
	base    int64         // first target offset
	bad     []recordError // the records that the broker does not take
	trip    time.Duration // the length of the link, 0 when not known
	took    time.Duration // from the request to the answer
}

type recordError struct {
	index   int32 // in the batch
	message string
}

// serverErrors is how often UNKNOWN_SERVER_ERROR is tried again: it is also what
// a broker says of a batch whose compressed body it cannot read.
const serverErrors = 5

// answered takes the answer to s. Answers come in the order of take.
func (p *Partition) answered(s *sent, a answer) {
	if p.answer(s, a) {
		p.kick()
	}
}

// answer says whether there may be something to send now.
func (p *Partition) answer(s *sent, a answer) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.flying--
	if !p.holds(s) {
		return false // dropped meanwhile
	}
	p.out--
	if a.err == kerr.DuplicateSequenceNumber {
		a.err, a.base = nil, -1
	}
	switch {
	case a.err == nil:
		s.stored, s.base = true, a.base
		p.known, p.knownAt, p.knownBy, p.trip = true, time.Now(), s.Batch.MaxTimestamp(), a.trip
		p.calm(a.took)
		if p.overtaken(s) {
			p.lose(ErrOvertaken)
			return false
		}
	default:
		s.unsure = s.unsure || maybeStored(a.err)
		if a.err == kerr.RequestTimedOut {
			p.isolate()
		}
		if p.failing {
			break
		}
		p.failing = true
		p.failure = describe(s, a)
		p.owner.Failed(p.failure, p.failures+1)
	}
	p.pop()
	if p.failing && p.out == 0 {
		p.settle()
	}
	if !p.starved && p.compactable() >= compactFrom {
		p.starved = true
		p.owner.Starved()
	}
	return true
}

func (p *Partition) holds(s *sent) bool {
	for _, x := range p.sent {
		if x == s {
			return true
		}
	}
	return false
}

// pop gives the acknowledged batches at the head to the owner.
func (p *Partition) pop() {
	n := 0
	for n < len(p.sent) && p.sent[n].stored {
		s := p.sent[n]
		n++
		p.bytes -= len(s.Batch)
		p.owner.Acknowledged(Ack{
			Runs: s.runs(), Last: s.Last, LeaderEpoch: s.LeaderEpoch,
			Count: s.count, TargetOffset: s.base,
			Producer: p.pid, Sequence: batch.NextSequence(s.sequence, s.count-1),
			Bytes: len(s.Batch), Held: p.bytes, Sources: s.Sources, Merged: s.merged, Reason: s.Reason,
			Timestamp: s.Batch.MaxTimestamp(),
		})
		s.Frame.Release()
	}
	if n == 0 {
		return
	}
	clear(p.sent[:n])
	if p.sent = p.sent[n:]; len(p.sent) == 0 {
		p.sent = nil
	}
	p.next = max(p.next-n, 0)
	if !p.failing {
		p.failures = 0
		p.ready()
	}
	if p.refusal != nil {
		r := *p.refusal
		p.stop()
		p.owner.Refused(r)
	}
}

// failed is an answer that was not good.
type failed struct {
	answer
	offset int64 // source offset, of the first bad record where that is known
}

func (f *failed) Error() string {
	var b []byte
	b = fmt.Appendf(b, "source offset %d: %v", f.offset, f.err)
	if len(f.bad) > 0 && f.bad[0].message != "" {
		b = fmt.Appendf(b, ": %s", f.bad[0].message)
	} else if f.message != "" {
		b = fmt.Appendf(b, ": %s", f.message)
	}
	return string(b)
}

func (f *failed) Unwrap() error { return f.err }

func describe(s *sent, a answer) *failed {
	f := &failed{answer: a, offset: s.Offset(0)}
	if i := f.firstBad(); i > 0 && i < s.count {
		f.offset = s.Offset(i)
	}
	return f
}

// firstBad is the index of the first record that the broker named, -1: none.
func (f *failed) firstBad() int32 {
	i := int32(-1)
	for _, r := range f.bad {
		if i < 0 || r.index < i {
			i = r.index
		}
	}
	return i
}

// settle decides what to do after a failure, once no request is on its way: the
// batch that failed is the first that is not acknowledged, and those sent behind
// it were refused for the gap before them.
func (p *Partition) settle() {
	f := p.failure.(*failed)
	p.failing, p.failure = false, nil
	p.next = 0
	p.failures++
	p.known = false
	if len(p.sent) == 0 {
		return
	}
	if why := p.doubt(); why != nil {
		p.lose(fmt.Errorf("%w: %w", f, why))
		return
	}
	s := p.sent[0]
	switch verdictOf(f.err) {
	case again:
		if errors.Is(f.err, kerr.UnknownServerError) && s.tries >= serverErrors {
			p.refuse(Refusal{s.Offset(0), f})
			return
		}
		if p.failures >= shedAfter {
			p.shed()
		}
		p.wait(cluster.Backoff(p.failures))
	case moved:
		p.producer.router.Stale()
		if p.failures >= shedAfter {
			p.shed()
		}
		p.wait(cluster.Backoff(p.failures))
	case tooLarge:
		if p.limit == 0 || len(s.Batch) <= p.limit {
			p.limit = len(s.Batch) / 2 // the topic's limit is lower than was known
		}
		if err := p.split(s, 0); err != nil {
			p.refuse(Refusal{s.Offset(0), f})
		}
	case badRecords:
		i := f.firstBad()
		if i <= 0 || i >= s.count {
			p.refuse(Refusal{s.Offset(0), f})
			return
		}
		// What comes before the bad record is stored, then the partition stops.
		if err := p.split(s, i); err != nil {
			p.refuse(Refusal{s.Offset(0), errors.Join(f, err)})
			return
		}
		for _, x := range p.sent[1:] {
			p.bytes -= len(x.Batch)
			x.Frame.Release()
		}
		p.sent = p.sent[:1:1]
		p.release()
		p.refusal = &Refusal{f.offset, f}
	case refused:
		p.refuse(Refusal{s.Offset(0), f})
	case lost:
		p.lose(f)
	}
}

func (p *Partition) refuse(r Refusal) {
	p.stop()
	p.owner.Refused(r)
}

// release drops what waits.
func (p *Partition) release() {
	p.bytes -= size(p.waiting)
	if p.compacting != nil {
		p.bytes -= size(p.compacting.entries)
	}
	p.dropWaiting()
}

// split replaces the first batch, whose sequence stays, by its first n records
// and the others; by halves where n is 0.
func (p *Partition) split(s *sent, n int32) error {
	var head, tail batch.Batch
	var err error
	if n == 0 {
		head, tail, err = batch.Halves(s.Batch, p.producer.o.MaxDecompressed)
	} else {
		head, tail, err = batch.SplitAt(s.Batch, n, p.producer.o.MaxDecompressed)
	}
	if err != nil {
		return err
	}
	a, b := s.Split(head.Count())
	p.bytes -= len(s.Batch)
	s.Frame.Release()
	one := p.part(a, head, s, s.sequence)
	two := p.part(b, tail, s, batch.NextSequence(s.sequence, one.count))
	p.sent = append([]*sent{one, two}, p.sent[1:]...)
	return nil
}

// part makes the part e of s, with the bytes of b.
func (p *Partition) part(e Entry, b batch.Batch, s *sent, sequence int32) *sent {
	e.Frame = p.producer.o.Frames.Get(len(b))
	e.Batch = batch.Batch(e.Frame.Bytes())
	copy(e.Batch, b)
	e.Batch.Rewrite(p.pid, sequence)
	p.bytes += len(b)
	return &sent{Entry: e, sequence: sequence, count: b.Count(), merged: s.merged, unsure: s.unsure, base: -1}
}
