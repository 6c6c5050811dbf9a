package plugins

import (
	"math/rand/v2"
	"time"
)

// clock is what a guest takes for the time. It stands still during a call but for a
// little at each look, so that a call with the same frame does the same.
type clock struct {
	wallTime time.Time
	began    time.Time     // when the monotonic clock was 0
	mono     time.Duration // what that shows
}

const look = time.Microsecond

// start sets the clock for a call.
func (c *clock) start(now time.Time) {
	c.wallTime = now
	c.mono = max(c.mono, now.Sub(c.began))
}

func (c *clock) step(d time.Duration) {
	c.wallTime = c.wallTime.Add(d)
	c.mono += d
}

func (c *clock) wall() (sec int64, nsec int32) {
	c.step(look)
	return c.wallTime.Unix(), int32(c.wallTime.Nanosecond())
}

func (c *clock) nano() int64 {
	c.step(look)
	return int64(c.mono)
}

// sleep moves the clock on and returns at once.
func (i *instance) sleep(ns int64) {
	i.look()
	i.clock.step(time.Duration(max(ns, 0)))
}

// longestLook is how much of the time between two looks counts. The work between
// them takes far less, so more means that the process did not run: it was stopped,
// or others had the processor, which is not the plugin's doing.
const longestLook = 50 * time.Millisecond

// look ends the call if its time is over, or nobody wants it any more.
func (i *instance) look() {
	if err := i.caller.Err(); err != nil {
		panic(err)
	}
	now := time.Now()
	i.used += min(now.Sub(i.looked), longestLook)
	i.looked = now
	if i.used > i.limit {
		panic(errDeadline)
	}
}

// noise is a guest's source of random numbers, the same in every instance.
type noise struct {
	i *instance
	r *rand.ChaCha8
}

func newNoise(i *instance) *noise { return &noise{i, rand.NewChaCha8([32]byte{})} }

// Read fills b. It looks at the clock, for b may be all of the guest's memory.
func (n *noise) Read(b []byte) (int, error) {
	for at := 0; at < len(b); at += page {
		n.i.look()
		n.r.Read(b[at:min(at+page, len(b))])
	}
	return len(b), nil
}
