package contract

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// Load is a steady stream of numbered records to all partitions of a topic.
type Load struct {
	e      *Env
	stop   context.CancelFunc
	done   chan struct{}
	flush  func() error
	failed atomic.Int64
}

// Load starts a stream of some thousand records a second; it ends with the test,
// or by Stop.
func (e *Env) Load(c *Cluster, topic string, partitions int32) *Load {
	e.Helper()
	return e.load(c, topic, partitions, 20, 0)
}

// AgedLoad is Load with records that were made some time ago.
func (e *Env) AgedLoad(c *Cluster, topic string, partitions int32, age time.Duration) *Load {
	e.Helper()
	return e.load(c, topic, partitions, 20, age)
}

// load is a stream with so many records in each burst.
func (e *Env) load(c *Cluster, topic string, partitions int32, burst int, age time.Duration, opts ...kgo.Opt) *Load {
	e.Helper()
	// Retries without end, so that a broker may go away meanwhile, and soon. Some of
	// what such a broker answers the client does not retry: that burst is given up,
	// and the stream goes on with the next number.
	client := c.Client(e, append([]kgo.Opt{kgo.ProducerLinger(5 * time.Millisecond), kgo.ProducerBatchMaxBytes(16 << 10),
		kgo.ProduceRequestTimeout(3 * time.Second), kgo.RequestTimeoutOverhead(2 * time.Second), kgo.UnknownTopicRetries(-1)}, opts...)...)
	l := &Load{e: e}
	l.flush = func() error { return client.Flush(e.ctx) }
	n := 0
	l.run(5*time.Millisecond, func() {
		for range burst {
			r := numbered(topic, n, partitions)
			r.Timestamp = time.Now().Add(-age)
			client.Produce(e.ctx, r, func(_ *kgo.Record, err error) {
				if err != nil && e.ctx.Err() == nil && l.failed.Add(1) == 1 {
					e.Logf("a record of the load was not written: %v", err)
				}
			})
			n++
		}
	})
	return l
}

// numbered is the n-th record of a stream.
func numbered(topic string, n int, partitions int32) *kgo.Record {
	v := fmt.Sprintf("%0200d", n)
	return &kgo.Record{Topic: topic, Partition: int32(n) % partitions, Key: []byte(v[190:]), Value: []byte(v)}
}

// run calls step again and again, until Stop.
func (l *Load) run(pace time.Duration, step func()) {
	ctx, cancel := context.WithCancel(l.e.ctx)
	l.stop, l.done = cancel, make(chan struct{})
	go func() {
		defer close(l.done)
		tick := time.NewTicker(pace)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			step()
		}
	}()
	// Before the client is closed.
	l.e.Cleanup(func() { cancel(); <-l.done })
}

// Stop ends the stream when all of it is acknowledged or given up.
func (l *Load) Stop() {
	l.e.Helper()
	l.stop()
	<-l.done
	if err := l.flush(); err != nil {
		l.e.Fatalf("the load: %v", err)
	}
}

// Traffic is a stream to each of several topics of the source: one for each
// codec, and one with transactions of which some are aborted.
type Traffic struct {
	Topics []string
	Plain  []string // those without transactions, which wait for one another
	e      *Env
	loads  []*Load
}

// Traffic makes the topics, with so many partitions each, and starts
// some thousand records a second to all of them together.
func (e *Env) Traffic(partitions int32) *Traffic {
	e.Helper()
	t := &Traffic{e: e}
	add := func(name string) string {
		topic := e.Topic(name)
		e.Create(e.Source, topic, partitions)
		t.Topics = append(t.Topics, topic)
		return topic
	}
	for _, c := range codecs {
		t.loads = append(t.loads, e.load(e.Source, add(c.name), partitions, 2, 0, kgo.ProducerBatchCompression(c.codec)))
	}
	t.Plain = slices.Clone(t.Topics)
	t.loads = append(t.loads, e.transactions(add("transactions"), partitions))
	return t
}

// Stop ends the streams when all of them is acknowledged, and no transaction is
// open.
func (t *Traffic) Stop() {
	t.e.Helper()
	for _, l := range t.loads {
		l.Stop()
	}
	for _, topic := range t.Topics {
		t.e.Settled(topic)
	}
}

// transactions is a stream of transactions, of which one in four is aborted. A
// producer that a broker's end has put out of use gives way to a new one.
func (e *Env) transactions(topic string, partitions int32) *Load {
	e.Helper()
	l := &Load{e: e, flush: func() error { return nil }} // a step ends what it begins
	var client *kgo.Client
	n := 0
	l.run(50*time.Millisecond, func() {
		if client == nil {
			client = e.transactional("load")
		}
		err := client.BeginTransaction()
		for burst := 1 + rand.IntN(60); err == nil && burst > 0; burst-- {
			client.Produce(e.ctx, numbered(topic, n, partitions), nil)
			n++
		}
		if err == nil {
			err = client.Flush(e.ctx)
		}
		if err == nil {
			err = client.EndTransaction(e.ctx, kgo.TransactionEndTry(rand.IntN(4) > 0))
		}
		if err != nil {
			client.Close()
			client = nil
		}
	})
	return l
}
