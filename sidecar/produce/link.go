package produce

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"mirror/sidecar/cluster"
	"mirror/sidecar/wire"
)

const (
	// requestsInFlight of a connection. The broker works on one at a time; more
	// only keep the link busy.
	requestsInFlight = 5
	// requestBytes is where a request is full. Far below the broker's
	// socket.request.max.bytes, above which it closes the connection.
	requestBytes = 8 << 20
	// dialTime is how long a connection may take.
	dialTime = 10 * time.Second
)

// link sends to one broker over one connection.
type link struct {
	producer *Producer
	route
	wake chan struct{}

	mu      sync.Mutex
	ready   []*Partition
	queued  map[*Partition]bool // is in ready
	asked   []asked             // requests without an answer
	patrol  *time.Timer         // looks at asked, nil: it is not on its way
	answers int                 // being handed out
	down    error               // why the broker has not been reached for a while
	trips   trips
}

// item is a batch in a request.
type item struct {
	p *Partition
	s *sent
}

// add puts q among those that may have something to send.
func (l *link) add(q *Partition) {
	l.mu.Lock()
	if !l.queued[q] {
		l.queued[q] = true
		l.ready = append(l.ready, q)
	}
	down := l.down
	l.mu.Unlock()
	l.signal()
	if down != nil {
		q.unreachable(down, false)
	}
}

func (l *link) signal() {
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// run sends until ctx ends.
func (l *link) run(ctx context.Context) {
	var conn *wire.Conn
	var session int64
	hangUp := func() {}
	defer func() { hangUp() }()
	stop := context.AfterFunc(ctx, l.signal)
	defer stop()
	defer l.endPatrol()
	for failures := 0; ; {
		if !l.await(ctx) {
			return
		}
		if conn != nil && conn.Err() != nil {
			hangUp() // all its answers are in
			if err := conn.Err(); ctx.Err() == nil && !errors.Is(err, wire.ErrIdle) {
				l.producer.o.Failed(err)
			}
			conn = nil
			continue // what they made of the partitions comes first
		}
		if conn == nil {
			if !l.leadsReady() {
				continue // a broker that leads nothing may hang, and connecting take long
			}
			c, err := l.dial(ctx)
			if err != nil {
				if ctx.Err() != nil {
					return
				}
				failures++
				l.producer.o.Failed(err)
				l.hand(ctx, failures, err)
				continue
			}
			// Sending may wait for the broker, for example while it throttles: the
			// end of ctx must end that.
			unhook := context.AfterFunc(ctx, c.Close)
			hangUp = func() { unhook(); c.Close() }
			conn, session, failures = c, l.producer.sessions.Add(1), 0
			l.fails(nil)
		}
		l.send(conn, session)
	}
}

// await returns when there is something to look at and room for a request.
func (l *link) await(ctx context.Context) bool {
	for ctx.Err() == nil {
		l.mu.Lock()
		// An answer makes all its partitions ready, one after the other. They are
		// waited for, or each would go in a request of its own.
		ok := len(l.ready) > 0 && len(l.asked) < requestsInFlight && l.answers == 0
		l.mu.Unlock()
		if ok {
			return true
		}
		<-l.wake
	}
	return false
}

func (l *link) dial(ctx context.Context) (*wire.Conn, error) {
	addr, ok := l.producer.o.Leaders.Addr(l.node)
	if !ok {
		return nil, fmt.Errorf("target broker %d is not in the cluster's metadata", l.node)
	}
	ctx, cancel := context.WithTimeout(ctx, dialTime)
	defer cancel()
	return l.producer.o.Dial(ctx, addr)
}

// hand gives the ready partitions to whoever leads them, a while after the n-th
// failure in a row to connect.
func (l *link) hand(ctx context.Context, n int, err error) {
	l.producer.router.Stale()
	if n >= shedAfter {
		l.fails(err)
	}
	for _, q := range l.isReady() {
		q.unreachable(err, n < shedAfter)
	}
	select {
	case <-ctx.Done():
		return
	case <-time.After(cluster.Backoff(n)):
	}
	for _, q := range l.takeReady() {
		q.kick()
	}
}

// fails keeps why the broker cannot be reached; nil: it can.
func (l *link) fails(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.down = err
}

func (l *link) isReady() []*Partition {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.ready)
}

func (l *link) takeReady() []*Partition {
	l.mu.Lock()
	defer l.mu.Unlock()
	r := l.ready
	l.ready = nil
	clear(l.queued)
	return r
}

// send sends one request with a batch of each ready partition.
func (l *link) send(conn *wire.Conn, session int64) {
	var items []item
	size := 0
	ready := l.takeReady()
	for i, q := range ready {
		if size >= requestBytes {
			for _, q := range ready[i:] {
				l.add(q)
			}
			break
		}
		if node, _, ok := l.producer.o.Leaders.Leader(q.topic, q.number); !ok || l.route != (route{node, q.aside.Load()}) {
			q.kick()
			continue
		}
		s := q.take(session)
		if s == nil {
			continue // whatever it waits for will kick it
		}
		items = append(items, item{q, s})
		size += len(s.Batch)
		l.add(q) // there may be more for the next request
	}
	if len(items) == 0 {
		return
	}
	req := request(items, conn.MaxVersion(kmsg.Produce.Int16()))
	wait := sharedTime
	if l.aside > 0 {
		wait = asideTime
	}
	req.TimeoutMillis = int32(wait.Milliseconds())
	at := l.asks(conn, items)
	conn.Send(req, func(resp kmsg.Response, _ *wire.Frame, err error) {
		l.answered(items, at, resp, err)
	})
	for _, x := range items {
		x.s.held.Release()
	}
}

// request bundles the items: one batch for each partition.
func request(items []item, version int16) *kmsg.ProduceRequest {
	r := kmsg.NewPtrProduceRequest()
	r.Acks = -1
	topics := make(map[string]int, len(items))
	for _, x := range items {
		i, ok := topics[x.p.topic]
		if !ok {
			i = len(r.Topics)
			topics[x.p.topic] = i
			t := kmsg.NewProduceRequestTopic()
			t.Topic, t.TopicID = x.p.topic, x.s.topic
			r.Topics = append(r.Topics, t)
			if x.s.topic == [16]byte{} {
				version = min(version, 12) // the last that goes by name
			}
		}
		q := kmsg.NewProduceRequestTopicPartition()
		q.Partition, q.Records = x.p.number, x.s.Batch
		r.Topics[i].Partitions = append(r.Topics[i].Partitions, q)
	}
	r.SetVersion(version)
	return r
}

var errUnanswered = errors.New("the broker's answer does not mention the partition")

// answered hands the answers out, in the connection's reader.
func (l *link) answered(items []item, sent time.Time, resp kmsg.Response, err error) {
	l.mu.Lock()
	l.asked = slices.Delete(l.asked, 0, 1) // answers come in the order of requests
	l.answers++
	now := time.Now()
	took := now.Sub(sent)
	if err == nil {
		l.trips.add(took, now)
	}
	trip := l.trips.length()
	l.mu.Unlock()
	defer l.answeredAll()
	if err != nil {
		for _, x := range items {
			x.p.answered(x.s, answer{err: err, base: -1})
		}
		return
	}
	r := resp.(*kmsg.ProduceResponse)
	for _, b := range r.Brokers {
		l.producer.o.Leaders.LearnBroker(b.NodeID, b.Host, b.Port)
	}
	got := make(map[*Partition]answer, len(items))
	for i, j := range match(items, r) {
		t := &r.Topics[j.topic].Partitions[j.partition]
		a := answer{base: t.BaseOffset, err: kerr.ErrorForCode(t.ErrorCode), trip: trip, took: took}
		if t.ErrorMessage != nil {
			a.message = *t.ErrorMessage
		}
		for _, e := range t.ErrorRecords {
			re := recordError{index: e.RelativeOffset}
			if e.ErrorMessage != nil {
				re.message = *e.ErrorMessage
			}
			a.bad = append(a.bad, re)
		}
		if t.CurrentLeader.LeaderID >= 0 {
			l.producer.o.Leaders.Learn(items[i].p.topic, items[i].p.number, t.CurrentLeader.LeaderID, t.CurrentLeader.LeaderEpoch)
		}
		got[items[i].p] = a
	}
	for _, x := range items {
		a, ok := got[x.p]
		if !ok {
			a = answer{err: errUnanswered, base: -1}
		}
		x.p.answered(x.s, a)
	}
}

func (l *link) answeredAll() {
	l.mu.Lock()
	l.answers--
	l.mu.Unlock()
	l.signal()
}

// place is where an answer stands in a response.
type place struct{ topic, partition int }

// match finds the answer to each item: by topic id, or by name where the
// response has names.
func match(items []item, r *kmsg.ProduceResponse) map[int]place {
	type key struct {
		id     [16]byte
		name   string
		number int32
	}
	byID := r.Version >= 13
	at := make(map[key]place, len(items))
	for i := range r.Topics {
		t := &r.Topics[i]
		for j := range t.Partitions {
			k := key{name: t.Topic, number: t.Partitions[j].Partition}
			if byID {
				k = key{id: t.TopicID, number: t.Partitions[j].Partition}
			}
			at[k] = place{i, j}
		}
	}
	out := make(map[int]place, len(items))
	for i, x := range items {
		k := key{name: x.p.topic, number: x.p.number}
		if byID {
			k = key{id: x.s.topic, number: x.p.number}
		}
		if p, ok := at[k]; ok {
			out[i] = p
		}
	}
	return out
}
