package produce

import (
	"errors"
	"time"

	"mirror/sidecar/batch"
)

const (
	// rememberedFor is how young the records of a batch must be for its leader to
	// be trusted to remember it. Brokers forget a producer by the timestamp of the
	// last batch that they have of it (producer.id.expiration.ms): a day after it
	// by default, when they next look, which is every ten minutes and at each load
	// of the log. A broker may be set to forget sooner, but no sooner than
	// producers try (delivery.timeout.ms, two minutes by default), and its clock
	// may be another one than that of whoever made the records. What is trusted too
	// little costs a look at the target's tail, and no more than that.
	rememberedFor = 5 * time.Minute
	// knownFor is how long a leader is trusted to know a producer of which it has
	// heard nothing.
	knownFor = time.Minute
	// agedKnownFor is the same where the last batch is not young.
	agedKnownFor = time.Second
)

// Why the owner must look at what the target holds.
var (
	// ErrAged: a batch may be stored, and its records are so old that the leader may
	// have forgotten its producer. Sent again it could be stored again.
	ErrAged = errors.New("it may be stored, and its records are too old for the target to tell a resend from something new")
	// ErrOvertaken: a batch is stored although one before it is not, as only a
	// leader that does not know the producer stores it.
	ErrOvertaken = errors.New("the target has stored a batch without the one before it: it has forgotten the producer meanwhile")
)

// aged says that the leader may have forgotten the producer of b, if b is the
// last that it has of it.
func aged(b batch.Batch) bool { return agedAt(b.MaxTimestamp()) }

// agedAt is aged for a largest timestamp in milliseconds.
func agedAt(timestamp int64) bool { return time.Since(time.UnixMilli(timestamp)) > rememberedFor }

// doubt is why what was sent must not be sent again as it is; nil: it may, for the
// leader either knows what it has stored, or has stored nothing of it.
func (p *Partition) doubt() error {
	missing, may, old := false, false, false
	for _, s := range p.sent {
		switch {
		case s.stored && missing:
			return ErrOvertaken
		case s.stored:
		case s.unsure:
			may = true
		default:
			missing = true
			continue
		}
		old = old || aged(s.Batch)
	}
	if may && old {
		return ErrAged
	}
	return nil
}

// overtaken says that a batch behind s is stored before it.
func (p *Partition) overtaken(s *sent) bool {
	behind := false
	for _, x := range p.sent {
		if behind && x.stored && x.base >= 0 && x.base < s.base {
			return true
		}
		behind = behind || x == s
	}
	return false
}

// trusts says whether a leader that has nothing on its way to it still knows the
// producer.
func (p *Partition) trusts() bool {
	span := knownFor
	if agedAt(p.knownBy) {
		span = agedKnownFor
	}
	return time.Since(p.knownAt) <= span
}

// lose stops because what the target holds has to be looked at.
func (p *Partition) lose(why error) {
	p.stop()
	p.owner.Lost(why)
}
