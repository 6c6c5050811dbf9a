package fetch

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"mirror/sidecar/wire"
)

func TestALogThatDoesNotHaveTheOffsetStopsThePartition(t *testing.T) {
	b := newBench(t)
	b.create("t", 2)
	b.write("t", 0, 3, 1)
	var asked atomic.Int64
	b.control(func(_ int32, q *kmsg.FetchRequest) *kmsg.FetchResponse {
		if asksFor(q, 0) {
			asked.Add(1)
		}
		return nil
	})
	r, other := b.reader("t", 0, 9), b.reader("t", 1, 0)
	b.run(r, other)
	r.until("the gap", func() bool { return len(r.gaps) > 0 })
	if r.gaps[0] != (Gap{Offset: 9}) {
		t.Errorf("gap %+v", r.gaps[0])
	}
	for n := range 3 {
		b.write("t", 1, 1, 1)
		other.gets(1, 0, int64(n+1))
	}
	if n := asked.Load(); n != 1 {
		t.Errorf("asked %d times for what is not there", n)
	}
	r.start(2, 1)
	r.gets(2, 1, 3)
}

func TestADivergingLogStopsThePartition(t *testing.T) {
	b := newBench(t)
	b.create("t", 1)
	b.write("t", 0, 3, 1)
	b.control(func(_ int32, q *kmsg.FetchRequest) *kmsg.FetchResponse {
		if len(q.Topics) == 0 || q.Topics[0].Partitions[0].LastFetchedEpoch < 0 {
			return nil
		}
		return answer(q, func(_ *kmsg.FetchRequestTopicPartition, sp *kmsg.FetchResponseTopicPartition) {
			sp.DivergingEpoch.Epoch, sp.DivergingEpoch.EndOffset = 7, 2
		})
	})
	r := b.reader("t", 0, 0)
	b.run(r)
	r.gets(1, 0, 3)
	r.until("the gap", func() bool { return len(r.gaps) > 0 })
	if r.gaps[0] != (Gap{Offset: 3, Diverged: true, Epoch: 7, End: 2}) {
		t.Errorf("gap %+v", r.gaps[0])
	}
}

func TestAPartitionFollowsItsLeader(t *testing.T) {
	b := newBench(t)
	b.create("t", 1)
	r := b.reader("t", 0, 0)
	b.run(r)
	for i := range 6 {
		b.write("t", 0, 2, 1)
		if err := b.MoveTopicPartition("t", 0, int32(i%2)); err != nil {
			t.Fatal(err)
		}
		b.write("t", 0, 2, 1)
		r.gets(1, 0, int64(4*(i+1)))
	}
}

// The leader names a replica (KIP-392); when that fails the leader is asked again.
func TestAReplicaThatTheLeaderNamesIsRead(t *testing.T) {
	b := newBench(t)
	b.create("t", 1)
	leader := b.LeaderFor("t", 0)
	follower := 1 - leader
	b.SetFollowers("t", 0, []int32{follower})
	var fromFollower, broken atomic.Int64
	b.control(func(node int32, q *kmsg.FetchRequest) *kmsg.FetchResponse {
		if q.Rack != "here" {
			t.Errorf("the rack is %q", q.Rack)
		}
		switch {
		case node == follower && broken.Load() > 0:
			return answer(q, func(_ *kmsg.FetchRequestTopicPartition, sp *kmsg.FetchResponseTopicPartition) {
				// What a replica that is behind says is not to be believed.
				sp.ErrorCode = kerr.OffsetOutOfRange.Code
			})
		case node == follower:
			fromFollower.Add(1)
		case broken.Load() == 0:
			return answer(q, func(_ *kmsg.FetchRequestTopicPartition, sp *kmsg.FetchResponseTopicPartition) {
				sp.PreferredReadReplica = follower
			})
		}
		return nil
	})
	b.write("t", 0, 2, 1)
	r := b.reader("t", 0, 0)
	b.run(r)
	r.gets(1, 0, 2)
	if fromFollower.Load() == 0 {
		t.Error("the replica was not asked")
	}
	broken.Store(1)
	b.write("t", 0, 2, 1)
	r.gets(1, 0, 4)
	if len(r.gaps) > 0 {
		t.Errorf("gaps %v", r.gaps)
	}
}

func TestCodesOfBrokersAreTriedAgain(t *testing.T) {
	for _, err := range []*kerr.Error{
		kerr.NotLeaderForPartition, kerr.LeaderNotAvailable, kerr.FencedLeaderEpoch, kerr.UnknownLeaderEpoch, kerr.UnknownTopicOrPartition,
		kerr.UnknownTopicID, kerr.ReplicaNotAvailable, kerr.OffsetNotAvailable, kerr.KafkaStorageError, kerr.UnknownServerError, kerr.TopicAuthorizationFailed,
	} {
		t.Run(err.Message, func(t *testing.T) {
			b := newBench(t)
			b.create("t", 1)
			b.write("t", 0, 2, 1)
			b.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Fetch}, Err: err, Count: 2})
			r := b.reader("t", 0, 0)
			b.run(r)
			r.gets(1, 0, 2)
			if len(r.failures) != 2 || !errors.Is(r.failures[0], err) {
				t.Errorf("failures %v", r.failures)
			}
		})
	}
}

func TestConnectionsThatEnd(t *testing.T) {
	b := newBench(t)
	b.create("t", 1)
	r := b.reader("t", 0, 0)
	b.run(r)
	b.write("t", 0, 2, 1)
	r.gets(1, 0, 2)
	b.hangUp() // a request is on its way
	b.write("t", 0, 2, 1)
	r.gets(1, 0, 4)
	if n := b.failures(); n == 0 {
		t.Error("nobody is told")
	}
}

// A broker closes connections that are not used (connections.max.idle.ms). That
// is nothing to tell.
func TestAnIdleConnectionThatIsClosedIsNoFailure(t *testing.T) {
	b := newBench(t)
	b.create("t", 1)
	r := b.reader("t", 0, 0)
	conns := make(chan *wire.Conn, 10)
	dial := b.fetcher.o.Dial
	b.fetcher.o.Dial = func(ctx context.Context, addr string) (*wire.Conn, error) {
		c, err := dial(ctx, addr)
		conns <- c
		return c, err
	}
	b.write("t", 0, 2, 1)
	r.once = true // nothing is on its way then
	b.run(r)
	r.gets(1, 0, 2)
	b.hangUp()
	<-(<-conns).Done()
	b.write("t", 0, 1, 1)
	r.p.Resume()
	r.gets(1, 0, 3)
	if n := b.failures(); n != 0 {
		t.Errorf("%d failures are told of: %v", n, b.failed)
	}
}

func TestAPartitionWithoutALeaderIsToldOf(t *testing.T) {
	b := newBench(t)
	r := b.reader("t", 0, 0)
	b.run(r)
	r.until("the failure", func() bool { return len(r.failures) > 0 })
	if !errors.Is(r.failures[0], errNoLeader) {
		t.Errorf("told of %v", r.failures[0])
	}
	b.create("t", 1)
	b.write("t", 0, 1, 1)
	r.start(2, 0)
	r.gets(2, 0, 1)
}

// What an answer ends with may be cut; what is no batch at all is a failure.
func TestSetsThatAreNoWholeBatches(t *testing.T) {
	b := newBench(t)
	b.create("t", 1)
	b.write("t", 0, 2, 1)
	b.write("t", 0, 2, 1)
	set := b.set("t", 0)
	var n atomic.Int64
	b.control(func(_ int32, q *kmsg.FetchRequest) *kmsg.FetchResponse {
		i := n.Add(1)
		if i > 3 {
			return nil
		}
		return answer(q, func(rp *kmsg.FetchRequestTopicPartition, sp *kmsg.FetchResponseTopicPartition) {
			sp.HighWatermark, sp.LastStableOffset = 4, 4
			switch i {
			case 1: // the second batch is cut
				sp.RecordBatches = set[:len(set)-5]
			case 2: // all there is is cut
				sp.RecordBatches = set[len(set)/2 : len(set)-5]
			case 3:
				sp.RecordBatches = make([]byte, 100)
			}
			if want := []int64{0, 2, 2}[i-1]; rp.FetchOffset != want {
				t.Errorf("request %d asks for offset %d, want %d", i, rp.FetchOffset, want)
			}
		})
	})
	r := b.reader("t", 0, 0)
	b.run(r)
	r.gets(1, 0, 4)
	if len(r.failures) != 1 {
		t.Errorf("failures %v, want one", r.failures)
	}
}
