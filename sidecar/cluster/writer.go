package cluster

import (
	"context"
	"math"
	"sync"

	"github.com/twmb/franz-go/pkg/kgo"
)

// Writer writes records of the mirror's own to topics of a cluster. It connects
// with the first write, and again after one that failed. Its methods may be called
// by several goroutines.
type Writer struct {
	cluster *Cluster
	options []kgo.Opt

	mu     sync.Mutex
	client *kgo.Client     // nil: not connected
	ready  map[string]bool // topics that were prepared on this connection
}

// NewWriter does no I/O. The options are the client's, beside acks from all in-sync
// replicas. What is written together goes out together: without the flushing by hand the
// first record of each Write would go out alone, in a request of its own.
func NewWriter(c *Cluster, options ...kgo.Opt) *Writer {
	return &Writer{cluster: c, options: append(options, kgo.RequiredAcks(kgo.AllISRAcks()),
		kgo.ManualFlushing(), kgo.MaxBufferedRecords(math.MaxInt32))}
}

// Write writes records, in order, and returns nil once all in-sync replicas have
// every one of them. What can be retried is retried until ctx ends. After an error
// some of them may be there. Before the first record of a topic prepare is called
// with it, again after an error.
func (w *Writer) Write(ctx context.Context, records []*kgo.Record, prepare func(ctx context.Context, topic string) error) (err error) {
	if len(records) == 0 {
		return nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	defer func() {
		// The topic may have been deleted, or the producer be one that the cluster will
		// not take again.
		if err != nil {
			w.hangUp()
		}
	}()
	if w.client == nil {
		if w.client, err = w.cluster.NewClient(w.options...); err != nil {
			return err
		}
		w.ready = map[string]bool{}
	}
	for _, r := range records {
		if w.ready[r.Topic] {
			continue
		}
		if err := prepare(ctx, r.Topic); err != nil {
			return err
		}
		w.ready[r.Topic] = true
	}
	return w.cluster.Explain(w.produce(ctx, records))
}

// produce returns when ctx ends, unlike the client's own ProduceSync, also while the
// fate of a record is not known.
func (w *Writer) produce(ctx context.Context, records []*kgo.Record) (failed error) {
	acks := make(chan error, len(records)) // holds them all: nobody may be left to read
	for _, r := range records {
		w.client.Produce(ctx, r, func(_ *kgo.Record, err error) { acks <- err })
	}
	if err := w.client.Flush(ctx); err != nil {
		return context.Cause(ctx)
	}
	for range records {
		select {
		case err := <-acks:
			if failed == nil {
				failed = err
			}
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return failed
}

func (w *Writer) hangUp() {
	if w.client != nil {
		w.client.Close()
		w.client = nil
	}
}

// Close ends the connection.
func (w *Writer) Close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.hangUp()
}
