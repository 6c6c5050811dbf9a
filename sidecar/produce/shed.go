package produce

import (
	"errors"

	"github.com/twmb/franz-go/pkg/kerr"
)

// shedAfter is the number of failures in a row after which what waits is given
// back: the target may be out of reach for long, and others need the memory.
const shedAfter = 3

var errNoLeader = errors.New("the target partition has no leader")

// shed gives back to the owner what waits, and of what was sent the end that the
// broker certainly has not stored: it gets other sequences later, perhaps in
// other batches. What may be stored has to stay as it is. It is set aside, so
// that a partition that is out of reach keeps nobody else from working.
func (p *Partition) shed() {
	from := int64(-1)
	if p.compacting != nil {
		from = p.compacting.from
	} else if len(p.waiting) > 0 {
		from = p.waiting[0].First
	}
	p.release()
	if p.out == 0 && p.refusal == nil { // a request's bytes must stay where they are
		for n := len(p.sent) - 1; n >= 0 && !p.sent[n].unsure && !p.sent[n].stored; n-- {
			s := p.sent[n]
			from, p.sequence = s.First, s.sequence
			p.bytes -= len(s.Batch)
			s.Frame.Release()
			p.sent[n] = nil
			p.sent = p.sent[:n]
			p.next = min(p.next, n)
		}
		for _, s := range p.sent {
			p.setAside(s)
		}
	}
	if from < 0 {
		return
	}
	p.isShed = true
	p.generation = p.owner.Shed(from)
}

// ready ends what shed began.
func (p *Partition) ready() {
	if p.isShed {
		p.isShed = false
		p.owner.Ready()
	}
}

// setAside moves the batch to a frame of its own: it may have shared one with a
// whole answer of the source. It is outside of the budget as long as there is
// room for it there, which is as much as the budget.
func (p *Partition) setAside(s *sent) {
	if s.aside {
		return
	}
	pool := p.producer.aside
	if pool.InUse()+int64(len(s.Batch)) > p.producer.o.Frames.Limit() {
		pool = p.producer.o.Frames
	}
	f := pool.Get(len(s.Batch))
	copy(f.Bytes(), s.Batch)
	s.Frame.Release()
	s.Batch, s.Frame, s.aside = f.Bytes(), f, true
}

// notStored are the codes that a broker gives before it stores anything, beside
// those that are final. (Others may come after: NOT_LEADER_OR_FOLLOWER while it
// waited for its followers.)
var notStored = []*kerr.Error{
	kerr.NotEnoughReplicas, kerr.CorruptMessage, kerr.UnknownTopicOrPartition, kerr.UnknownTopicID,
}

// maybeStored says whether the broker may have stored the batch for which it, or
// the connection, gave the error.
func maybeStored(err error) bool {
	if v := verdictOf(err); v != again && v != moved {
		return false
	}
	for _, e := range notStored {
		if errors.Is(err, e) {
			return false
		}
	}
	return true
}

// unreachable counts a failure to reach the leader; nothing was sent. Where it is
// known that it will not be reached soon, what waits is shed at once: while the
// memory is with those who cannot use it, nobody can.
func (p *Partition) unreachable(err error, soon bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.stopped {
		return
	}
	if !p.empty() || p.isShed {
		p.failures++
		p.owner.Failed(err, p.failures)
	}
	if !soon || p.failures >= shedAfter {
		p.shed()
	}
}
