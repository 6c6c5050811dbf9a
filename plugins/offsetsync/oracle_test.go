package offsetsync

import (
	"fmt"
	"maps"
	"slices"

	"mirror/abi"
)

// oracle is what is known of a partition, a plain list of source offsets, and the
// rules of translation as plain as they can be said.
type oracle struct {
	at      []what
	covered int64           // everything before it was told, if anything from the last unknown on was; -1: nothing was told
	marks   map[int64]int64 // source offsets of which it is known where on the target one is behind the last record before them
	first   int64           // the first offset of which anything was told
	floor   int64           // where on the target all from first on is, or after it; -1: unknown
}

// what has become of a source offset.
type what struct {
	kind kind
	dst  int64
}

type kind byte

const (
	unknown kind = iota
	empty        // it left nothing on the target
	record       // it is stored at dst
	point        // an earlier mirror stored it at dst, and maybe once more later
)

// answer is a translation.
type answer struct {
	offset  int64
	outcome abi.Outcome
	reason  abi.Reason
}

func (a answer) String() string {
	return fmt.Sprintf("%s %d (%d)", [...]string{"none", "exact", "bound"}[a.outcome], a.offset, a.reason)
}

// noRecord is the record that an answer goes by which goes by none.
const noRecord = -1

func exact(offset int64) answer { return answer{offset, abi.Exact, abi.NoReason} }

// bound is one behind the last record that is known; before the first one, all there is.
func bound(offset int64, why abi.Reason) answer {
	switch offset {
	case -1:
		return answer{-1, abi.NoOffset, abi.BeforeFirst}
	case 0:
		why = abi.BeforeFirst
	}
	return answer{offset, abi.Bound, why}
}

func newOracle() *oracle { return &oracle{covered: -1, marks: map[int64]int64{}, floor: -1} }

func clones(all []*oracle) (copies []*oracle) {
	for _, o := range all {
		c := *o
		c.at, c.marks = slices.Clone(o.at), maps.Clone(o.marks)
		copies = append(copies, &c)
	}
	return copies
}

func (o *oracle) kind(x int64) kind {
	if x < 0 || x >= int64(len(o.at)) {
		return unknown
	}
	return o.at[x].kind
}

// tell says what has become of a range.
func (o *oracle) tell(k kind, first, last, dst int64) {
	o.forget(first)
	if k != empty {
		o.rewind(dst)
	}
	o.begin(first, -1)
	for x := first; x <= last; x++ {
		for int64(len(o.at)) <= x {
			o.at = append(o.at, what{})
		}
		o.at[x] = what{k, dst + x - first}
	}
	o.covered = last + 1
}

// mixed says that some of a range were stored, and where the first and last of them.
func (o *oracle) mixed(first, last, dst, dstLast int64) {
	o.forget(first)
	o.rewind(dst)
	o.begin(first, dst)
	o.marks[last+1], o.covered = dstLast+1, last+1
}

// began says that the partition begins at an offset, with an empty target.
func (o *oracle) began(next, logStart int64) {
	if o.covered >= 0 {
		return
	}
	o.begin(0, 0)
	if next <= max(logStart, 0) {
		o.tell(empty, 0, next-1, 0)
	}
	o.covered, o.marks[next] = next, 0
}

func (o *oracle) begin(first, floor int64) {
	if o.covered < 0 {
		o.first, o.floor = first, floor
		o.covered = first
	}
}

// forget: what is known of the offsets from one on is void.
func (o *oracle) forget(from int64) {
	if from >= o.covered {
		return
	}
	maps.DeleteFunc(o.marks, func(x, _ int64) bool { return x >= from })
	o.at = o.at[:min(int64(len(o.at)), from)]
	if from <= o.first {
		*o = *newOracle()
		return
	}
	for o.covered = from; o.covered > o.first && o.kind(o.covered-1) == unknown; o.covered-- {
		if _, ok := o.marks[o.covered]; ok {
			break
		}
	}
}

// rewind: the target has lost what it had from an offset on, for something else is
// stored there.
func (o *oracle) rewind(dst int64) {
	for x, w := range o.at {
		if (w.kind == record || w.kind == point) && w.dst >= dst {
			o.forget(int64(x))
			return
		}
	}
}

// last is where on the target one is behind the last record before an offset, and by
// what that is known: by that record, or by a mark.
func (o *oracle) last(before int64) (dst int64, by kind, at int64) {
	for x := before; x >= o.first; x-- {
		if dst, ok := o.marks[x]; ok {
			return dst, record, noRecord
		}
		if k := o.kind(x - 1); k == record || k == point {
			return o.at[x-1].dst + 1, k, x - 1
		}
	}
	if before < o.first {
		return -1, unknown, noRecord
	}
	return o.floor, unknown, noRecord
}

// translate is what a group is told that has read up to an offset, where everything
// up to position is copied; and the record that it goes by: the one that it goes to, or
// behind.
func (o *oracle) translate(offset, position int64) (answer, int64) {
	if o.covered < 0 {
		return answer{-1, abi.NoOffset, abi.NotKnown}, noRecord
	}
	for x := offset; x < o.covered; x++ {
		switch o.kind(x) {
		case record:
			return exact(o.at[x].dst), x
		case point:
			return bound(o.at[x].dst, abi.BeforeFirst), x
		case unknown:
			dst, k, at := o.last(x)
			if k == point {
				return bound(dst, abi.BeforeFirst), at
			}
			return bound(dst, abi.InUnknown), at
		}
	}
	dst, by, at := o.last(o.covered)
	sure := by == record && position < o.covered && offset <= o.covered
	for x := o.covered; sure; x-- { // only what is empty since that record
		if _, ok := o.marks[x]; ok || o.kind(x-1) == record {
			break
		}
		sure = o.kind(x-1) == empty
	}
	switch {
	case sure:
		return exact(dst), at
	case offset > max(o.covered, position+1):
		return bound(dst, abi.Ahead), at
	case by == point:
		return bound(dst, abi.BeforeFirst), at
	}
	return bound(dst, abi.InUnknown), at
}

// has says whether all records of a run are where it says.
func (o *oracle) has(r abi.Run) bool {
	for x := r.First; x <= r.Last(); x++ {
		if k := o.kind(x); k != record && k != point || o.at[x].dst != r.Target+x-r.First {
			return false
		}
	}
	return true
}
