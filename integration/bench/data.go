package main

import (
	"context"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

const valueBytes = 1 << 10

// dataset is what a case's source topic holds.
type dataset struct {
	Records int64 `json:"records"`
	Payload int64 `json:"payload_bytes"` // values
	Stored  int64 `json:"stored_bytes"`  // batches, as they lie on the source and cross the wire
	Batches int64 `json:"batches"`
}

var codecs = map[string]kgo.CompressionCodec{
	"none": kgo.NoCompression(), "lz4": kgo.Lz4Compression(), "zstd": kgo.ZstdCompression(),
}

// fill makes the source topic of a case with size bytes of payload. The same
// case and size give the same records.
func (l *lab) fill(ctx context.Context, c benchCase, size int64) (dataset, error) {
	if err := l.source.create(ctx, c.Name, c.Partitions); err != nil {
		return dataset{}, err
	}
	d := dataset{Records: max(1, size/c.Share/valueBytes)}
	d.Payload = d.Records * valueBytes
	counter := &batchCounter{left: d.Records, all: make(chan struct{})}
	options := []kgo.Opt{kgo.SeedBrokers(l.source.near), kgo.WithHooks(counter),
		kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.ProducerBatchCompression(codecs[c.Codec]),
		kgo.ProducerBatchMaxBytes(int32(c.BatchBytes)), kgo.MaxBufferedRecords(100_000)}
	write := fillPlain
	if c.Transaction > 0 {
		write = fillTransactions
	}
	if err := write(ctx, c, d.Records, options); err != nil {
		return d, fmt.Errorf("fill topic %s: %w", c.Name, err)
	}
	select {
	case <-counter.all:
	case <-ctx.Done():
		return d, ctx.Err()
	}
	d.Stored, d.Batches = counter.bytes, counter.batches
	return d, nil
}

// fillPlain writes the records without transactions, in full batches.
func fillPlain(ctx context.Context, c benchCase, records int64, options []kgo.Opt) error {
	// Batches are sent when they are full, and not before.
	client, err := kgo.NewClient(append(options, kgo.ProducerLinger(time.Second))...)
	if err != nil {
		return err
	}
	defer client.Close()
	var once sync.Once
	var failed error
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	partitions, random := c.busy(), rand.New(rand.NewPCG(1, 2))
	for i := range records {
		r := &kgo.Record{Topic: c.Name, Partition: partitions[i%int64(len(partitions))],
			Key: binary.BigEndian.AppendUint64(nil, uint64(i)), Value: value(random, i)}
		client.Produce(ctx, r, func(_ *kgo.Record, err error) {
			if err != nil {
				once.Do(func() { failed = err; cancel() })
			}
		})
		if ctx.Err() != nil {
			break
		}
	}
	// A flush that fails leaves promises that are kept by Close.
	flushed := client.Flush(ctx)
	client.Close()
	if failed == nil {
		failed = flushed
	}
	return failed
}

// batchCounter counts what a client has produced. The client tells it later than
// whoever waits for the records.
type batchCounter struct {
	mu             sync.Mutex
	left           int64 // records
	batches, bytes int64
	all            chan struct{} // closed when none is left
}

const batchHeaderBytes = 61 // what kgo's metrics leave out

// OnProduceBatchWritten is a hook of kgo's.
func (b *batchCounter) OnProduceBatchWritten(_ kgo.BrokerMetadata, _ string, _ int32, m kgo.ProduceBatchMetrics) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.batches++
	b.bytes += int64(m.CompressedBytes) + batchHeaderBytes
	if b.left -= int64(m.NumRecords); b.left == 0 {
		close(b.all)
	}
}

var words = []string{"account", "address", "amount", "approved", "basket", "billing", "cancelled", "carrier", "checkout",
	"confirmed", "country", "courier", "currency", "customer", "delivery", "discount", "dispatched", "entry", "failed",
	"gateway", "invoice", "item", "label", "merchant", "note", "order", "packed", "paid", "partial", "payment", "pending",
	"postcode", "price", "quantity", "receipt", "refund", "region", "rejected", "retry", "returned", "review", "scheduled",
	"session", "settled", "shipment", "signature", "stock", "street", "subtotal", "supplier", "tax", "terminal", "total",
	"tracking", "transfer", "updated", "voucher", "wallet", "warehouse", "weight"}

// value is a JSON object of valueBytes bytes, such as a shop might write.
func value(r *rand.Rand, i int64) []byte {
	b := make([]byte, 0, valueBytes+64)
	b = fmt.Appendf(b, `{"id":"%016x%016x","sequence":%d,"at":"2026-01-02T15:04:%02d.%06dZ","user":{"id":%d,"session":"%08x"},"state":%q,`,
		r.Uint64(), r.Uint64(), i, r.IntN(60), r.IntN(1e6), r.IntN(1e7), r.Uint32(), words[r.IntN(len(words))])
	b = append(b, `"lines":[`...)
	for n := range 6 {
		if n > 0 {
			b = append(b, ',')
		}
		b = fmt.Appendf(b, `{"sku":"%08x","name":"%s %s","quantity":%d,"price":%d.%02d}`, r.Uint32(),
			words[r.IntN(len(words))], words[r.IntN(len(words))], 1+r.IntN(9), r.IntN(500), r.IntN(100))
	}
	b = append(b, `],"note":"`...)
	for len(b) < valueBytes-2 {
		b = append(append(b, words[r.IntN(len(words))]...), ' ')
	}
	return append(b[:valueBytes-2], `"}`...)
}
