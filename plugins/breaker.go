package plugins

import "time"

const (
	breakAt   = 5 // traps
	breakTime = 10 * time.Minute
)

// breaker opens after some traps within some time. The time of a trap is what
// counts, not when it is asked.
type breaker struct {
	traps [breakAt]time.Time // the last ones, a ring
	n     int
}

// trip notes a trap and says whether it was one too many.
func (b *breaker) trip(now time.Time) bool {
	b.traps[b.n%breakAt] = now
	b.n++
	oldest := b.traps[b.n%breakAt]
	return b.n >= breakAt && now.Sub(oldest) <= breakTime
}
