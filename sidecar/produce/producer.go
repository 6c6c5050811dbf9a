// Package produce stores batches on the target: raw, idempotent, in order, up to
// five of a partition on their way at once. What waits for the same broker
// shares requests.
//
// A Partition holds what waits and decides what goes next; a link, one for each
// broker, carries it there and brings the answers back.
package produce

import (
	"context"
	"sync"
	"sync/atomic"

	"mirror/sidecar/cluster"
	"mirror/sidecar/wire"
)

// Options of a Producer.
type Options struct {
	// Leaders of the target. The producer makes it follow its topics' leaders,
	// but which topics it follows is up to the caller.
	Leaders *cluster.Leaders
	// Dial connects to a broker.
	Dial func(ctx context.Context, addr string) (*wire.Conn, error)
	// Frames holds merged and split batches.
	Frames *wire.Pool
	// MaxDecompressed is how large the records of a batch that must be split may
	// be, in bytes.
	MaxDecompressed int
	// Failed is told of connections that cannot be made.
	Failed func(error)
}

// Producer sends the batches of its partitions to the target's brokers.
type Producer struct {
	o        Options
	router   *cluster.Router[*Partition]
	aside    *wire.Pool // of batches that may be stored, while their leader is out of reach
	sessions atomic.Int64
	turn     atomic.Uint32 // of a connection to go to the next slow partition

	mu    sync.Mutex
	ctx   context.Context // of Run, nil before it
	ended bool
	links map[route]*link
	wg    sync.WaitGroup // of links
}

// New makes a producer. It sends nothing until Run.
func New(o Options) *Producer {
	p := &Producer{o: o, aside: wire.NewPool(0), links: map[route]*link{}}
	p.router = cluster.NewRouter(o.Leaders, cluster.RouterCalls[*Partition]{
		Name:       func(q *Partition) (string, int32) { return q.topic, q.number },
		Arrive:     p.arrive,
		Leaderless: func(q *Partition) { q.unreachable(errNoLeader, false) },
		Failed:     o.Failed,
	})
	return p
}

// Partition makes the target partition. It takes nothing until its Reset.
func (p *Producer) Partition(topic string, number int32, owner Owner) *Partition {
	return &Partition{producer: p, owner: owner, topic: topic, number: number, sentTo: -1, stopped: true}
}

// Run sends until ctx ends, and returns when all connections are closed.
func (p *Producer) Run(ctx context.Context) {
	p.mu.Lock()
	p.ctx = ctx
	p.mu.Unlock()
	p.router.Run(ctx)
	p.mu.Lock()
	p.ended = true // and nobody is on his way to a new link
	p.mu.Unlock()
	p.wg.Wait()
}

// route is a way to a broker: a connection that is shared (0), or one of those for
// partitions that are slow.
type route struct {
	node  int32
	aside uint32
}

// arrive has q's link to the node look at it.
func (p *Producer) arrive(node int32, q *Partition) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ctx == nil || p.ended {
		return
	}
	to := route{node, q.aside.Load()}
	l := p.links[to]
	if l == nil {
		l = &link{producer: p, route: to, wake: make(chan struct{}, 1), queued: map[*Partition]bool{}}
		p.links[to] = l
		ctx := p.ctx
		p.wg.Go(func() { l.run(ctx) })
	}
	l.add(q)
}

// SetAside is the bytes that are held outside of the budget, for partitions whose
// leaders are out of reach: at most as much as the budget again.
func (p *Producer) SetAside() int64 { return p.aside.InUse() }

// kick has the leader's link look at the partition, once it has a leader.
func (p *Partition) kick() { p.producer.router.Route(p) }
