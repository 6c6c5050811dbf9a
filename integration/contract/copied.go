package contract

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/twmb/franz-go/pkg/kgo"
)

// Copied is a source partition beside its copy, as consumers that read committed see
// them: what a group loses and repeats that goes on at the copy.
type Copied struct {
	source []int64 // offsets of the records
	copies []copyOf
	end    int64 // of the target's log
}

// copyOf is a record of the target.
type copyOf struct {
	offset int64
	record int // index of the record in source; -1: none of them
}

// Copied reads a topic's partitions and the flow's copies of them.
func (f *Flow) Copied(topic string) []Copied {
	f.e.Helper()
	return f.e.Copied(f.Source, topic, f.Target, f.TargetName(topic))
}

// Copied reads the partitions of a topic, no two of whose records may be alike, and
// their copies.
func (e *Env) Copied(source *Cluster, topic string, target *Cluster, name string) (all []Copied) {
	e.Helper()
	from, to, ends := e.Read(source, topic), e.Read(target, name), e.Ends(target, name)
	for p := range from {
		c := Copied{end: ends[p]}
		index := map[string]int{}
		for i, r := range from[p] {
			c.source = append(c.source, r.Offset)
			index[identity(r)] = i
		}
		if len(index) < len(from[p]) {
			e.Fatalf("%s/%d has records that are alike: nothing can be said of its copy", topic, p)
		}
		for _, r := range to[p] {
			i, ok := index[identity(r)]
			if !ok {
				i = -1
			}
			c.copies = append(c.copies, copyOf{r.Offset, i})
		}
		all = append(all, c)
	}
	return all
}

// Empty says that the source has no record.
func (c Copied) Empty() bool { return len(c.source) == 0 }

// Runs are how many runs of offsets without a gap the source's records make.
func (c Copied) Runs() (n int) {
	for i, at := range c.source {
		if i == 0 || at != c.source[i-1]+1 {
			n++
		}
	}
	return n
}

// Misplaced says what is wrong with a run: that the source's offsets from first to last
// are records, and these one by one the records of the target from an offset on. "" says
// that it is so.
func (c Copied) Misplaced(first, last, target int64) string {
	i, _ := slices.BinarySearch(c.source, first)
	j, _ := slices.BinarySearchFunc(c.copies, target, func(r copyOf, at int64) int { return cmp.Compare(r.offset, at) })
	for n := range last - first + 1 {
		switch at := int(n); {
		case i+at >= len(c.source) || c.source[i+at] != first+n:
			return fmt.Sprintf("the source has no record at %d", first+n)
		case j+at >= len(c.copies) || c.copies[j+at] != copyOf{target + n, i + at}:
			return fmt.Sprintf("the record at %d is not at %d on the target", first+n, target+n)
		}
	}
	return ""
}

// identity tells a record from all others of its partition.
func identity(r *kgo.Record) string {
	return fmt.Sprintf("%d %q %q", r.Timestamp.UnixMilli(), r.Key, r.Value)
}

// Moved is what a group loses and repeats by going on at the target, in records.
type Moved struct {
	Lost     int
	Repeated int
	Ahead    int64 // it is at so many offsets past the end of the copy: loses what will be there
}

// Moved compares what a group that has committed an offset of the source still has to
// read with what it reads from an offset of the target on.
func (c Copied) Moved(committed, at int64) (m Moved) {
	m.Ahead = max(0, at-c.end)
	next, _ := slices.BinarySearch(c.source, committed)
	seen := make([]bool, len(c.source))
	for i := len(c.copies) - 1; i >= 0 && c.copies[i].offset >= at; i-- {
		switch r := c.copies[i].record; {
		case r < 0: // nobody's loss
		case r < next || seen[r]:
			m.Repeated++
		default:
			seen[r] = true
		}
	}
	for _, s := range seen[next:] {
		if !s {
			m.Lost++
		}
	}
	return m
}

func (m Moved) String() string {
	var parts []string
	if m.Lost > 0 {
		parts = append(parts, fmt.Sprintf("%d records are lost", m.Lost))
	}
	if m.Repeated > 0 {
		parts = append(parts, fmt.Sprintf("%d come again", m.Repeated))
	}
	if m.Ahead > 0 {
		parts = append(parts, fmt.Sprintf("it is %d past the end", m.Ahead))
	}
	if parts == nil {
		return "goes on exactly"
	}
	return strings.Join(parts, ", ")
}
