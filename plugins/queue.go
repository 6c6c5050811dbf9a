package plugins

import (
	"math"
	"slices"
	"time"

	"mirror/abi"
)

// queue is a plugin's cursor over one partition: what has been acknowledged and it
// does not have for good. Items are events and ranges, in order:
//
//	items:   | told to this instance, not flushed | this round's | since the round began |
//	         0                                  told         sealed                 len(items)
//
// base is the partition as it was before items[0], view as it is before items[told]. A
// flush forgets what was told; a fresh instance is told base and then everything again.
type queue struct {
	key    Key
	state  *state // nil: the plugin has none
	base   Event
	known  bool // base is something; else items begin with an event that says what
	view   Event
	items  []item
	events []Event // those among the items
	passed int     // how many there were before them
	told   int
	sealed int
	seams  []int // where a round began between two items that could be one, rising

	begun      bool // the state knows of base
	introduced bool // this instance has been told base
	busy       bool // in a frame that waits to be told again
	muted      bool // base is not told: the plugin, which may be skipped, cannot stand it
	solo       bool // told in frames of its own, for one with others has failed
	attempt    int  // failures in a row
	notBefore  time.Time
	halted     *Failure
}

// item is a range or an event. There are many where transactions are small, so it has
// no pointers that the garbage collector would have to follow.
type item struct {
	event int // its number, from 1 on; 0: a range
	r     Range
}

// event is the event that an item is, nil: it is a range.
func (q *queue) event(x *item) *Event {
	if x.event == 0 {
		return nil
	}
	return &q.events[x.event-q.passed-1]
}

func (q *queue) happened(e Event) {
	q.events = append(q.events, e)
	q.items = append(q.items, item{event: q.passed + len(q.events)})
}

func (q *queue) push(r Range) {
	if n := len(q.items); n > q.sealed && q.items[n-1].join(&item{r: r}) {
		return
	}
	q.items = append(q.items, item{r: r})
}

func (x *item) join(y *item) bool { return x.event == 0 && y.event == 0 && x.r.join(y.r) }

// seal makes what there is now this round's.
func (q *queue) seal() {
	if !q.busy {
		q.compact()
	}
	q.sealed = len(q.items)
	if n := len(q.seams); q.sealed > 0 && (n == 0 || q.seams[n-1] < q.sealed) {
		q.seams = append(q.seams, q.sealed)
	}
}

// compact joins ranges that were kept apart because a round began between them: all
// others were joined as they came.
func (q *queue) compact() {
	kept, gone := q.seams[:0], 0
	for _, at := range q.seams {
		at -= gone
		switch {
		case at == q.told || at == len(q.items): // what comes after it is told later, or comes later
			kept = append(kept, at)
		case q.items[at-1].join(&q.items[at]):
			q.items = slices.Delete(q.items, at, at+1)
			gone++
			if at < q.told {
				q.told--
			}
		}
	}
	q.seams = kept
}

// advance notes that n more items have been told.
func (q *queue) advance(n int) {
	for i := range q.items[q.told : q.told+n] {
		x := &q.items[q.told+i]
		if e := q.event(x); e != nil {
			q.view = *e
		} else {
			q.view.pass(&x.r)
		}
	}
	q.told += n
}

// pass moves the partition past a range. What is replayed was there before: it moves
// nothing.
func (e *Event) pass(r *Range) {
	if r.Replay {
		return
	}
	e.Position = r.Last
	if r.TargetLast >= 0 {
		e.TargetEnd = r.TargetLast + 1
	}
}

// flush forgets what has been told: nobody needs it any more.
func (q *queue) flush() {
	if q.told == 0 {
		return
	}
	q.state.settle()
	q.base, q.known = q.view, q.view.Kind != abi.Revoked
	n := 0
	for i := range q.items[:q.told] {
		if q.items[i].event != 0 {
			n++
		}
	}
	q.events, q.passed = slices.Delete(q.events, 0, n), q.passed+n
	q.items = slices.Delete(q.items, 0, q.told)
	q.sealed -= q.told
	seams := q.seams[:0]
	for _, at := range q.seams {
		if at > q.told {
			seams = append(seams, at-q.told)
		}
	}
	q.seams, q.told = seams, 0
}

// rewind is for a fresh instance, which has been told nothing.
func (q *queue) rewind() {
	q.told, q.view, q.begun, q.introduced, q.busy = 0, q.base, false, false, false
	q.state.drop()
}

// begin is before anything else that concerns an instance.
func (q *queue) begin() {
	if q.known && !q.begun {
		q.state.begins(q.base.TopicID)
	}
	q.begun = true
}

// skip drops the first n items, untold. It says how many ranges that were.
func (q *queue) skip(n int) (ranges uint64) {
	q.rewind()
	for i := range q.items[:n] {
		if e := q.event(&q.items[i]); e == nil {
			ranges++
		} else if e.Kind == abi.Recreated {
			q.state.renew(e.TopicID)
		}
	}
	q.advance(n)
	q.flush()
	return ranges
}

// gone says that the lane has the partition no more, and the plugin knows.
func (q *queue) gone() bool { return !q.known && len(q.items) == 0 && q.base.Kind == abi.Revoked }

// toldRanges says that a range was told and not flushed.
func (q *queue) toldRanges() bool {
	return slices.ContainsFunc(q.items[:q.told], func(x item) bool { return x.event == 0 })
}

// safe is the last offset that may be saved for what the plugin knows.
func (q *queue) safe() int64 {
	s := int64(math.MaxInt64)
	if q.known {
		s = q.base.Position
	}
	for i := range q.items {
		x := &q.items[i]
		if e := q.event(x); e != nil {
			s = min(s, e.Position)
		} else if !x.r.Replay {
			s = min(s, x.r.First-1)
		}
	}
	return s
}

// happenings is how many events come next, in this round.
func (q *queue) happenings() int {
	n := 0
	for n < q.sealed-q.told && q.items[q.told+n].event != 0 {
		n++
	}
	return n
}

// ranges is how many ranges of that kind come next, in this round.
func (q *queue) ranges(replay bool) int {
	n := 0
	for i := range q.items[q.told:q.sealed] {
		if x := &q.items[q.told+i]; x.event != 0 || x.r.Replay != replay {
			break
		}
		n++
	}
	return n
}
