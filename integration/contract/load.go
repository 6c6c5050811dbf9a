package contract

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// Load is a steady stream of numbered records to all partitions of a topic.
type Load struct {
	e      *Env
	client *kgo.Client
	stop   context.CancelFunc
	done   chan struct{}
	failed atomic.Pointer[error]
}

// Load starts a stream of some thousand records a second; it ends with the test,
// or by Stop.
func (e *Env) Load(c *Cluster, topic string, partitions int32) *Load {
	e.Helper()
	// Retries without end, so that a broker may go away meanwhile.
	client := c.Client(e, kgo.ProducerLinger(5*time.Millisecond), kgo.ProducerBatchMaxBytes(16<<10))
	ctx, cancel := context.WithCancel(e.ctx)
	l := &Load{e: e, client: client, stop: cancel, done: make(chan struct{})}
	go func() {
		defer close(l.done)
		tick := time.NewTicker(5 * time.Millisecond)
		defer tick.Stop()
		for n := 0; ; {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			for range 20 {
				v := fmt.Sprintf("%0200d", n)
				r := &kgo.Record{Topic: topic, Partition: int32(n) % partitions, Key: []byte(v[190:]), Value: []byte(v)}
				client.Produce(e.ctx, r, func(_ *kgo.Record, err error) {
					if err != nil {
						l.failed.CompareAndSwap(nil, &err)
					}
				})
				n++
			}
		}
	}()
	// Before the client is closed.
	e.Cleanup(func() { cancel(); <-l.done })
	return l
}

// Stop ends the stream when all of it is acknowledged.
func (l *Load) Stop() {
	l.e.Helper()
	l.stop()
	<-l.done
	err := l.client.Flush(l.e.ctx)
	if failed := l.failed.Load(); failed != nil {
		err = *failed
	}
	if err != nil {
		l.e.Fatalf("the load: %v", err)
	}
}
