package produce

import "errors"

// shedAfter is the number of failures in a row after which what waits is given
// back: the target may be out of reach for long, and others need the memory.
const shedAfter = 3

var errNoLeader = errors.New("the target partition has no leader")

// shed gives what waits back to the owner. What was sent has to stay as it is, or
// else the first batch that waits does: it goes on to be sent, and tells when the
// target is back. It is set aside, outside of the budget, so that a partition
// that is out of reach keeps nobody else from working.
func (p *Partition) shed() {
	if p.out == 0 { // a request's bytes must stay where they are
		for _, s := range p.sent {
			p.setAside(&s.Entry)
		}
	}
	from := int64(-1)
	keep := 0
	switch {
	case len(p.sent) > 0 && p.compacting != nil:
		from = p.compacting.from
	case len(p.sent) == 0 && p.compacting != nil:
		return // the next time
	case len(p.sent) == 0 && len(p.waiting) > 0:
		p.setAside(&p.waiting[0])
		keep = 1
		fallthrough
	default:
		if len(p.waiting) > keep {
			from = p.waiting[keep].First
		}
	}
	if from < 0 {
		return
	}
	kept := p.waiting[:keep:keep]
	p.waiting = p.waiting[keep:]
	p.release()
	if keep > 0 {
		p.waiting = kept
	}
	p.generation = p.owner.Shed(from)
}

// setAside moves the batch to a frame of its own. It may have shared its frame
// with a whole answer of the source.
func (p *Partition) setAside(e *Entry) {
	if e.aside {
		return
	}
	f := p.producer.aside.Get(len(e.Batch))
	copy(f.Bytes(), e.Batch)
	e.Frame.Release()
	e.Batch, e.Frame, e.aside = f.Bytes(), f, true
}

// unreachable counts a failure to reach the leader; nothing was sent.
func (p *Partition) unreachable(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.stopped || p.empty() {
		return
	}
	p.failures++
	p.owner.Failed(err, p.failures)
	if p.failures >= shedAfter {
		p.shed()
	}
}
