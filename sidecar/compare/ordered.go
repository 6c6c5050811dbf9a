package compare

import "fmt"

// How far apart the sides of a partition may be, and how far a difference is
// looked around in: records, and bytes that they hold.
const (
	windowRecords = 1024
	windowBytes   = 1 << 20
)

// Ordered compares two logs record by record: the n-th of one side with the
// n-th of the other. After a difference it looks for the place where the two
// go on alike, tells what lies between, and continues there. The zero value is
// ready. It is not safe for concurrent use.
type Ordered struct {
	source, target queue
	recent         ring
	missing        map[uint64]int // hashes of records told missing: they may come late
	result         Result
}

// queue holds the records of one side that the other side has yet to match.
type queue struct {
	records []Record
	bytes   int
	ended   bool
}

func (q *queue) push(r Record) {
	q.records = append(q.records, r)
	q.bytes += r.size()
}

func (q *queue) drop(n int) {
	for i := range q.records[:n] {
		q.bytes -= q.records[i].size()
		q.records[i] = Record{} // its bytes are free now
	}
	q.records = q.records[n:]
	if len(q.records) == 0 {
		q.records = nil
	}
}

func (q *queue) full() bool {
	return len(q.records) >= windowRecords || q.bytes >= windowBytes
}

// settled says that waiting for more of this side will not help.
func (q *queue) settled() bool { return q.ended || q.full() }

// Source adds the next record of the source.
func (o *Ordered) Source(r Record) {
	o.result.SourceRecords++
	o.source.push(r)
	o.match()
}

// Target adds the next record of the target.
func (o *Ordered) Target(r Record) {
	o.result.TargetRecords++
	o.target.push(r)
	o.match()
}

// EndSource says that the source has no more records.
func (o *Ordered) EndSource() {
	o.source.ended = true
	o.match()
}

// EndTarget says that the target has no more records.
func (o *Ordered) EndTarget() {
	o.target.ended = true
	o.match()
}

// SourceFull and TargetFull say that a side is so far ahead of the other that
// more of it should not be read now.
func (o *Ordered) SourceFull() bool { return o.source.full() && !o.target.ended }

// TargetFull: see SourceFull.
func (o *Ordered) TargetFull() bool { return o.target.full() && !o.source.ended }

// Gone notes that retention removed the offsets from up to before to of one
// side before they were read.
func (o *Ordered) Gone(side string, from, to int64) {
	o.result.count(Gone, to-from)
	if len(o.result.Differences) < mostDifferences {
		o.result.Differences = append(o.result.Differences, Difference{Kind: Gone, SourceOffset: -1, TargetOffset: -1,
			Detail: fmt.Sprintf("retention removed the %s's offsets %d to %d before they were compared", side, from, to-1)})
	}
}

// Pending is how many records of the source the target has yet to match.
func (o *Ordered) Pending() int { return len(o.source.records) }

// Result is the outcome so far.
func (o *Ordered) Result() Result { return o.result }

// match takes equal records off both sides, and settles differences as soon
// as there is enough to see around them.
func (o *Ordered) match() {
	for {
		n := 0
		for n < len(o.source.records) && n < len(o.target.records) &&
			Diff(o.source.records[n], o.target.records[n]) == "" {
			o.recent.add(o.source.records[n].hash())
			n++
		}
		o.result.Equal += uint64(n)
		o.source.drop(n)
		o.target.drop(n)
		if len(o.source.records) == 0 && len(o.target.records) == 0 {
			return
		}
		// One side alone is only ahead, unless the other has ended.
		oneSided := len(o.source.records) == 0 || len(o.target.records) == 0
		if oneSided && !(len(o.source.records) == 0 && o.source.ended) && !(len(o.target.records) == 0 && o.target.ended) {
			return
		}
		if !oneSided && !(o.source.settled() && o.target.settled()) {
			return
		}
		o.settle()
	}
}

// ring remembers the hashes of the last records that matched, to know a
// repeated one.
type ring struct {
	hashes [4 * windowRecords]uint64
	next   int
	count  map[uint64]int
}

func (r *ring) add(h uint64) {
	if r.count == nil {
		r.count = make(map[uint64]int, len(r.hashes))
	}
	if old := r.hashes[r.next]; r.count[old] > 1 {
		r.count[old]--
	} else {
		delete(r.count, old)
	}
	r.hashes[r.next] = h
	r.count[h]++
	r.next = (r.next + 1) % len(r.hashes)
}

func (r *ring) has(h uint64) bool { return r.count[h] > 0 }
