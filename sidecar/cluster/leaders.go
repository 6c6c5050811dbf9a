package cluster

import (
	"context"
	"maps"
	"net"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// Leaders knows who leads the partitions of the topics that it follows, and where the brokers are.
// It learns from the cluster's metadata when told to refresh, and from hints in answers of brokers.
// Reads take no lock.
type Leaders struct {
	cluster *Cluster
	view    atomic.Pointer[view]
	turn    chan struct{} // held by the refresh that talks to the cluster

	mu       sync.Mutex // for changes of everything below and of view
	followed map[string]bool
	coming   *refresh  // one that has not asked yet, so that it can serve whoever comes now
	asked    time.Time // when the last one did
}

// view is what is known at one time. Nothing in it changes, except that a topic's leaders are
// replaced as a whole.
type view struct {
	topics  map[string]*topicLeaders
	names   map[[16]byte]string
	brokers map[int32]string
}

type topicLeaders struct {
	id         [16]byte
	partitions atomic.Pointer[[]leader]
}

type leader struct {
	node, epoch int32
}

// refresh is one question to the cluster that several callers wait for.
type refresh struct {
	done     chan struct{}
	err      error
	deserted bool // err is only that the caller who asked gave up
}

// NewLeaders returns a Leaders that follows nothing.
func NewLeaders(c *Cluster) *Leaders {
	l := &Leaders{cluster: c, turn: make(chan struct{}, 1), followed: map[string]bool{}}
	l.view.Store(&view{topics: map[string]*topicLeaders{}, names: map[[16]byte]string{}, brokers: map[int32]string{}})
	return l
}

// Follow adds topics to what Refresh asks for.
func (l *Leaders) Follow(topics ...string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, t := range topics {
		l.followed[t] = true
	}
}

// Forget drops topics, and what is known of them.
func (l *Leaders) Forget(topics ...string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	old := l.view.Load()
	next := &view{topics: maps.Clone(old.topics), names: maps.Clone(old.names), brokers: old.brokers}
	for _, name := range topics {
		delete(l.followed, name)
		if t := next.topics[name]; t != nil {
			delete(next.topics, name)
			delete(next.names, t.id)
		}
	}
	l.view.Store(next)
}

// Leader returns the leader of a partition and its epoch (-1: unknown); false when it is not known
// or there is none.
func (l *Leaders) Leader(topic string, partition int32) (node, epoch int32, ok bool) {
	t := l.view.Load().topics[topic]
	if t == nil {
		return -1, -1, false
	}
	ps := *t.partitions.Load()
	if partition < 0 || int(partition) >= len(ps) || ps[partition].node < 0 {
		return -1, -1, false
	}
	return ps[partition].node, ps[partition].epoch, true
}

// ID returns the id of a topic.
func (l *Leaders) ID(topic string) (id [16]byte, ok bool) {
	t := l.view.Load().topics[topic]
	if t == nil || t.id == [16]byte{} {
		return id, false
	}
	return t.id, true
}

// Name returns the topic with this id.
func (l *Leaders) Name(id [16]byte) (string, bool) {
	name, ok := l.view.Load().names[id]
	return name, ok
}

// Addr returns the address, host:port, of a broker.
func (l *Leaders) Addr(node int32) (addr string, ok bool) {
	addr, ok = l.view.Load().brokers[node]
	return addr, ok
}

// Learn takes a hint from an answer (KIP-951): from this epoch on the node leads the partition. It
// is ignored if it is not newer than what is known or the partition is not.
func (l *Leaders) Learn(topic string, partition, node, epoch int32) {
	l.mu.Lock()
	defer l.mu.Unlock()
	t := l.view.Load().topics[topic]
	if t == nil || node < 0 {
		return
	}
	old := *t.partitions.Load()
	if partition < 0 || int(partition) >= len(old) || epoch <= old[partition].epoch {
		return
	}
	ps := slices.Clone(old)
	ps[partition] = leader{node, epoch}
	t.partitions.Store(&ps)
}

// LearnBroker takes a broker's address from such an answer.
func (l *Leaders) LearnBroker(node int32, host string, port int32) {
	addr := hostPort(host, port)
	l.mu.Lock()
	defer l.mu.Unlock()
	old := l.view.Load()
	if old.brokers[node] == addr {
		return
	}
	next := &view{topics: old.topics, names: old.names, brokers: maps.Clone(old.brokers)}
	next.brokers[node] = addr
	l.view.Store(next)
}

func hostPort(host string, port int32) string {
	return net.JoinHostPort(host, strconv.Itoa(int(port)))
}

// refreshInterval is the least time between two questions to the cluster.
const refreshInterval = 100 * time.Millisecond

// Refresh asks the cluster for the followed topics and its brokers. Topics that vanished are
// forgotten until they come back. Calls that come before the question is sent share it, and there
// is at most one question in each refreshInterval: Refresh waits.
func (l *Leaders) Refresh(ctx context.Context) error {
	for {
		l.mu.Lock()
		r, mine := l.coming, false
		if r == nil {
			r, mine = &refresh{done: make(chan struct{})}, true
			l.coming = r
		}
		l.mu.Unlock()
		if mine {
			r.err = l.run(ctx)
			r.deserted = ctx.Err() != nil
			close(r.done)
			return r.err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-r.done:
		}
		if r.err == nil || !r.deserted {
			return r.err
		}
		if err := ctx.Err(); err != nil {
			return err
		}
	}
}

// run asks the cluster when it is its turn.
func (l *Leaders) run(ctx context.Context) error {
	names, err := l.begin(ctx)
	if err != nil {
		return err
	}
	defer func() { <-l.turn }()
	resp, err := l.cluster.metadata(ctx, names)
	if err != nil {
		return err
	}
	topics, err := readTopics(resp)
	if err != nil {
		return err
	}
	l.replace(topics, resp.Brokers)
	return nil
}

// begin waits for the turn and the interval, and returns the topics to ask for. From then on new
// callers need another refresh.
func (l *Leaders) begin(ctx context.Context) ([]string, error) {
	err := l.wait(ctx)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.coming = nil
	if err != nil {
		return nil, err
	}
	l.asked = time.Now()
	names := make([]string, 0, len(l.followed))
	return slices.AppendSeq(names, maps.Keys(l.followed)), nil
}

// wait takes the turn, once the interval is over.
func (l *Leaders) wait(ctx context.Context) error {
	select {
	case l.turn <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	l.mu.Lock()
	rest := time.Until(l.asked.Add(refreshInterval))
	l.mu.Unlock()
	timer := time.NewTimer(rest)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		<-l.turn
		return ctx.Err()
	}
}

// replace takes over an answer, except where a hint that came meanwhile is newer.
func (l *Leaders) replace(topics map[string]Topic, brokers []kmsg.MetadataResponseBroker) {
	l.mu.Lock()
	defer l.mu.Unlock()
	old := l.view.Load()
	next := &view{
		topics:  make(map[string]*topicLeaders, len(topics)),
		names:   make(map[[16]byte]string, len(topics)),
		brokers: make(map[int32]string, len(brokers)),
	}
	for _, b := range brokers {
		next.brokers[b.NodeID] = hostPort(b.Host, b.Port)
	}
	for name, t := range topics {
		if !l.followed[name] {
			continue // forgotten meanwhile
		}
		known := old.topics[name]
		tl := &topicLeaders{id: t.ID}
		switch {
		case t.Err == nil:
			ps := mergeLeaders(t, known)
			tl.partitions.Store(&ps)
		case known != nil:
			tl = known // a moment's trouble, perhaps; fetching will tell
		default:
			continue
		}
		next.topics[name] = tl
		if tl.id != [16]byte{} {
			next.names[tl.id] = name
		}
	}
	l.view.Store(next)
}

// mergeLeaders returns the leaders of t, or those known of the same topic where they are of a later
// epoch.
func mergeLeaders(t Topic, known *topicLeaders) []leader {
	var before []leader
	if known != nil && known.id == t.ID {
		before = *known.partitions.Load()
	}
	ps := make([]leader, len(t.Partitions))
	for i, p := range t.Partitions {
		ps[i] = leader{p.Leader, p.LeaderEpoch}
		if i < len(before) && before[i].epoch > p.LeaderEpoch && p.LeaderEpoch >= 0 {
			ps[i] = before[i]
		}
	}
	return ps
}
