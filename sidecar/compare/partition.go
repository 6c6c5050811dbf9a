package compare

import (
	"fmt"
	"strings"
	"sync"
)

// The two sides, as indexes.
const (
	sourceSide = 0
	targetSide = 1
)

var sideNames = [2]string{"source", "target"}

// partition is one source partition and the target partition of its number.
// The readers of both sides feed it.
type partition struct {
	topic  Topic
	number int32

	mu        sync.Mutex
	ordered   *Ordered   // one of the two
	compacted *Compacted //
	bytes     uint64
	sides     [2]progress
}

// progress is how far one side of a partition is read.
type progress struct {
	next int64 // offset to read next
	read bool  // something was read from next before: a jump is a loss
	done bool  // read to the end, after finish was called
	err  error // why the last attempt to read failed, nil: it did not
}

func newPartition(t Topic, number int32) *partition {
	p := &partition{topic: t, number: number}
	if t.Compacted {
		p.compacted = &Compacted{}
	} else {
		p.ordered = &Ordered{}
	}
	return p
}

func (p *partition) name(side int) string {
	if side == sourceSide {
		return p.topic.Source
	}
	return p.topic.Target
}

// wanted says whether more of a side should be read now, and from where.
func (p *partition) wanted(side int) (next int64, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := &p.sides[side]
	if s.done {
		return 0, false
	}
	if p.ordered != nil {
		full := p.ordered.SourceFull()
		if side == targetSide {
			full = p.ordered.TargetFull()
		}
		if full {
			return 0, false
		}
	}
	return s.next, true
}

func (p *partition) isDone(side int) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.sides[side].done
}

// add takes what was read of a side up to before next. atEnd says that this is
// its end and that no more will be asked for.
func (p *partition) add(side int, records []Record, next int64, atEnd bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := &p.sides[side]
	s.err = nil
	s.next = next
	s.read = true
	for _, r := range records {
		switch {
		case p.ordered != nil && side == sourceSide:
			p.ordered.Source(r)
		case p.ordered != nil:
			p.ordered.Target(r)
		case side == sourceSide:
			p.compacted.Source(r)
		default:
			p.compacted.Target(r)
		}
		if side == targetSide {
			p.bytes += uint64(payload(r))
		}
	}
	if atEnd {
		p.end(side)
	}
}

// payload is the size of what a record carries.
func payload(r Record) int {
	n := len(r.Key) + len(r.Value)
	for _, h := range r.Headers {
		n += len(h.Key) + len(h.Value)
	}
	return n
}

// end is called with mu held.
func (p *partition) end(side int) {
	p.sides[side].done = true
	if p.ordered == nil {
		return
	}
	if side == sourceSide {
		p.ordered.EndSource()
	} else {
		p.ordered.EndTarget()
	}
}

// absent notes that a side does not have the partition; atEnd says that it is
// not waited for any longer.
func (p *partition) absent(side int, atEnd bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.sides[side].err = errNoTopic
	if atEnd {
		p.end(side)
	}
}

// jump moves a side on to the beginning of its log.
func (p *partition) jump(side int, start int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := &p.sides[side]
	// A cleaner may take the first records of a compacted log at any time.
	if s.read && p.ordered != nil && start > s.next {
		p.ordered.Gone(sideNames[side], s.next, start)
	}
	s.next = start
}

func (p *partition) failed(side int, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.sides[side].err = err
}

func (p *partition) addTo(sum Progress) Progress {
	p.mu.Lock()
	defer p.mu.Unlock()
	var r Result
	if p.ordered != nil {
		r = p.ordered.Result()
		sum.Pending += p.ordered.Pending()
	} else {
		r = p.compacted.result
		sum.Pending += p.compacted.Pending()
	}
	sum.Source += r.SourceRecords
	sum.Target += r.TargetRecords
	sum.Different += r.Different
	sum.Bytes += p.bytes
	return sum
}

func (p *partition) report() Result {
	p.mu.Lock()
	defer p.mu.Unlock()
	var r Result
	if p.ordered != nil {
		r = p.ordered.Result()
	} else {
		r = p.compacted.Result()
	}
	r.Topic, r.Target, r.Partition = p.topic.Source, p.topic.Target, p.number
	var why []string
	for side, s := range p.sides {
		switch {
		case s.done && s.err == nil:
		case s.err != nil:
			why = append(why, fmt.Sprintf("the %s was read up to offset %d: %v", sideNames[side], s.next, s.err))
		default:
			why = append(why, fmt.Sprintf("the %s was read up to offset %d, then time was up", sideNames[side], s.next))
		}
	}
	r.Incomplete = strings.Join(why, "; ")
	return r
}
