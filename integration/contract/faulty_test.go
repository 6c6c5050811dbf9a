package contract

import (
	"errors"
	"math/rand/v2"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// faultyCluster is a cluster in this process that can be made to fail.
type faultyCluster struct {
	*kfake.Cluster
	mu     sync.Mutex
	rng    *rand.Rand
	conns  []net.Conn
	shaky  bool
	quiet  atomic.Bool
	done   map[string]int // faults of connections, by kind
	faults []*kfake.FaultHandle
}

func newFaultyCluster(t testing.TB, seed uint64) *faultyCluster {
	t.Helper()
	c := &faultyCluster{rng: rand.New(rand.NewPCG(seed, 1)), done: map[string]int{}}
	var err error
	c.Cluster, err = kfake.NewCluster(kfake.NumBrokers(3), kfake.ListenFn(func(network, address string) (net.Listener, error) {
		l, err := net.Listen(network, address)
		return &shakyListener{l, c}, err
	}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	c.ControlKey(-1, c.refuse)
	return c
}

// shakyListener gives the cluster a hold on the connections that it accepts.
type shakyListener struct {
	net.Listener
	cluster *faultyCluster
}

func (l *shakyListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	c := l.cluster
	c.mu.Lock()
	defer c.mu.Unlock()
	c.conns = append(c.conns, conn)
	return &shakyConn{conn, c}, nil
}

// shakyConn is a broker's end of a connection on which answers come late, twice
// or not at all. An answer is one write.
type shakyConn struct {
	net.Conn
	cluster *faultyCluster
}

var errDropped = errors.New("the answer was dropped with its connection")

func (s *shakyConn) Write(answer []byte) (int, error) {
	fault, delay := s.cluster.onTheWay()
	if delay > 0 {
		<-time.After(delay)
	}
	switch fault {
	case dropped: // what was asked for is done all the same
		s.Close()
		return 0, errDropped
	case doubled:
		if n, err := s.Conn.Write(answer); err != nil {
			return n, err
		}
	}
	return s.Conn.Write(answer)
}

// What happens to an answer on its way, or to a request.
const (
	late    = "late"
	doubled = "doubled"
	dropped = "dropped"
	refused = "refused"
)

// onTheWay draws what happens to an answer.
func (c *faultyCluster) onTheWay() (fault string, delay time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.shaky || c.quiet.Load() {
		return "", 0
	}
	switch n := c.rng.IntN(400); {
	case n < 20:
		fault, delay = late, time.Duration(c.rng.IntN(50))*time.Millisecond
	case n < 24:
		fault = dropped
	case n < 30:
		fault = doubled
	default:
		return "", 0
	}
	c.done[fault]++
	return fault, delay
}

// refuse ends the connections of some requests before they are carried out.
func (c *faultyCluster) refuse(q kmsg.Request) (kmsg.Response, error, bool) {
	c.KeepControl()
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.shaky || c.quiet.Load() || c.rng.IntN(100) > 0 {
		return nil, nil, false
	}
	c.done[refused]++
	return nil, errDropped, true
}

// quietly does something without faults.
func (c *faultyCluster) quietly(do func()) {
	c.quiet.Store(true)
	defer c.quiet.Store(false)
	do()
}

// shake makes connections shaky, or ends that.
func (c *faultyCluster) shake(on bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.shaky = on
}

// cut ends all connections in the middle of what they carry.
func (c *faultyCluster) cut() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, conn := range c.conns {
		conn.Close()
	}
	c.conns = nil
}

// fail has one request in some of each kind fail with each of the errors.
func (c *faultyCluster) fail(one int, seed uint64) {
	for key, errs := range passing {
		for _, err := range errs {
			rng := rand.New(rand.NewPCG(seed, uint64(key)<<32|uint64(uint16(err.Code))))
			c.faults = append(c.faults, c.Fault(kfake.Fault{Keys: []kmsg.Key{key}, Err: err, Count: -1,
				When: func(kmsg.Request) bool { return rng.IntN(one*len(errs)) == 0 && !c.quiet.Load() }}))
		}
	}
}

// mend ends all faults and says how many there were.
func (c *faultyCluster) mend() (failed int, done map[string]int) {
	for _, f := range c.faults {
		f.Remove()
		failed += f.Hits()
	}
	c.shake(false)
	return failed, c.done
}

// passing are the errors that a broker gives for a moment, by request. Some are
// told of requests that were carried out, as after a time-out.
var passing = map[kmsg.Key][]*kerr.Error{
	kmsg.Produce: {kerr.NotLeaderForPartition, kerr.LeaderNotAvailable, kerr.RequestTimedOut, kerr.NotEnoughReplicas,
		kerr.NotEnoughReplicasAfterAppend, kerr.KafkaStorageError, kerr.UnknownTopicOrPartition, kerr.UnknownTopicID,
		kerr.CorruptMessage, kerr.FencedLeaderEpoch, kerr.UnknownServerError, kerr.NetworkException},
	kmsg.Fetch: {kerr.NotLeaderForPartition, kerr.LeaderNotAvailable, kerr.ReplicaNotAvailable, kerr.KafkaStorageError,
		kerr.UnknownLeaderEpoch, kerr.FencedLeaderEpoch, kerr.OffsetNotAvailable, kerr.UnknownTopicOrPartition, kerr.UnknownTopicID,
		kerr.InconsistentTopicID, kerr.CorruptMessage, kerr.UnknownServerError},
	kmsg.Metadata: {kerr.LeaderNotAvailable, kerr.ReplicaNotAvailable, kerr.UnknownTopicOrPartition},
	kmsg.ListOffsets: {kerr.NotLeaderForPartition, kerr.LeaderNotAvailable, kerr.OffsetNotAvailable, kerr.KafkaStorageError,
		kerr.UnknownLeaderEpoch, kerr.FencedLeaderEpoch, kerr.UnknownTopicOrPartition},
	kmsg.InitProducerID:       {kerr.CoordinatorLoadInProgress, kerr.CoordinatorNotAvailable, kerr.NotCoordinator, kerr.ConcurrentTransactions, kerr.RequestTimedOut},
	kmsg.DescribeProducers:    {kerr.NotLeaderForPartition, kerr.UnknownTopicOrPartition, kerr.KafkaStorageError},
	kmsg.OffsetForLeaderEpoch: {kerr.NotLeaderForPartition, kerr.UnknownLeaderEpoch, kerr.FencedLeaderEpoch, kerr.OffsetNotAvailable, kerr.KafkaStorageError, kerr.UnknownTopicOrPartition},
	kmsg.CreateTopics:         {kerr.NotController, kerr.RequestTimedOut},
	kmsg.DescribeConfigs:      {kerr.UnknownTopicOrPartition, kerr.RequestTimedOut},
}
