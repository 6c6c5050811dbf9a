package wire

import (
	"context"
	"fmt"
	"math/bits"
	"slices"
	"sync"
	"sync/atomic"
)

// Pool hands out frames and keeps the byte budget of a flow: the buffers of the frames that are held
// plus the bytes that are reserved for frames to come. Buffers that come back are kept for the next
// frame as long as all buffers together are at most a quarter over the budget, so that a busy pool
// allocates nothing: with all of it in use there are still some of the size that is wanted next. A Pool
// is safe for concurrent use.
type Pool struct {
	limit int64
	most  int64 // bytes of all buffers, handed out and idle

	mu       sync.Mutex
	inUse    int64 // bytes of all buffers handed out
	reserved int64
	waiting  []*waiter // first come, first served

	classes []class // by index of sizeClass
	idle    int64   // bytes of all buffers in classes
	clock   uint64  // counts calls of Get, to tell which class is out of use
}

// class is the buffers of one size that wait to be used again, the last one given back on top.
type class struct {
	free [][]byte
	used uint64 // Pool.clock when a frame of this class was last asked for
}

type waiter struct {
	n       int64
	granted chan struct{}
}

// NewPool returns a pool with a budget of limit bytes. The budget is kept by Reserve; Get never
// refuses.
func NewPool(limit int64) *Pool {
	return &Pool{limit: limit, most: limit + limit/4}
}

// Limit returns the budget in bytes.
func (p *Pool) Limit() int64 { return p.limit }

// InUse returns the memory of the frames that are handed out and not given back, in bytes: their
// buffers, which may be larger than they are. Reservations do not count.
func (p *Pool) InUse() int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.inUse
}

// Reserve waits, behind those that asked before, until n more bytes fit into the budget, and counts
// them as reserved until Unreserve. A request that is larger than the budget passes when nothing is
// in use or reserved. The error is that of ctx; then nothing is reserved.
func (p *Pool) Reserve(ctx context.Context, n int) error {
	if n < 0 {
		panic(fmt.Sprintf("wire: reserve %d bytes", n))
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	p.mu.Lock()
	if len(p.waiting) == 0 && p.fits(int64(n)) {
		p.reserved += int64(n)
		p.mu.Unlock()
		return nil
	}
	w := &waiter{n: int64(n), granted: make(chan struct{})}
	p.waiting = append(p.waiting, w)
	p.mu.Unlock()

	select {
	case <-w.granted:
		return nil
	case <-ctx.Done():
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if i := slices.Index(p.waiting, w); i >= 0 {
		p.waiting = slices.Delete(p.waiting, i, i+1)
	} else {
		p.reserved -= w.n // it was granted at the same moment
	}
	p.grant()
	return ctx.Err()
}

// Unreserve gives back n reserved bytes, usually once the frame that they were for has been handed
// out.
func (p *Pool) Unreserve(n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if n < 0 || int64(n) > p.reserved {
		panic(fmt.Sprintf("wire: unreserve %d bytes of %d", n, p.reserved))
	}
	p.reserved -= int64(n)
	p.grant()
}

func (p *Pool) fits(n int64) bool {
	taken := p.inUse + p.reserved
	return taken == 0 || taken+n <= p.limit
}

// grant lets those pass that wait in front and fit. p.mu is held.
func (p *Pool) grant() {
	for len(p.waiting) > 0 && p.fits(p.waiting[0].n) {
		w := p.waiting[0]
		p.waiting = slices.Delete(p.waiting, 0, 1)
		p.reserved += w.n
		close(w.granted)
	}
}

// Get returns a frame of n bytes with one holder, the caller. The contents are arbitrary: whatever
// was there before. It never waits and may overdraw the budget.
func (p *Pool) Get(n int) *Frame {
	index, size := sizeClass(n)
	p.mu.Lock()
	buf := p.take(index)
	if buf != nil {
		size = cap(buf)
	}
	p.inUse += int64(size)
	p.trim(0)
	p.mu.Unlock()
	if buf == nil {
		buf = make([]byte, size)
	}
	f := &Frame{pool: p, buf: buf[:n]}
	f.holders.Store(1)
	return f
}

// spareClasses is how many classes above the right one Get looks at: four classes double the size.
// Answers to fetches come in all sizes; were each to have a buffer of its own class, most of them
// would be new.
const spareClasses = 8

// take returns an idle buffer of the class or of one not much larger, or nil. p.mu is held.
func (p *Pool) take(index int) []byte {
	p.clock++
	if index < len(p.classes) {
		p.classes[index].used = p.clock
	}
	for i := index; i <= index+spareClasses && i < len(p.classes); i++ {
		c := &p.classes[i]
		if last := len(c.free) - 1; last >= 0 {
			buf := c.free[last]
			c.free[last] = nil
			c.free = c.free[:last]
			c.used = p.clock
			p.idle -= int64(cap(buf))
			return buf
		}
	}
	return nil
}

// put takes back a frame's buffer.
func (p *Pool) put(buf []byte) {
	buf = buf[:cap(buf)]
	p.mu.Lock()
	defer p.mu.Unlock()
	p.inUse -= int64(len(buf))
	p.keep(buf)
	p.grant()
}

// keep files buf for later use if there is room, at the cost of the classes longest out of use.
// p.mu is held.
func (p *Pool) keep(buf []byte) {
	index, size := sizeClass(len(buf))
	for len(p.classes) <= index {
		p.classes = append(p.classes, class{used: p.clock})
	}
	if !p.trim(int64(size)) {
		return
	}
	p.classes[index].free = append(p.classes[index].free, buf)
	p.idle += int64(size)
}

// trim gives up idle buffers until the rest, with what is in use and n bytes more, is no more than may
// be kept, and says whether it is. p.mu is held.
func (p *Pool) trim(n int64) bool {
	for p.inUse+p.idle+n > p.most {
		if p.idle == 0 {
			return false
		}
		c := &p.classes[p.stalest()]
		last := len(c.free) - 1
		p.idle -= int64(cap(c.free[last]))
		c.free[last] = nil
		c.free = c.free[:last]
	}
	return true
}

// stalest returns the class with idle buffers that nobody asked for the longest. p.mu is held,
// something is idle.
func (p *Pool) stalest() int {
	victim := -1
	for i := range p.classes {
		if len(p.classes[i].free) > 0 && (victim < 0 || p.classes[i].used < p.classes[victim].used) {
			victim = i
		}
	}
	return victim
}

// smallest is the size of the smallest buffer.
const smallest = 4 << 10

// sizeClass returns the class of a buffer that holds n bytes and the size of that class. Four
// classes double the size, so that at most a fifth of a buffer of more than the smallest size is
// left over.
func sizeClass(n int) (index, size int) {
	if n <= smallest {
		return 0, smallest
	}
	const octave = 4
	exponent := bits.Len(uint(n-1)) - 1 // the largest power of two below n
	base := 1 << exponent
	step := base / octave
	quarter := (n - base + step - 1) / step
	return (exponent-bits.Len(smallest-1))*octave + quarter, base + quarter*step
}

// Frame is a counted buffer. Whoever holds it may read Bytes and everything that points into them;
// the buffer is used for something else once the last holder has released it. Holders may be in
// different goroutines.
type Frame struct {
	pool    *Pool // nil: plain memory
	buf     []byte
	holders atomic.Int32
}

// newFrame returns a frame of n bytes from p, or of plain memory without a pool.
func newFrame(p *Pool, n int) *Frame {
	if p != nil {
		return p.Get(n)
	}
	f := &Frame{buf: make([]byte, n)}
	f.holders.Store(1)
	return f
}

// Bytes returns the buffer, which is valid while the caller holds the frame.
func (f *Frame) Bytes() []byte { return f.buf }

// Retain adds a holder. Only a holder may call it.
func (f *Frame) Retain() {
	if f.holders.Add(1) <= 1 {
		panic("wire: retain of a released frame")
	}
}

// Release ends one hold. The last one gives the buffer back; one more panics.
func (f *Frame) Release() {
	switch left := f.holders.Add(-1); {
	case left < 0:
		panic("wire: frame released more often than held")
	case left == 0 && f.pool != nil:
		f.pool.put(f.buf)
	}
}
