package fetch

import (
	"errors"
	"math/bits"
	"sync"
	"time"

	"mirror/sidecar/cluster"
)

// preferredFor is how long a replica is read that the leader has named. (The
// Java client asks again after metadata.max.age.ms, which is as long.)
const preferredFor = 5 * time.Minute

// Partition is a source partition: what is wanted of it next. Its methods may be
// called from any goroutine.
type Partition struct {
	fetcher *Fetcher
	owner   Owner
	topic   string
	number  int32

	mu         sync.Mutex
	link       *link // who fetches it; nil: nobody yet
	id         [16]byte
	generation uint64
	offset     int64 // the next one wanted
	epoch      int32 // leader epoch of the batch before it, -1: not known
	paused     bool
	stopped    bool
	failures   int
	retryAt    time.Time
	retry      *time.Timer
	preferred  int32 // replica to read, -1: the leader
	until      time.Time
	dataAt     time.Time // when data came last, or fetching began
	quiet      bool      // for a link of those that have none
	fresh      bool      // nothing was answered since fetching began
	most       int32     // what it may take of an answer, 0: not decided
	largest    int32     // the largest batch so far, rounded up to a power of two
}

// Fetching says whether the partition is asked for: it is neither stopped nor
// paused.
func (p *Partition) Fetching() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.link != nil && !p.stopped && !p.paused
}

// Start is how fetching begins.
type Start struct {
	// Generation comes back in Data.
	Generation uint64
	// TopicID is zero where the source has no topic ids.
	TopicID [16]byte
	// Offset is the first one wanted.
	Offset int64
	// LeaderEpoch is that of the batch before Offset, -1: not known. With it the
	// broker notices a log that was truncated or has been replaced.
	LeaderEpoch int32
	// After is the pause before the first request.
	After time.Duration
}

// Start begins to fetch, or begins anew, unless a later generation has begun.
// What an earlier request brings is dropped.
func (p *Partition) Start(s Start) {
	p.mu.Lock()
	if s.Generation < p.generation {
		p.mu.Unlock()
		return
	}
	p.id, p.generation, p.offset, p.epoch = s.TopicID, s.Generation, s.Offset, s.LeaderEpoch
	p.stopped, p.paused, p.failures, p.preferred = false, false, 0, -1
	p.dataAt, p.quiet, p.fresh, p.most = time.Now(), false, true, 0
	p.wait(s.After)
	p.mu.Unlock()
	p.route()
}

// route has p join the link of its leader, once it has one.
func (p *Partition) route() {
	p.mu.Lock()
	stopped := p.stopped
	p.mu.Unlock()
	if !stopped {
		p.fetcher.router.Route(p)
	}
}

// Stop ends fetching until the Start of this generation or a later one, unless a
// later one has begun.
func (p *Partition) Stop(generation uint64) {
	p.fetcher.mu.Lock() // nobody joins meanwhile
	defer p.fetcher.mu.Unlock()
	p.mu.Lock()
	if generation < p.generation {
		p.mu.Unlock()
		return
	}
	p.generation = generation
	p.stop()
	l := p.link
	p.link = nil
	p.mu.Unlock()
	p.fetcher.router.Forget(p)
	if l != nil {
		l.leave(p)
	}
}

func (p *Partition) stop() {
	p.stopped = true
	p.wait(0)
}

// Pause keeps the partition out of the next requests, until Resume.
func (p *Partition) Pause() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.paused = true
}

// Resume ends a Pause.
func (p *Partition) Resume() {
	p.mu.Lock()
	was, l := p.paused, p.link
	p.paused = false
	p.mu.Unlock()
	if was && l != nil {
		l.signal()
	}
}

// join makes l the one that fetches p.
func (p *Partition) join(l *link) {
	p.mu.Lock()
	old := p.link
	if p.stopped {
		l = old
	}
	p.link = l
	p.mu.Unlock()
	if old == l {
		if l != nil {
			l.signal()
		}
		return
	}
	if old != nil {
		old.leave(p)
	}
	l.enter(p)
}

// part ends l's fetching of p, which has to look for its leader.
func (p *Partition) part(l *link) {
	p.fetcher.mu.Lock()
	p.mu.Lock()
	if p.link == l {
		p.link = nil
	}
	p.mu.Unlock()
	l.leave(p)
	p.fetcher.mu.Unlock()
	p.route()
}

var errNoLeader = errors.New("the source partition has no leader")

// leaderless counts that there is no broker to fetch from.
func (p *Partition) leaderless() {
	p.mu.Lock()
	p.failures++
	n, stopped := p.failures, p.stopped
	p.mu.Unlock()
	if !stopped {
		p.owner.Failed(errNoLeader, n)
	}
}

// want is what a request asks for.
type want struct {
	p          *Partition
	id         [16]byte
	generation uint64
	offset     int64
	epoch      int32
	most       int32 // bytes
}

// demand is whether a link asks for a partition.
type demand int

const (
	nothing  demand = iota // not now
	paused                 // it would, were it not paused
	ofActive               // it does, and data came lately
	ofIdle                 // it does
	ofQuiet                // it does, and nothing came for a while
)

// wanted says what l is to ask for, where share is what a partition with data may
// take of the answer. A partition without keeps its share: to change it would have
// to be told.
func (p *Partition) wanted(l *link, now time.Time, share int32) (want, demand) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.link != l || p.stopped || now.Before(p.retryAt) {
		return want{}, nothing
	}
	if p.paused {
		return want{}, paused
	}
	d := ofIdle
	switch since := now.Sub(p.dataAt); {
	case since < activeFor:
		d = ofActive
	case since >= quietAfter:
		d = ofQuiet
	}
	if d == ofActive || p.most == 0 {
		p.most = max(share, p.largest)
	}
	return want{p: p, id: p.id, generation: p.generation, offset: p.offset, epoch: p.epoch, most: p.most}, d
}

func (p *Partition) isQuiet() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.quiet
}

// retire leaves l for the link of the quiet, until data comes.
func (p *Partition) retire(l *link) {
	p.mu.Lock()
	p.quiet = true
	p.mu.Unlock()
	p.fetcher.arrive(l.node, p)
}

// home is true where l may fetch p: it is the leader's link, or that of the
// replica the leader has named, for as long as that holds.
func (p *Partition) home(l *link, leader int32) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.preferred == l.node && time.Now().Before(p.until) {
		return true
	}
	p.preferred = -1
	return leader == l.node
}

// shun goes back to the leader, when l's replica was preferred.
func (p *Partition) shun(l *link) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.preferred == l.node {
		p.preferred = -1
	}
}

// fetched moves on past what w brought, whose largest batch has so many bytes, of a
// log that ends there. It says whether w is still wanted.
func (p *Partition) fetched(w want, next int64, epoch int32, largest int, end int64) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.stopped || p.generation != w.generation {
		return false
	}
	p.failures = 0
	if next > p.offset {
		p.offset, p.epoch = next, epoch
	}
	if largest > 0 {
		p.dataAt, p.quiet = time.Now(), false
		p.largest = max(p.largest, 1<<bits.Len(uint(largest-1)))
	} else if p.fresh && end <= w.offset {
		p.dataAt = time.Time{} // it has none, and nobody has to wait to find out
	}
	p.fresh = false
	return true
}

// prefer reads the replica from now on.
func (p *Partition) prefer(node int32) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.preferred, p.until = node, time.Now().Add(preferredFor)
}

// failed has the partition wait before the next try and counts it. From a
// replica that was named it goes back to the leader.
func (p *Partition) failed(w want, err error) {
	p.mu.Lock()
	if p.stopped || p.generation != w.generation {
		p.mu.Unlock()
		return
	}
	p.failures++
	n := p.failures
	p.preferred = -1
	p.wait(cluster.Backoff(n))
	p.mu.Unlock()
	p.owner.Failed(err, n)
}

// gap stops the partition, unless a replica that may be behind said so.
func (p *Partition) gap(w want, g Gap, err error) {
	p.mu.Lock()
	if p.stopped || p.generation != w.generation {
		p.mu.Unlock()
		return
	}
	if p.preferred >= 0 {
		p.mu.Unlock()
		p.failed(w, err)
		return
	}
	p.stop()
	p.mu.Unlock()
	p.owner.Stopped(g)
}

// wait keeps the partition out of requests for d. The caller holds the lock.
func (p *Partition) wait(d time.Duration) {
	if p.retry != nil {
		p.retry.Stop()
		p.retry = nil
	}
	p.retryAt = time.Time{}
	if d > 0 {
		p.retryAt = time.Now().Add(d)
		p.retry = time.AfterFunc(d, p.route)
	}
}
