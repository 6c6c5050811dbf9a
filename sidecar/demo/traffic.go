package demo

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"golang.org/x/sync/errgroup"
)

const (
	// step is how often a writer writes.
	step = 20 * time.Millisecond
	// mostMissed of the time between two steps is written for.
	mostMissed = 5 * step
	// transactionSteps is how long a transaction takes, in steps.
	transactionSteps = 15
	// oneAbortedIn transactions of a producer.
	oneAbortedIn = 4
	// flushTime bounds how long writers take to stop.
	flushTime = 10 * time.Second
)

// traffic writes to all topics of a cluster.
type traffic struct {
	alive   context.Context // of the cluster: what was begun is finished until then
	brokers []string
	rate    float64 // records a second, all topics together
	// ahead says by how many records a topic is ahead of the comparison.
	ahead   func(topic string) int
	written map[string]*written // by topic
}

// written counts what consumers that read committed are to see, and what they
// are not.
type written struct {
	records            atomic.Int64 // acknowledged, and committed
	aborted            atomic.Int64
	commits, abortions atomic.Int64 // transactions
}

func newTraffic(alive context.Context, brokers []string, rate int, ahead func(topic string) int) *traffic {
	t := &traffic{alive: alive, brokers: brokers, rate: float64(rate), ahead: ahead, written: map[string]*written{}}
	for _, topic := range topics {
		t.written[topic.name] = &written{}
	}
	return t
}

// run writes until ctx ends, then waits for what is under way.
func (t *traffic) run(ctx context.Context) error {
	work, ctx := errgroup.WithContext(ctx)
	for i, topic := range topics {
		producers := 1
		if topic.transactions {
			producers = 2 // whose transactions overlap
		}
		for p := range producers {
			work.Go(func() error {
				w := &writer{traffic: t, topic: topic, faker: newFaker(uint64(100*i+p), topic.partitions),
					share: topic.share / float64(producers), written: t.written[topic.name]}
				if err := w.run(ctx, p); err != nil {
					return fmt.Errorf("write to the source topic %s: %w", topic.name, err)
				}
				return nil
			})
		}
	}
	return work.Wait()
}

// writer writes to one topic.
type writer struct {
	*traffic
	topic   topic
	faker   *faker
	share   float64
	written *written
	client  *kgo.Client

	mu     sync.Mutex
	failed error // the first record that was refused
}

func (w *writer) run(ctx context.Context, number int) error {
	opts := []kgo.Opt{
		kgo.SeedBrokers(w.brokers...),
		kgo.DefaultProduceTopic(w.topic.name),
		kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.ProducerBatchCompression(w.topic.codec),
		kgo.RecordDeliveryTimeout(flushTime),
	}
	if w.topic.transactions {
		opts = append(opts, kgo.TransactionalID(fmt.Sprintf("demo-%s-%d", w.topic.name, number)))
	}
	client, err := kgo.NewClient(opts...)
	if err != nil {
		return err
	}
	defer client.Close()
	w.client = client

	if w.topic.transactions {
		return w.transactions(ctx)
	}
	if err := w.steps(ctx, -1, func() { w.written.records.Add(1) }); err != nil {
		return err
	}
	return w.flush()
}

// flush waits for what was written.
func (w *writer) flush() error {
	ctx, cancel := context.WithTimeout(w.alive, flushTime)
	defer cancel()
	if err := w.client.Flush(ctx); err != nil {
		return err
	}
	return w.err()
}

// transactions writes one after another until ctx ends; the last one is ended
// as well.
func (w *writer) transactions(ctx context.Context) error {
	for n := 1; ctx.Err() == nil; n++ {
		if err := w.client.BeginTransaction(); err != nil {
			return err
		}
		var records atomic.Int64
		if err := w.steps(ctx, transactionSteps, func() { records.Add(1) }); err != nil {
			return err
		}
		if err := w.flush(); err != nil {
			return err
		}
		if err := w.end(n%oneAbortedIn != 0, &records); err != nil {
			return err
		}
	}
	return nil
}

// end commits or aborts.
func (w *writer) end(commit bool, records *atomic.Int64) error {
	ctx, cancel := context.WithTimeout(w.alive, flushTime)
	defer cancel()
	if err := w.client.EndTransaction(ctx, kgo.TransactionEndTry(commit)); err != nil {
		return err
	}
	if commit {
		w.written.records.Add(records.Load())
		w.written.commits.Add(1)
	} else {
		w.written.aborted.Add(records.Load())
		w.written.abortions.Add(1)
	}
	return nil
}

// steps writes at the topic's rate for a number of steps, -1 for as many as
// there is time for, or until ctx ends.
func (w *writer) steps(ctx context.Context, steps int, acknowledged func()) error {
	due, last := 0.0, time.Now()
	tick := time.NewTicker(step)
	defer tick.Stop()
	for ; steps != 0; steps-- {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil
		}
		// On a busy machine steps are late; a long pause is not made up for.
		passed := min(time.Since(last), mostMissed)
		last = time.Now()
		if err := w.err(); err != nil {
			return err
		}
		if w.ahead(w.topic.name) >= maxAhead {
			continue
		}
		for due += w.rate * w.share * passed.Seconds(); due >= 1; due-- {
			w.write(acknowledged)
		}
	}
	return nil
}

func (w *writer) write(acknowledged func()) {
	w.client.Produce(w.alive, w.topic.record(w.faker), func(_ *kgo.Record, err error) {
		if err == nil {
			acknowledged()
			return
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.failed == nil {
			w.failed = err
		}
	})
}

func (w *writer) err() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.failed
}
