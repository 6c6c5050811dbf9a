package produce

import "time"

const (
	// tripSamples is how many answers it takes to believe that a link is long:
	// the first ones of a broker that has just started are slow, too.
	tripSamples = 16
	// tripSpan is how long an answer counts, at least.
	tripSpan = 5 * time.Second
)

// trips knows the length of a link: the shortest time of late between a request
// and its answer. A busy broker, or a busy machine, answers late on the average
// but not always; a long link does.
type trips struct {
	samples   int
	now, last time.Duration // the shortest in this span, and in the one before
	until     time.Time     // the end of this span
}

// add takes the time of one more answer.
func (t *trips) add(took time.Duration, at time.Time) {
	t.samples++
	if at.After(t.until) {
		t.last, t.now, t.until = t.now, took, at.Add(tripSpan)
	}
	t.now = min(t.now, took)
}

// length is 0 until it is known.
func (t *trips) length() time.Duration {
	switch {
	case t.samples < tripSamples:
		return 0
	case t.last == 0:
		return t.now
	}
	return min(t.now, t.last)
}
