package compare

import (
	"fmt"
	"strings"
)

// Kind is a way in which the target differs from the source.
type Kind string

const (
	Missing    Kind = "missing"    // on the source only
	Repeated   Kind = "repeated"   // on the target once more
	Reordered  Kind = "reordered"  // on both, at another place
	Changed    Kind = "changed"    // at the same place, with other contents
	Unexpected Kind = "unexpected" // on the target only
	Gone       Kind = "gone"       // removed by retention before it could be compared
)

// Difference is one record, or a range of offsets that are gone.
type Difference struct {
	Kind         Kind
	SourceOffset int64 // -1: the record is not on the source
	TargetOffset int64 // -1: the record is not on the target
	Detail       string
}

func (d Difference) String() string {
	var b strings.Builder
	b.WriteString(string(d.Kind))
	if d.SourceOffset >= 0 {
		fmt.Fprintf(&b, ", source offset %d", d.SourceOffset)
	}
	if d.TargetOffset >= 0 {
		fmt.Fprintf(&b, ", target offset %d", d.TargetOffset)
	}
	if d.Detail != "" {
		b.WriteString(": " + d.Detail)
	}
	return b.String()
}

// mostDifferences bounds how many differences of a partition are kept with
// their contents; all are counted.
const mostDifferences = 10

// Result is the outcome for one partition.
type Result struct {
	Topic     string // on the source
	Target    string // its name on the target
	Partition int32
	// Compacted says that the last record of each key was compared, so that
	// Equal and the differences count keys, not records.
	Compacted bool
	// Records read on each side.
	SourceRecords, TargetRecords uint64
	Equal                        uint64
	Different                    uint64 // all kinds together
	Kinds                        map[Kind]uint64
	Differences                  []Difference // the first ten
	// Incomplete says why the partition was not read to its end; "": it was.
	Incomplete string
}

// OK says that the partition was read to its end and nothing differs.
func (r *Result) OK() bool { return r.Different == 0 && r.Incomplete == "" }

func (r *Result) add(d Difference) {
	r.count(d.Kind, 1)
	if len(r.Differences) < mostDifferences {
		r.Differences = append(r.Differences, d)
	}
}

func (r *Result) count(k Kind, n int64) {
	if r.Kinds == nil {
		r.Kinds = map[Kind]uint64{}
	}
	r.Kinds[k] += uint64(n)
	r.Different += uint64(n)
}

// Report is the outcome for all partitions, in the order of the topics asked
// for, then by partition.
type Report []Result

// OK says that everything was read and nothing differs.
func (r Report) OK() bool {
	for i := range r {
		if !r[i].OK() {
			return false
		}
	}
	return true
}

// Equal counts what was found equal in all partitions.
func (r Report) Equal() uint64 {
	var n uint64
	for i := range r {
		n += r[i].Equal
	}
	return n
}

// String has one line for each partition that is not OK, followed by its
// first differences; "" when the report is OK.
func (r Report) String() string {
	var b strings.Builder
	for i := range r {
		p := &r[i]
		if p.OK() {
			continue
		}
		unit := "records"
		if p.Compacted {
			unit = "keys"
		}
		fmt.Fprintf(&b, "%s/%d: %d %s equal, %d different", p.Topic, p.Partition, p.Equal, unit, p.Different)
		if p.Incomplete != "" {
			b.WriteString(", incomplete: " + p.Incomplete)
		}
		b.WriteString("\n")
		for _, d := range p.Differences {
			b.WriteString("  " + d.String() + "\n")
		}
		if more := p.Different - uint64(len(p.Differences)); p.Different > uint64(len(p.Differences)) {
			fmt.Fprintf(&b, "  and %d more\n", more)
		}
	}
	return b.String()
}
