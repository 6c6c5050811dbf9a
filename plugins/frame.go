package plugins

import (
	"slices"
	"time"

	"mirror/abi"
)

// frame is a call of a hook: what it is told, and of which queues that is. One without
// a hook is about what was put alone.
type frame struct {
	hook       abi.Hook
	flags      uint16
	attempt    int
	notBefore  time.Time // of one that is to be told again
	parts      []part
	about      []*queue // of its entries
	ranges     []*Range // of on_commit
	partitions []abi.Partition
	groups     []abi.Group
	text       int // bytes of the entries' texts, more or less
}

// part is what a frame has of a queue.
type part struct {
	q     *queue
	intro bool // its base
	n     int  // items
}

func (f *frame) fill(e *abi.Encoder) {
	for n, r := range f.ranges {
		e.Commit(f.about[n].commit(r))
	}
	for _, p := range f.partitions {
		e.Partition(p)
	}
	for _, g := range f.groups {
		e.Group(g)
	}
}

// room says whether an entry about the queue still fits.
func (f *frame) room(q *queue, most int) bool { return f.fits(topicBytes(q), most) }

// fits says whether an entry with so many bytes of text still fits.
func (f *frame) fits(text, most int) bool {
	n := len(f.about)
	size := abi.HeaderSize + (n+1)*max(abi.CommitSize, abi.PartitionSize, abi.GroupSize) + f.text + text + smallExtras
	return n < most && (n == 0 || size <= abi.MaxFrame)
}

func topicBytes(q *queue) int { return len(q.key.Topic) + len(q.view.TargetTopic) }

// add counts an entry about the queue.
func (f *frame) add(q *queue) {
	if n := len(f.about); n == 0 || f.about[n-1] != q {
		f.text += topicBytes(q)
		f.attempt = max(f.attempt, q.attempt)
	}
	f.about = append(f.about, q)
}

func (f *frame) addEvent(q *queue, e Event) {
	f.add(q)
	f.partitions = append(f.partitions, e.entry())
}

// addRange keeps r until the frame is done, or told for the last time.
func (f *frame) addRange(q *queue, r *Range) {
	f.add(q)
	f.ranges = append(f.ranges, r)
}

// commit is a range as an entry.
func (q *queue) commit(r *Range) abi.Commit {
	return abi.Commit{Topic: q.key.Topic, TargetTopic: q.view.TargetTopic, Partition: q.key.Partition,
		TargetPartition: q.key.Partition, SrcFirst: r.First, SrcLast: r.Last, DstFirst: r.TargetFirst, DstLast: r.TargetLast,
		MaxTimestamp: r.MaxTimestamp, Records: r.Records, Dropped: r.Dropped, LeaderEpoch: r.LeaderEpoch}
}

// done notes that the frame was told, and what it emitted is written.
func (f *frame) done() {
	for _, p := range f.parts {
		q := p.q
		q.busy = false
		q.introduced = q.introduced || f.hook == abi.OnPartitions
		q.advance(p.n)
		// One that failed with others stays by itself until it has been told all that
		// there is: only then is it known to be well.
		if !q.solo || q.told == q.sealed {
			q.solo, q.attempt, q.notBefore = false, 0, time.Time{}
		}
		if f.flags&abi.Flush != 0 {
			q.flush()
		}
	}
}

// introductions is what comes before anything else: the partitions as they are, and
// what has happened to them. nil: there is none.
func introductions(qs []*queue, most int) *frame {
	f := &frame{hook: abi.OnPartitions}
	for _, q := range qs {
		p := part{q: q, intro: q.known && !q.introduced && !q.muted}
		if p.intro {
			if !f.room(q, most) {
				break
			}
			e := q.base
			e.Kind = abi.Assigned
			f.addEvent(q, e)
		}
		for range q.happenings() {
			if !f.room(q, most) {
				break
			}
			e := q.event(&q.items[q.told+p.n])
			q.state.hear(e)
			f.addEvent(q, *e)
			p.n++
		}
		if p.intro || p.n > 0 {
			f.parts = append(f.parts, p)
		}
	}
	return f.orNil()
}

// replays is what was known before, nil: nothing.
func replays(qs []*queue, most int) *frame {
	f := &frame{hook: abi.OnCommit, flags: abi.Replay}
	for _, q := range qs {
		f.take(q, q.ranges(true), most)
	}
	return f.orNil()
}

// commits is what is safe now, nil: nothing.
func commits(qs []*queue, most int) *frame {
	f := &frame{hook: abi.OnCommit}
	for _, q := range qs {
		f.take(q, q.ranges(false), most)
	}
	return f.orNil()
}

// take adds the next n ranges of a queue, as far as there is room.
func (f *frame) take(q *queue, n, most int) {
	p, next := part{q: q}, q.items[q.told:][:n]
	f.about, f.ranges = slices.Grow(f.about, min(n, most)), slices.Grow(f.ranges, min(n, most))
	for i := range next {
		if !f.room(q, most) {
			break
		}
		f.addRange(q, &next[i].r)
		p.n++
	}
	if p.n > 0 {
		f.parts = append(f.parts, p)
	}
}

// flushes is commits for what is about to be saved, with an entry for each partition
// of which something was told before. What does not fit into one frame is in several,
// each with all that there is of its partitions; those of which there is more than a
// frame holds are told part of it before.
func flushes(qs []*queue, most int) *frame {
	f := &frame{hook: abi.OnCommit, flags: abi.Flush}
	for _, q := range qs {
		n := q.ranges(false)
		if n == 0 && !q.toldRanges() {
			continue
		}
		if n == 0 {
			if !f.room(q, most) {
				break
			}
			at := q.view.Position
			f.addRange(q, &Range{First: at + 1, Last: at, TargetFirst: -1, TargetLast: -1, MaxTimestamp: -1, LeaderEpoch: -1})
			f.parts = append(f.parts, part{q: q})
			continue
		}
		whole := *f
		whole.take(q, n, most)
		if k := len(whole.parts); k > len(f.parts) && whole.parts[k-1].n == n {
			*f = whole
			continue
		}
		if len(f.parts) > 0 {
			break
		}
		whole.flags = 0
		return &whole
	}
	return f.orNil()
}

func (f *frame) orNil() *frame {
	if len(f.parts) == 0 {
		return nil
	}
	return f
}
