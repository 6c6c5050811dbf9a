// Package fetch reads the source: one long poll for each broker, for all the
// partitions it leads, whose answer's batches are handed on in the frame they
// came in.
//
// A Partition knows what is wanted next; a link, one for each broker, asks for
// what its partitions want.
package fetch

import (
	"context"
	"sync"

	"github.com/twmb/franz-go/pkg/kmsg"

	"mirror/sidecar/cluster"
	"mirror/sidecar/wire"
)

// Options of a Fetcher.
type Options struct {
	// Leaders of the source. Which topics it follows is up to the caller.
	Leaders *cluster.Leaders
	// Dial connects to a broker. The answers must be in Frames.
	Dial func(ctx context.Context, addr string) (*wire.Conn, error)
	// Frames is the budget: nothing is asked for while it is used up.
	Frames *wire.Pool
	// Rack is the client's, to be sent to the closest replica (KIP-392).
	Rack string
	// Committed leaves out what is beyond the last stable offset, and has the
	// brokers list aborted transactions.
	Committed bool
	// Failed is told of connections that fail.
	Failed func(error)
}

// Data is what a partition's part of an answer holds.
type Data struct {
	Generation uint64
	// Offset is what was asked for: the first offset wanted.
	Offset int64
	// LeaderEpoch is that of the batch before Offset, -1: not known.
	LeaderEpoch int32
	// Set is the record set: whole batches, perhaps a truncated one at the end.
	Set []byte
	// Frame holds Set. One count belongs to the receiver.
	Frame *wire.Frame
	// Aborted are the aborted transactions of Set, as the broker lists them.
	Aborted []kmsg.FetchResponseTopicPartitionAbortedTransaction
}

// Owner is told what is fetched for a partition. Its methods are called by the
// goroutine that fetches: they must be quick. They may call the partition.
type Owner interface {
	// Fetched is called in the order of offsets.
	Fetched(Data)
	// Ends is called with each good answer. The last stable offset is -1 where
	// the broker does not tell.
	Ends(highWatermark, lastStable int64)
	// Failed says that fetching failed for the n-th time in a row. It is tried
	// again, with growing pauses.
	Failed(err error, n int)
	// Stopped says that the log does not have what is wanted. Nothing is fetched
	// until Start.
	Stopped(Gap)
}

// Gap is why the log does not have what is wanted.
type Gap struct {
	// Offset is what was wanted.
	Offset int64
	// Diverged: the log was truncated, or another one has taken its place. Its
	// last offset in common is below End, which ends the epoch Epoch there.
	Diverged bool
	Epoch    int32
	End      int64
}

// Fetcher reads the partitions from the source's brokers.
type Fetcher struct {
	o      Options
	router *cluster.Router[*Partition]

	mu    sync.Mutex
	ctx   context.Context // of Run, nil before it
	ended bool
	links map[place]*link
	nodes int            // that have links
	wg    sync.WaitGroup // of links
}

// place is what a link is for: a broker's partitions that have data now, or where
// there are many, those that have none.
type place struct {
	node  int32
	quiet bool
}

// New makes a fetcher. It fetches nothing until Run.
func New(o Options) *Fetcher {
	f := &Fetcher{o: o, links: map[place]*link{}}
	f.router = cluster.NewRouter(o.Leaders, cluster.RouterCalls[*Partition]{
		Name:       func(p *Partition) (string, int32) { return p.topic, p.number },
		Arrive:     f.arrive,
		Leaderless: (*Partition).leaderless,
		Failed:     o.Failed,
	})
	return f
}

// Partition makes the source partition. Nothing is fetched until its Start.
func (f *Fetcher) Partition(topic string, number int32, owner Owner) *Partition {
	return &Partition{fetcher: f, owner: owner, topic: topic, number: number, stopped: true, preferred: -1}
}

// Run fetches until ctx ends, and returns when all connections are closed.
func (f *Fetcher) Run(ctx context.Context) {
	f.mu.Lock()
	f.ctx = ctx
	f.mu.Unlock()
	f.router.Run(ctx)
	f.mu.Lock()
	f.ended = true // and nobody is on his way to a new link
	f.mu.Unlock()
	f.wg.Wait()
}

// arrive makes p a member of the link to the node that suits it.
func (f *Fetcher) arrive(node int32, p *Partition) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.ctx == nil || f.ended {
		return
	}
	at := place{node, p.isQuiet()}
	l := f.links[at]
	if l == nil {
		l = &link{fetcher: f, place: at, wake: make(chan struct{}, 1), members: map[*Partition]bool{}}
		f.links[at] = l
		if f.links[place{node, !at.quiet}] == nil {
			f.nodes++
		}
		ctx := f.ctx
		f.wg.Go(func() { l.run(ctx) })
	}
	p.join(l)
}

// maxBytes is what one answer may hold: so little that the answers of all
// brokers fit the budget twice, one being read while the last is on its way out.
func (f *Fetcher) maxBytes() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	share := int(f.o.Frames.Limit()) / (2 * max(2, f.nodes))
	return min(max(share, quietBytes), 8<<20)
}
