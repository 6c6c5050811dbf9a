package fetch

import (
	"context"
	"errors"
	"fmt"
	"math/bits"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"mirror/sidecar/cluster"
	"mirror/sidecar/wire"
)

const (
	// longPoll is how long a broker may wait for something to send.
	longPoll = 500 * time.Millisecond
	// shortPoll is the same while a partition is paused: once it is not, nobody
	// can get at the request that the broker is holding.
	shortPoll = 10 * time.Millisecond
	// arrivalPoll is the same where partitions come over from the link of the quiet,
	// with data that waits.
	arrivalPoll = 50 * time.Millisecond
	// leastShare is the least that a partition may take of an answer that many
	// share.
	leastShare = 128 << 10
	// quietBytes is what an answer to a quiet link may hold. The budget has to
	// have that much room all the time.
	quietBytes = 64 << 10
	// crowd is how many partitions a link may have before those without data get
	// a link of their own.
	crowd = 32
	// quietAfter is how long nothing came of a quiet partition, activeFor how
	// lately something did of one that counts when an answer is shared out.
	quietAfter = 2 * time.Second
	activeFor  = time.Second
	// dialTime is how long a connection may take.
	dialTime = 10 * time.Second
)

// link fetches from one broker. Where a broker has many partitions there are two:
// a broker looks at each partition of a request, so those that have nothing now
// must not be part of every request for those that have.
type link struct {
	fetcher *Fetcher
	place
	wake   chan struct{}
	active int  // members that had data lately
	beside bool // there is one of the quiet, whose members may come over

	mu      sync.Mutex
	members map[*Partition]bool
	order   []*Partition // the members; made anew when they change
	first   int          // whose turn it is to be asked for first
	asked   *asked       // the request without an answer
	patrol  *time.Timer  // looks at asked, nil: it is not on its way
}

func (l *link) enter(p *Partition) {
	l.mu.Lock()
	l.members[p] = true
	l.order = nil
	l.mu.Unlock()
	l.signal()
}

func (l *link) leave(p *Partition) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.members, p)
	l.order = nil
}

func (l *link) signal() {
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// turn returns the members, each time another one first: only the first
// partition with data gets a batch that is over the limits, and those at the
// end get what the others leave.
func (l *link) turn() []*Partition {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.order == nil {
		l.order = make([]*Partition, 0, 2*len(l.members))
		for p := range l.members {
			l.order = append(l.order, p)
		}
		l.order = append(l.order, l.order...)
	}
	n := len(l.order) / 2
	if n == 0 {
		return nil
	}
	l.first = (l.first + 1) % n
	return l.order[l.first : l.first+n]
}

// run fetches until ctx ends.
func (l *link) run(ctx context.Context) {
	var conn *wire.Conn
	var asked session // on conn
	hangUp := func() {}
	defer func() { hangUp() }()
	defer l.endPatrol()
	for failures := 0; ctx.Err() == nil; {
		wants, held := l.wants()
		if len(wants) == 0 {
			select {
			case <-ctx.Done():
			case <-l.wake:
			}
			continue
		}
		var err error
		if conn == nil {
			if conn, err = l.dial(ctx); err == nil {
				// Sending may wait for the broker, for example while it throttles:
				// the end of ctx must end that.
				c, unhook := conn, context.AfterFunc(ctx, conn.Close)
				hangUp = func() { unhook(); c.Close() }
			}
		}
		if err == nil {
			err = l.fetch(ctx, conn, &asked, wants, held)
		}
		if err == nil {
			failures = 0
			continue
		}
		idle := false
		if conn != nil {
			idle = errors.Is(conn.Err(), wire.ErrIdle)
			hangUp()
			conn, asked = nil, session{}
		}
		if ctx.Err() != nil || idle && failures == 0 {
			continue
		}
		failures++
		l.fetcher.o.Failed(err)
		l.scatter(ctx, cluster.Backoff(failures))
	}
}

func (l *link) dial(ctx context.Context) (*wire.Conn, error) {
	addr, ok := l.fetcher.o.Leaders.Addr(l.node)
	if !ok {
		return nil, fmt.Errorf("source broker %d is not in the cluster's metadata", l.node)
	}
	ctx, cancel := context.WithTimeout(ctx, dialTime)
	defer cancel()
	return l.fetcher.o.Dial(ctx, addr)
}

// scatter gives the members to whoever leads them by then, after d.
func (l *link) scatter(ctx context.Context, d time.Duration) {
	l.fetcher.router.Stale()
	select {
	case <-ctx.Done():
		return
	case <-time.After(d):
	}
	for _, p := range l.turn() {
		p.shun(l)
		p.route()
	}
}

// wants says what to ask for; held, that a partition would be asked for were it
// not paused.
func (l *link) wants() (ws []want, held bool) {
	turn, now := l.turn(), time.Now()
	n := l.active
	if n == 0 {
		n = len(turn)
	}
	most, active := share(l.maxBytes(), n), 0
	for _, p := range turn {
		w, d := p.wanted(l, now, most)
		switch d {
		case nothing:
			continue
		case paused:
			held = true
			continue
		case ofQuiet:
			if !l.quiet && (l.beside || len(turn) > crowd) {
				l.beside = true
				p.retire(l)
				continue
			}
		case ofActive:
			active++
		}
		if leader, _, ok := l.fetcher.o.Leaders.Leader(p.topic, p.number); !ok || !p.home(l, leader) {
			p.part(l)
			continue
		}
		ws = append(ws, w)
	}
	l.active = active
	return ws, held
}

// maxBytes is what an answer may hold.
func (l *link) maxBytes() int {
	if l.quiet {
		return quietBytes
	}
	return l.fetcher.maxBytes()
}

// share is what one of n partitions with data may take of an answer of so many
// bytes: so much that one of few can fill it, as on a long link an answer is all
// that a round trip brings, and so little that each of many is in most answers, as
// what is fetched together is stored together. It is a power of two, so that it
// changes seldom: each change has to be told.
func share(bytes, n int) int32 {
	return int32(max(min(leastShare, bytes), 1<<(bits.Len(uint(bytes/max(n, 1)))-1)))
}

// fetch asks once, and hands out the answer.
func (l *link) fetch(ctx context.Context, conn *wire.Conn, s *session, wants []want, held bool) error {
	most := l.maxBytes()
	if err := l.fetcher.o.Frames.Reserve(ctx, most); err != nil {
		return err
	}
	req := l.request(conn, s, wants, held, most)
	l.asks(&asked{conn, wants, time.Now()})
	resp, frame, err := conn.Request(ctx, req)
	l.asks(nil)
	l.fetcher.o.Frames.Unreserve(most)
	if err != nil {
		return err
	}
	defer frame.Release()
	return l.answered(s, resp.(*kmsg.FetchResponse), frame)
}

// request asks for the wants.
func (l *link) request(conn *wire.Conn, s *session, wants []want, held bool, most int) *kmsg.FetchRequest {
	r := kmsg.NewPtrFetchRequest()
	r.MaxWaitMillis, r.MinBytes, r.MaxBytes = int32(longPoll.Milliseconds()), 1, int32(most)
	switch {
	case held:
		r.MaxWaitMillis = int32(shortPoll.Milliseconds())
	case l.beside:
		r.MaxWaitMillis = int32(arrivalPoll.Milliseconds())
	}
	r.Rack = l.fetcher.o.Rack
	if l.fetcher.o.Committed {
		r.IsolationLevel = 1
	}
	s.add(r, conn.MaxVersion(kmsg.Fetch.Int16()), wants, func(p *Partition) int32 {
		if _, epoch, ok := l.fetcher.o.Leaders.Leader(p.topic, p.number); ok {
			return epoch
		}
		return -1
	})
	return r
}
