package fetch

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"
	"go.uber.org/goleak"

	"mirror/sidecar/batch"
	"mirror/sidecar/cluster"
	"mirror/sidecar/config"
	"mirror/sidecar/wire"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// bench is a fetcher and a cluster of two brokers in this process.
type bench struct {
	*testing.T
	*kfake.Cluster
	fetcher *Fetcher
	cluster *cluster.Cluster
	leaders *cluster.Leaders
	frames  *wire.Pool

	mu      sync.Mutex
	failed  []error    // connections
	brokers []net.Conn // their ends of the fetcher's connections
}

// budget is the flow's, in bytes.
const budget = 1 << 20

func newBench(t *testing.T, opts ...kfake.Opt) *bench {
	t.Helper()
	b := &bench{T: t, frames: wire.NewPool(budget)}
	var err error
	opts = append([]kfake.Opt{kfake.NumBrokers(2), kfake.ListenFn(b.listen)}, opts...)
	if b.Cluster, err = kfake.NewCluster(opts...); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Cluster.Close)
	b.cluster, err = cluster.Open(config.Cluster{Alias: "A", Bootstrap: b.ListenAddrs(), ClientID: "test"}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.cluster.Close)
	b.leaders = cluster.NewLeaders(b.cluster)
	b.fetcher = New(Options{
		Leaders: b.leaders, Frames: b.frames, Rack: "here",
		Dial: func(ctx context.Context, addr string) (*wire.Conn, error) {
			return wire.Dial(ctx, addr, wire.Options{Dial: b.cluster.Dial, ClientID: "test", Frames: b.frames})
		},
		Failed: func(err error) {
			b.mu.Lock()
			defer b.mu.Unlock()
			b.failed = append(b.failed, err)
		},
	})
	return b
}

func (b *bench) listen(network, address string) (net.Listener, error) {
	l, err := net.Listen(network, address)
	return &listener{l, b}, err
}

type listener struct {
	net.Listener
	b *bench
}

func (l *listener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err == nil {
		l.b.mu.Lock()
		defer l.b.mu.Unlock()
		l.b.brokers = append(l.b.brokers, c)
	}
	return c, err
}

// hangUp has the brokers close all connections.
func (b *bench) hangUp() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, c := range b.brokers {
		c.Close()
	}
	b.brokers = nil
}

func (b *bench) failures() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.failed)
}

// run runs the fetcher until the test ends, and then checks that all frames are
// given back.
func (b *bench) run(rs ...*reader) {
	ctx, cancel := context.WithCancel(b.Context())
	done := make(chan struct{})
	go func() { b.fetcher.Run(ctx); close(done) }()
	b.Cleanup(func() {
		cancel()
		<-done
		for _, r := range rs {
			r.p.Stop(1 << 60)
			r.release()
		}
		if n := b.frames.InUse(); n != 0 {
			b.Errorf("%d bytes of frames are still held", n)
		}
	})
}

func (b *bench) create(topic string, partitions int32) {
	b.Helper()
	if err := b.CreateTopic(topic, partitions, nil); err != nil {
		b.Fatal(err)
	}
}

// write stores the next n records in one batch, each padded to size bytes.
func (b *bench) write(topic string, number int32, n, size int) {
	b.Helper()
	var w batch.Builder
	next := b.PartitionInfo(topic, number).HighWatermark
	for i := range n {
		w.Add(batch.Record{Value: fmt.Appendf(nil, "%-*d", size, next+int64(i))})
	}
	bytes, err := w.Build(nil, batch.None)
	if err != nil {
		b.Fatal(err)
	}
	batch.Batch(bytes).Rewrite(batch.NoProducer, batch.NoSequence)
	req := kmsg.NewPtrProduceRequest()
	req.Acks, req.TimeoutMillis = -1, 10000
	rt := kmsg.NewProduceRequestTopic()
	rt.Topic, rt.TopicID = topic, b.TopicInfo(topic).TopicID
	rp := kmsg.NewProduceRequestTopicPartition()
	rp.Partition, rp.Records = number, bytes
	rt.Partitions = append(rt.Partitions, rp)
	req.Topics = append(req.Topics, rt)
	resp, err := b.cluster.Client().Broker(int(b.LeaderFor(topic, number))).RetriableRequest(b.Context(), req)
	if err == nil {
		err = kerr.ErrorForCode(resp.(*kmsg.ProduceResponse).Topics[0].Partitions[0].ErrorCode)
	}
	if err != nil {
		b.Fatal(err)
	}
}

// reader is the owner of a partition. It keeps the offsets that it gets.
type reader struct {
	bench *bench
	p     *Partition
	keeps bool // the frames
	once  bool // pauses after what it gets first

	mu       sync.Mutex
	offsets  map[uint64][]int64 // by generation
	frames   []*wire.Frame
	end      int64
	failures []error
	gaps     []Gap
}

// reader makes a partition of the topic and its owner, and starts it at the offset.
func (b *bench) reader(topic string, number int32, offset int64) *reader {
	b.Helper()
	b.leaders.Follow(topic)
	r := &reader{bench: b, offsets: map[uint64][]int64{}, end: -1}
	r.p = b.fetcher.Partition(topic, number, r)
	r.start(1, offset)
	return r
}

func (r *reader) start(generation uint64, offset int64) {
	r.bench.Helper()
	s := Start{Generation: generation, Offset: offset, LeaderEpoch: -1}
	if info := r.bench.TopicInfo(r.p.topic); info != nil {
		s.TopicID = info.TopicID
	}
	r.p.Start(s)
}

func (r *reader) Fetched(d Data) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for want, set := d.Offset, d.Set; ; {
		b, rest, err := batch.Next(set)
		if err != nil {
			break
		}
		for x, err := range b.Records(8 << 20) {
			if err != nil {
				r.bench.Error(err)
			}
			if x.Offset >= want {
				r.offsets[d.Generation] = append(r.offsets[d.Generation], x.Offset)
			}
		}
		set = rest
	}
	if r.once {
		r.p.Pause()
	}
	if r.keeps {
		r.frames = append(r.frames, d.Frame)
	} else {
		d.Frame.Release()
	}
}

// release gives the frames back that are kept, and keeps no more.
func (r *reader) release() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, f := range r.frames {
		f.Release()
	}
	r.frames, r.keeps = nil, false
}

func (r *reader) Ends(high, _ int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.end = high
}

func (r *reader) Failed(err error, _ int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.failures = append(r.failures, err)
}

func (r *reader) Stopped(g Gap) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.gaps = append(r.gaps, g)
}

// gets waits until the generation has brought the offsets before end, from the
// first on, each once and in order.
func (r *reader) gets(generation uint64, first, end int64) {
	r.bench.Helper()
	r.until(fmt.Sprintf("offsets %d to %d of %s-%d", first, end-1, r.p.topic, r.p.number), func() bool {
		got := r.offsets[generation]
		for i, o := range got {
			if o != first+int64(i) {
				r.bench.Fatalf("offsets %v", got)
			}
		}
		return int64(len(got)) == end-first
	})
}

// until waits for what check looks for in what the reader was told.
func (r *reader) until(what string, check func() bool) {
	r.bench.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	end := time.After(30 * time.Second)
	for {
		r.mu.Lock()
		ok := check()
		r.mu.Unlock()
		if ok {
			return
		}
		select {
		case <-end:
			r.bench.Fatalf("waited in vain for %s", what)
		case <-tick.C:
		}
	}
}

// control has f see each fetch request; an answer of nil is the cluster's own.
func (b *bench) control(f func(node int32, q *kmsg.FetchRequest) *kmsg.FetchResponse) {
	b.ControlKey(int16(kmsg.Fetch), func(q kmsg.Request) (kmsg.Response, error, bool) {
		b.KeepControl()
		if resp := f(b.CurrentNode(), q.(*kmsg.FetchRequest)); resp != nil {
			return resp, nil, true
		}
		return nil, nil, false
	})
}

// asksFor says whether the request names the partition.
func asksFor(q *kmsg.FetchRequest, number int32) bool {
	for _, t := range q.Topics {
		for _, p := range t.Partitions {
			if p.Partition == number {
				return true
			}
		}
	}
	return false
}

// answer answers for the one partition that is asked for.
func answer(q *kmsg.FetchRequest, f func(*kmsg.FetchRequestTopicPartition, *kmsg.FetchResponseTopicPartition)) *kmsg.FetchResponse {
	resp := q.ResponseKind().(*kmsg.FetchResponse)
	for i := range q.Topics {
		st := kmsg.NewFetchResponseTopic()
		st.Topic, st.TopicID = q.Topics[i].Topic, q.Topics[i].TopicID
		for j := range q.Topics[i].Partitions {
			sp := kmsg.NewFetchResponseTopicPartition()
			sp.Partition = q.Topics[i].Partitions[j].Partition
			sp.RecordBatches = []byte{}
			f(&q.Topics[i].Partitions[j], &sp)
			st.Partitions = append(st.Partitions, sp)
		}
		resp.Topics = append(resp.Topics, st)
	}
	return resp
}

// set is a partition's whole record set.
func (b *bench) set(topic string, number int32) []byte {
	b.Helper()
	req := kmsg.NewPtrFetchRequest()
	req.MaxBytes = 64 << 20
	rt := kmsg.NewFetchRequestTopic()
	rt.Topic, rt.TopicID = topic, b.TopicInfo(topic).TopicID
	rp := kmsg.NewFetchRequestTopicPartition()
	rp.Partition, rp.PartitionMaxBytes = number, 64<<20
	rt.Partitions = append(rt.Partitions, rp)
	req.Topics = append(req.Topics, rt)
	resp, err := b.cluster.Client().Broker(int(b.LeaderFor(topic, number))).RetriableRequest(b.Context(), req)
	if err != nil {
		b.Fatal(err)
	}
	return resp.(*kmsg.FetchResponse).Topics[0].Partitions[0].RecordBatches
}
