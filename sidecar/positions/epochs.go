package positions

import (
	"fmt"
	"strconv"
	"strings"
)

// epochsKept is how many leader epochs are remembered. An epoch is a change of
// leader, and a log that was truncated parts from the copied one in one of the
// last.
const epochsKept = 8

// Epochs is where the leader epochs of a source log began, the last few of those
// that have records. With it the offset where a truncated log parts from the one
// that was copied is found as followers find theirs (KIP-101), and not guessed. The
// zero value knows of none.
type Epochs struct {
	n  int
	at [epochsKept]epochStart // n of them, both numbers rising
}

type epochStart struct {
	epoch int32
	from  int64
}

// Seen adds that a batch of the epoch begins at the offset. What was seen there or
// later before is forgotten: the log is read again from there. An epoch that is
// not known (-1) or lower than the one before tells nothing.
func (e Epochs) Seen(epoch int32, offset int64) Epochs {
	if epoch < 0 {
		return e
	}
	e = e.UpTo(offset - 1)
	switch {
	case e.n > 0 && e.at[e.n-1].epoch >= epoch:
		return e
	case e.n == epochsKept:
		copy(e.at[:], e.at[1:])
		e.n--
	}
	e.at[e.n] = epochStart{epoch, offset}
	e.n++
	return e
}

// UpTo leaves out the epochs that begin after the offset.
func (e Epochs) UpTo(offset int64) Epochs {
	for e.n > 0 && e.at[e.n-1].from > offset {
		e.n--
		e.at[e.n] = epochStart{}
	}
	return e
}

// At is the epoch of the batch that holds the offset, -1: not known.
func (e Epochs) At(offset int64) int32 {
	if e = e.UpTo(offset); e.n > 0 {
		return e.at[e.n-1].epoch
	}
	return -1
}

// Below is the largest epoch with records that is not above the given one, and
// where it ended: the first offset of the next, -1 where that has not come. ok is
// false when none is known.
func (e Epochs) Below(epoch int32) (own int32, end int64, ok bool) {
	for i := e.n - 1; i >= 0; i-- {
		if e.at[i].epoch > epoch {
			continue
		}
		if i == e.n-1 {
			return e.at[i].epoch, -1, true
		}
		return e.at[i].epoch, e.at[i+1].from, true
	}
	return -1, -1, false
}

// String is how a position keeps them: "EPOCH@OFFSET", separated by commas.
func (e Epochs) String() string {
	var b strings.Builder
	for i, s := range e.at[:e.n] {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, "%d@%d", s.epoch, s.from)
	}
	return b.String()
}

// UnmarshalText reads what String wrote.
func (e *Epochs) UnmarshalText(text []byte) error {
	*e = Epochs{}
	if len(text) == 0 {
		return nil
	}
	var read Epochs
	for part := range strings.SplitSeq(string(text), ",") {
		epoch, from, _ := strings.Cut(part, "@")
		n, err := strconv.ParseInt(epoch, 10, 32)
		if err != nil {
			return fmt.Errorf("leader epochs: %w", err)
		}
		at, err := strconv.ParseInt(from, 10, 64)
		if err != nil {
			return fmt.Errorf("leader epochs: %w", err)
		}
		if n < 0 || at < 0 || read.n > 0 && (int32(n) <= read.at[read.n-1].epoch || at <= read.at[read.n-1].from) {
			return fmt.Errorf("leader epochs: %q comes out of turn", part)
		}
		read = read.Seen(int32(n), at)
	}
	*e = read
	return nil
}
