package contract

import (
	"math/rand/v2"
	"net"
	"sync"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// faultyCluster is a cluster in this process that can be made to fail.
type faultyCluster struct {
	*kfake.Cluster
	mu    sync.Mutex
	conns []net.Conn
}

func newFaultyCluster(t testing.TB) *faultyCluster {
	t.Helper()
	c := &faultyCluster{}
	var err error
	c.Cluster, err = kfake.NewCluster(kfake.NumBrokers(3), kfake.ListenFn(func(network, address string) (net.Listener, error) {
		l, err := net.Listen(network, address)
		return &trackedListener{l, c}, err
	}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// trackedListener lets the cluster cut the connections that it accepts.
type trackedListener struct {
	net.Listener
	cluster *faultyCluster
}

func (l *trackedListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err == nil {
		l.cluster.mu.Lock()
		l.cluster.conns = append(l.cluster.conns, conn)
		l.cluster.mu.Unlock()
	}
	return conn, err
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

// fail answers one request in some, of one kind, with one of the errors.
func (c *faultyCluster) fail(one int, errs []*kerr.Error, key kmsg.Key) *kfake.FaultHandle {
	var faults []kfake.Fault
	for i, err := range errs {
		rng := rand.New(rand.NewPCG(uint64(i), uint64(key)))
		faults = append(faults, kfake.Fault{Keys: []kmsg.Key{key}, Err: err, Count: -1,
			When: func(kmsg.Request) bool { return rng.IntN(one*len(errs)) == 0 }})
	}
	return c.Fault(faults...)
}

// TestFaults has everything fail now and then that can fail for a moment: every
// record arrives, once, in order. Some of the errors are told of requests that
// were carried out, as after a timeout.
func TestFaults(t *testing.T) {
	source, target := newFaultyCluster(t), newFaultyCluster(t)
	pair := Pair{Source: NewCluster(t, source.ListenAddrs(), ""), Target: NewCluster(t, target.ListenAddrs(), "")}
	Play(t, func(testing.TB) Pair { return pair }, []Scenario{{Name: "faults", Run: func(e *Env) {
		topic := e.Topic("t")
		e.Create(e.Source, topic, 6)
		load := e.Load(e.Source, topic, 6)
		m := e.Start()
		m.Progress(topic, 500)
		faults := []*kfake.FaultHandle{
			target.fail(10, []*kerr.Error{kerr.NotLeaderForPartition, kerr.RequestTimedOut, kerr.NotEnoughReplicas, kerr.NotEnoughReplicasAfterAppend,
				kerr.KafkaStorageError, kerr.UnknownTopicOrPartition}, kmsg.Produce),
			source.fail(10, []*kerr.Error{kerr.NotLeaderForPartition, kerr.KafkaStorageError, kerr.UnknownLeaderEpoch, kerr.FencedLeaderEpoch,
				kerr.OffsetNotAvailable, kerr.UnknownTopicOrPartition}, kmsg.Fetch),
			source.fail(5, []*kerr.Error{kerr.NotLeaderForPartition, kerr.LeaderNotAvailable}, kmsg.ListOffsets),
			target.fail(5, []*kerr.Error{kerr.CoordinatorLoadInProgress, kerr.CoordinatorNotAvailable}, kmsg.InitProducerID),
		}
		for range 5 {
			m.Progress(topic, 500)
			source.ShufflePartitionLeaders()
			m.Progress(topic, 500)
			target.ShufflePartitionLeaders()
			m.Progress(topic, 500)
			target.cut()
			m.Progress(topic, 500)
			source.cut()
		}
		for i, f := range faults {
			f.Remove()
			if i < 2 && f.Hits() < 10 { // the others depend on how it goes
				e.Errorf("%d faults of kind %d: the scenario proves little", f.Hits(), i)
			}
		}
		load.Stop()
		m.CaughtUp(topic)
		m.WantSame(topic)
	}}})
}
