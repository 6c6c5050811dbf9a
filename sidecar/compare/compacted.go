package compare

import (
	"cmp"
	"slices"
)

// Compacted compares two logs that a cleaner may have been through, at any
// time and on either side: what has to agree is what it always keeps, the last
// record of each key, and the order of these records among themselves. A key
// whose last record is a tombstone may be absent on one side. Records without
// key cannot be compacted and are not expected here; they count as one key.
// Memory grows with the number of keys, not of records. The zero value is
// ready. It is not safe for concurrent use.
type Compacted struct {
	source, target lastRecords
	result         Result // the counts of records only
}

type lastRecords map[string]*lastPair

// lastPair is the last record of a key and the hash that stands for it.
type lastPair struct {
	record Record
	hash   uint64
}

func (l *lastRecords) add(r Record) {
	if *l == nil {
		*l = lastRecords{}
	}
	key := keyOf(r)
	p := (*l)[key]
	if p == nil {
		p = &lastPair{}
		(*l)[key] = p
	}
	p.record = r
	p.hash = r.hash()
}

// keyOf keeps null and empty keys apart.
func keyOf(r Record) string {
	if r.Key == nil {
		return "null"
	}
	return "=" + string(r.Key)
}

// Source adds the next record of the source.
func (c *Compacted) Source(r Record) { c.result.SourceRecords++; c.source.add(clone(r)) }

// Target adds the next record of the target.
func (c *Compacted) Target(r Record) { c.result.TargetRecords++; c.target.add(clone(r)) }

// clone gives the record bytes of its own, so that a key seldom written does
// not hold on to the fetch response it came in.
func clone(r Record) Record {
	r.Key = slices.Clone(r.Key)
	r.Value = slices.Clone(r.Value)
	r.Headers = slices.Clone(r.Headers)
	for i := range r.Headers {
		r.Headers[i].Value = slices.Clone(r.Headers[i].Value)
	}
	return r
}

// Pending is how many keys of the source the target does not agree with now.
func (c *Compacted) Pending() int {
	n := 0
	for key, s := range c.source {
		t := c.target[key]
		if t == nil && s.record.Value == nil || t != nil && t.hash == s.hash {
			continue
		}
		n++
	}
	return n
}

// Result compares the last records as they are now.
func (c *Compacted) Result() Result {
	result := c.result
	result.Compacted = true
	var both []string // keys that agree
	for key, s := range c.source {
		t := c.target[key]
		switch {
		case t == nil && s.record.Value == nil: // the target's cleaner dropped the tombstone
			result.Equal++
		case t == nil:
			result.add(Difference{Kind: Missing, SourceOffset: s.record.Offset, TargetOffset: -1, Detail: "last record of key " + show(s.record.Key)})
		case t.hash != s.hash:
			result.add(Difference{Kind: Changed, SourceOffset: s.record.Offset, TargetOffset: t.record.Offset,
				Detail: "last record of key " + show(s.record.Key) + ": " + Diff(s.record, t.record)})
		default:
			both = append(both, key)
		}
	}
	for key, t := range c.target {
		if c.source[key] == nil && t.record.Value != nil {
			result.add(Difference{Kind: Unexpected, SourceOffset: -1, TargetOffset: t.record.Offset, Detail: "last record of key " + show(t.record.Key)})
		}
	}
	slices.SortFunc(both, func(a, b string) int {
		return cmp.Compare(c.source[a].record.Offset, c.source[b].record.Offset)
	})
	last := int64(-1)
	for _, key := range both {
		s, t := c.source[key].record, c.target[key].record
		if t.Offset < last {
			result.add(Difference{Kind: Reordered, SourceOffset: s.Offset, TargetOffset: t.Offset, Detail: "last record of key " + show(s.Key)})
			continue
		}
		last = t.Offset
		result.Equal++
	}
	slices.SortFunc(result.Differences, func(a, b Difference) int {
		return cmp.Or(cmp.Compare(a.SourceOffset, b.SourceOffset), cmp.Compare(a.TargetOffset, b.TargetOffset))
	})
	return result
}
