package produce

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"
	"go.uber.org/goleak"

	"mirror/sidecar/batch"
	"mirror/sidecar/cluster"
	"mirror/sidecar/config"
	"mirror/sidecar/wire"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// bench is a producer that runs against a cluster of two brokers in this process.
type bench struct {
	*testing.T
	*kfake.Cluster
	producer *Producer
	cluster  *cluster.Cluster
	leaders  *cluster.Leaders
	frames   *wire.Pool

	mu     sync.Mutex
	failed []error // connections
}

func newBench(t *testing.T, opts ...kfake.Opt) *bench {
	t.Helper()
	b := &bench{T: t, frames: wire.NewPool(1 << 20)}
	var err error
	if b.Cluster, err = kfake.NewCluster(append([]kfake.Opt{kfake.NumBrokers(2)}, opts...)...); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Cluster.Close)
	quiet := slog.New(slog.DiscardHandler)
	b.cluster, err = cluster.Open(config.Cluster{Alias: "B", Bootstrap: b.ListenAddrs(), ClientID: "test"}, quiet)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.cluster.Close)
	b.leaders = cluster.NewLeaders(b.cluster)
	b.producer = New(Options{
		Leaders: b.leaders, Frames: b.frames, MaxDecompressed: 1 << 20,
		Dial: func(ctx context.Context, addr string) (*wire.Conn, error) {
			return wire.Dial(ctx, addr, wire.Options{Dial: b.cluster.Dial, ClientID: "test"})
		},
		Failed: func(err error) {
			b.mu.Lock()
			defer b.mu.Unlock()
			b.failed = append(b.failed, err)
		},
	})
	return b
}

// run runs the producer until the test ends, and then checks that all frames are
// given back.
func (b *bench) run(ps ...*Partition) {
	ctx, cancel := context.WithCancel(b.Context())
	done := make(chan struct{})
	go func() { b.producer.Run(ctx); close(done) }()
	b.Cleanup(func() {
		cancel()
		<-done
		for _, p := range ps {
			p.Stop()
		}
		if n := b.frames.InUse() + b.producer.SetAside(); n != 0 {
			b.Errorf("%d bytes of frames are still held", n)
		}
	})
}

func (b *bench) create(topic string, partitions int32, configs map[string]string) {
	b.Helper()
	if err := b.CreateTopic(topic, partitions, configs); err != nil {
		b.Fatal(err)
	}
}

// partition makes a partition of the topic, ready to take batches, whose owner
// pushes records that hold their source offsets.
func (b *bench) partition(topic string, number int32) *source {
	b.Helper()
	b.leaders.Follow(topic)
	s := &source{bench: b, generation: 1, acked: -1, shedFrom: -1}
	s.p = b.producer.Partition(topic, number, s)
	id, epoch, err := b.cluster.InitProducerID(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	start := Start{Generation: 1, Producer: batch.Producer{ID: id, Epoch: epoch}}
	if info := b.TopicInfo(topic); info != nil && b.topicIDs() {
		start.TopicID = info.TopicID
	}
	s.p.Reset(start)
	return s
}

// topicIDs says whether the cluster tells the ids of topics.
func (b *bench) topicIDs() bool {
	ts, err := b.cluster.Topics(b.Context(), nil)
	if err != nil {
		b.Fatal(err)
	}
	for _, t := range ts {
		return t.ID != [16]byte{}
	}
	return false
}

// source is the owner of a partition: it keeps what it is told.
type source struct {
	bench *bench
	p     *Partition
	next  int64 // source offset

	mu         sync.Mutex
	generation uint64
	acks       []Ack
	acked      int64
	refused    *Refusal
	lost       error
	shedFrom   int64 // -1: nothing is shed
	readies    int
	failures   []error
}

func (s *source) Acknowledged(a Ack) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.acks, s.acked = append(s.acks, a), a.Last
}

func (s *source) Refused(r Refusal) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refused = &r
}

func (s *source) Lost(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lost = err
}

func (s *source) Shed(from int64) uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.generation++
	s.shedFrom = from
	return s.generation
}

func (s *source) Ready() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.readies++
}

func (s *source) Starved() {}

func (s *source) Failed(err error, _ int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failures = append(s.failures, err)
}

// entry is a batch of the next n records, padded to about size bytes each.
func (s *source) entry(codec batch.Codec, n, size int) Entry {
	s.bench.Helper()
	return s.entryOf(0, codec, n, size)
}

// entryOf is an entry whose records have this age.
func (s *source) entryOf(age time.Duration, codec batch.Codec, n, size int) Entry {
	s.bench.Helper()
	var w batch.Builder
	e := Entry{First: s.next, Sources: 1}
	for range n {
		w.Add(batch.Record{Value: fmt.Appendf(nil, "%-*d", size, s.next), Timestamp: time.Now().Add(-age).UnixMilli()})
		s.next++
	}
	bytes, err := w.Build(nil, codec)
	if err != nil {
		s.bench.Fatal(err)
	}
	e.Frame = s.bench.frames.Get(len(bytes))
	e.Batch, e.Last = batch.Batch(e.Frame.Bytes()), s.next-1
	copy(e.Batch, bytes)
	return e
}

// push pushes the next n records in a batch. While something is shed it only
// makes the log longer that is read again later.
func (s *source) push(codec batch.Codec, n int) {
	s.bench.Helper()
	s.mu.Lock()
	g, shed := s.generation, s.shedFrom >= 0
	s.mu.Unlock()
	if shed {
		s.next += int64(n)
		return
	}
	s.p.Push(g, s.entry(codec, n, 1))
	s.p.Send()
}

// until waits for what check looks for, which is called with what the owner was
// told.
func (s *source) until(what string, check func() bool) {
	s.bench.Helper()
	eventually(s.bench.T, what, func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return check()
	})
}

// stored waits until all that was pushed is acknowledged, and checks the log.
func (s *source) stored() {
	s.bench.Helper()
	s.until("acknowledgements", func() bool { return s.acked == s.next-1 })
	s.holds(s.next)
}

// holds checks that the log holds the records before the offset, once each and in
// order.
func (s *source) holds(end int64) {
	s.bench.Helper()
	got := s.bench.values(s.p.topic, s.p.number)
	if int64(len(got)) != end {
		s.bench.Fatalf("the log has %d records, want %d: %v", len(got), end, got)
	}
	for i, v := range got {
		if v != int64(i) {
			s.bench.Fatalf("the log has record %d at offset %d: %v", v, i, got)
		}
	}
}

// values are those of a partition's records.
func (b *bench) values(topic string, number int32) (vs []int64) {
	b.Helper()
	for _, x := range b.batches(topic, number) {
		vs = append(vs, valuesOf(x)...)
	}
	return vs
}

// batches are those of a partition's log.
func (b *bench) batches(topic string, number int32) (bs []batch.Batch) {
	b.Helper()
	req := kmsg.NewPtrFetchRequest()
	req.MaxBytes = 64 << 20
	rt := kmsg.NewFetchRequestTopic()
	rt.Topic, rt.TopicID = topic, b.TopicInfo(topic).TopicID
	rp := kmsg.NewFetchRequestTopicPartition()
	rp.Partition, rp.PartitionMaxBytes = number, 64<<20
	rt.Partitions = append(rt.Partitions, rp)
	req.Topics = append(req.Topics, rt)
	resp, err := b.cluster.Client().Broker(int(b.LeaderFor(topic, number))).Request(b.Context(), req)
	if err != nil {
		b.Fatal(err)
	}
	set := resp.(*kmsg.FetchResponse).Topics[0].Partitions[0].RecordBatches
	for {
		x, rest, err := batch.Next(set)
		if err != nil {
			return bs
		}
		bs, set = append(bs, x), rest
	}
}

// eventually waits until check is true.
func eventually(t *testing.T, what string, check func() bool) {
	t.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	end := time.After(30 * time.Second)
	for !check() {
		select {
		case <-end:
			t.Fatalf("waited in vain for %s", what)
		case <-tick.C:
		}
	}
}

// requests counts the produce requests that the cluster gets.
func (b *bench) requests() func() []*kmsg.ProduceRequest {
	var mu sync.Mutex
	var all []*kmsg.ProduceRequest
	b.ControlKey(int16(kmsg.Produce), func(q kmsg.Request) (kmsg.Response, error, bool) {
		mu.Lock()
		defer mu.Unlock()
		all = append(all, q.(*kmsg.ProduceRequest))
		return nil, nil, false
	})
	return func() []*kmsg.ProduceRequest {
		mu.Lock()
		defer mu.Unlock()
		return append([]*kmsg.ProduceRequest(nil), all...)
	}
}
