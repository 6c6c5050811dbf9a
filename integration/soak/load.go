package soak

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// stream is a topic and what is written to it, at a constant rate.
type stream struct {
	name       string
	partitions int32
	codecs     []kgo.CompressionCodec // one producer each
	rate       int                    // records a second, all producers together; 0: idle
	bytes      int                    // of a value, about
	keys       int                    // different ones; 0: null
	batch      int32                  // bytes at most; 0: the client's default
	linger     time.Duration
	compacted  bool
	abort      int // one in so many transactions; 0: no transactions
}

func one(c kgo.CompressionCodec) []kgo.CompressionCodec { return []kgo.CompressionCodec{c} }

// streams are some 4 MB a second, as small, large and huge batches of all codecs,
// and some hundred partitions with nothing.
var streams = []stream{
	{name: "small", partitions: 4, codecs: one(kgo.NoCompression()), rate: 300, bytes: 200, batch: 1 << 10},
	{name: "large", partitions: 4, codecs: one(kgo.NoCompression()), rate: 20, bytes: 60_000, keys: 1e6, batch: 900_000, linger: time.Second},
	{name: "gzip", partitions: 2, codecs: one(kgo.GzipCompression()), rate: 300, bytes: 1000, linger: 50 * time.Millisecond},
	{name: "snappy", partitions: 2, codecs: one(kgo.SnappyCompression()), rate: 400, bytes: 1000, keys: 1000, linger: 50 * time.Millisecond},
	{name: "lz4", partitions: 2, codecs: one(kgo.Lz4Compression()), rate: 500, bytes: 1000, keys: 1000, batch: 16 << 10, linger: 20 * time.Millisecond},
	{name: "zstd", partitions: 2, codecs: one(kgo.ZstdCompression()), rate: 500, bytes: 1000, linger: 500 * time.Millisecond},
	{name: "mixed", partitions: 2, codecs: []kgo.CompressionCodec{kgo.NoCompression(), kgo.Lz4Compression(), kgo.GzipCompression()}, rate: 300, bytes: 700, keys: 50},
	{name: "compacted", partitions: 2, codecs: one(kgo.Lz4Compression()), rate: 200, bytes: 500, keys: 500, compacted: true},
	{name: "transactions", partitions: 3, codecs: []kgo.CompressionCodec{kgo.NoCompression(), kgo.ZstdCompression()}, rate: 400, bytes: 600, keys: 1000, abort: 4},
	{name: "idle", partitions: 400},
}

// retention keeps disks small: so much of a partition, and a segment more.
const (
	retentionBytes = 64 * mib
	segmentBytes   = 8 * mib
	// ahead of the comparison a topic may get so far and no further, or retention
	// would take what is not compared yet.
	aheadBytes = 32 * mib
)

func (s stream) configs() []string {
	c := []string{"segment.bytes", fmt.Sprint(segmentBytes), "retention.bytes", fmt.Sprint(retentionBytes)}
	if s.compacted {
		c = append(c, "cleanup.policy", "compact", "min.cleanable.dirty.ratio", "0.2", "segment.ms", "30000")
	}
	return c
}

// writer is one producer of a stream.
type writer struct {
	stream
	topic   string
	number  int
	connect func(...kgo.Opt) (*kgo.Client, error)
	read    func() uint64  // records that were compared of the topic
	written *atomic.Uint64 // records that were acknowledged
	aborted *atomic.Uint64 // of them those that no consumer is to see
	// failures counts the clients that had to be replaced.
	failures *atomic.Uint64
	random   *rand.Rand
	failed   atomic.Pointer[error]
	open     atomic.Uint64 // records of the transaction that is open
}

// tick is how often a writer writes.
const tick = 50 * time.Millisecond

// run writes until ctx ends. alive is for what was begun until then.
func (w *writer) run(ctx, alive context.Context) error {
	opts := []kgo.Opt{kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.ProducerLinger(w.linger),
		kgo.ProducerBatchCompression(w.codecs[w.number])}
	if w.batch > 0 {
		opts = append(opts, kgo.ProducerBatchMaxBytes(w.batch))
	}
	if w.abort > 0 {
		opts = append(opts, kgo.TransactionalID(fmt.Sprintf("%s-%d", w.topic, w.number)))
	}
	for ctx.Err() == nil {
		client, err := w.connect(opts...)
		if err != nil {
			return err
		}
		if w.abort == 0 {
			err = w.write(ctx, alive, client, -1)
		} else {
			err = w.transactions(ctx, alive, client)
		}
		client.Close()
		if err != nil {
			// As when a link is cut. What it wrote last may be there or not, committed
			// or not: what the source has is what counts.
			w.failures.Add(1)
		}
	}
	return alive.Err()
}

func (w *writer) transactions(ctx, alive context.Context, client *kgo.Client) error {
	const ticks = 10
	// One that fails is aborted, as far as anybody can tell.
	defer func() { w.aborted.Add(w.open.Load()) }()
	for n := 1; ctx.Err() == nil; n++ {
		w.open.Store(0)
		if err := client.BeginTransaction(); err != nil {
			return err
		}
		if err := w.write(ctx, alive, client, ticks); err != nil {
			return err
		}
		commit := kgo.TransactionEndTry(n%w.abort != 0)
		if err := client.EndTransaction(alive, commit); err != nil {
			return err
		}
		if !commit {
			w.aborted.Add(w.open.Load())
		}
	}
	w.open.Store(0)
	return nil
}

// write writes for so many ticks, -1: until ctx ends, and flushes.
func (w *writer) write(ctx, alive context.Context, client *kgo.Client, ticks int) error {
	due, perTick := 0.0, float64(w.rate)*tick.Seconds()/float64(len(w.codecs))
	t := time.NewTicker(tick)
	defer t.Stop()
	for ; ticks != 0 && ctx.Err() == nil; ticks-- {
		select {
		case <-t.C:
		case <-ctx.Done():
			continue
		}
		if !w.compacted && w.written.Load() > w.aborted.Load()+w.read()+uint64(aheadBytes/w.bytes) {
			continue
		}
		for due += perTick; due >= 1; due-- {
			client.Produce(alive, w.record(), func(_ *kgo.Record, err error) {
				if err != nil {
					w.failed.CompareAndSwap(nil, &err)
				} else {
					w.written.Add(1)
					w.open.Add(1)
				}
			})
		}
	}
	err := client.Flush(alive)
	if failed := w.failed.Swap(nil); failed != nil {
		err = *failed
	}
	return err
}

// record is half noise and half text that compresses.
func (w *writer) record() *kgo.Record {
	r := &kgo.Record{Topic: w.topic, Partition: w.random.Int32N(w.partitions)}
	size := w.bytes/2 + w.random.IntN(w.bytes)
	r.Value = make([]byte, size/2, size+32)
	for i := range r.Value {
		r.Value[i] = byte(w.random.Uint32())
	}
	for len(r.Value) < size {
		r.Value = append(r.Value, "all work and no play "...)
	}
	if w.keys > 0 {
		r.Key = fmt.Appendf(nil, "key-%d", w.random.IntN(w.keys))
	}
	if w.compacted {
		r.Partition = int32(len(r.Key)) % w.partitions // a key's own, whatever it is
		if w.random.IntN(10) == 0 {
			r.Value = nil
		}
	}
	if w.random.IntN(8) == 0 {
		r.Headers = []kgo.RecordHeader{{Key: "trace", Value: []byte(strings.Repeat("f", w.random.IntN(40)))}, {Key: "null"}}
	}
	return r
}
