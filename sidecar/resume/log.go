package resume

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"mirror/sidecar/batch"
	"mirror/sidecar/cluster"
	"mirror/sidecar/wire"
)

const (
	// answerBytes is how much is asked for at a time.
	answerBytes = 1 << 20
	// tries is how often in a row a fetch may fail: leaders move when a broker
	// goes, which is when mirrors are restarted.
	tries = 20
	// pause is the time between two tries.
	pause = 250 * time.Millisecond
	// pollTime is how long the broker may wait for something to send.
	pollTime = 100 * time.Millisecond
)

// Reader reads logs of one cluster, one after the other, on connections of its
// own. It is used by one goroutine.
type Reader struct {
	Leaders *cluster.Leaders // has to follow the topics
	Dial    func(ctx context.Context, addr string) (*wire.Conn, error)
	// Committed marks the data of aborted transactions, and ends a log at the
	// last stable offset.
	Committed bool

	conns map[int32]*wire.Conn
}

// Close ends the connections.
func (r *Reader) Close() {
	for _, c := range r.conns {
		c.Close()
	}
	r.conns = nil
}

// Partition says what to read.
type Partition struct {
	Topic  string
	ID     [16]byte // zero where the cluster has none
	Number int32
	From   int64 // first offset wanted; the first batch may begin before it
	End    int64 // where to end, exclusive; -1: where the log ends by then
}

// Log is the batches of a partition. It ends with an error where it cannot be
// read as far as was asked.
func (r *Reader) Log(ctx context.Context, p Partition) Log {
	return func(yield func(Batch, error) bool) {
		at := p.From
		for p.End < 0 || at < p.End {
			part, err := r.fetch(ctx, p, at)
			if err != nil {
				yield(Batch{}, fmt.Errorf("topic %s, partition %d, offset %d: %w", p.Topic, p.Number, at, err))
				return
			}
			next, more, err := r.batches(part, at, p.End, yield)
			if err != nil {
				yield(Batch{}, fmt.Errorf("topic %s, partition %d: %w", p.Topic, p.Number, err))
				return
			}
			if !more {
				return
			}
			if next == at { // nothing came
				end := part.HighWatermark
				if r.Committed && part.LastStableOffset >= 0 {
					end = part.LastStableOffset
				}
				if p.End < 0 && at >= end {
					return
				}
			}
			at = next
		}
	}
}

// batches gives out those of an answer. It returns the offset after them, and
// whether more is wanted.
func (r *Reader) batches(part *kmsg.FetchResponseTopicPartition, at, end int64, yield func(Batch, error) bool) (next int64, more bool, err error) {
	aborted := batch.NewAborted(nil)
	if r.Committed {
		aborted = batch.NewAborted(part.AbortedTransactions)
	}
	for set := part.RecordBatches; ; {
		b, rest, err := batch.Next(set)
		if err == io.EOF || err == batch.ErrPartial {
			return at, true, nil
		}
		if err == nil {
			err = b.Verify()
		}
		if err != nil {
			return at, false, err
		}
		set = rest
		covered := aborted.Covers(b)
		last := b.LastOffset()
		if last < at {
			continue
		}
		if end >= 0 && b.BaseOffset() >= end || !yield(Batch{Batch: b, Aborted: covered}, nil) {
			return at, false, nil
		}
		at = last + 1
	}
}

// fetch asks the leader, and its successor where it has one.
func (r *Reader) fetch(ctx context.Context, p Partition, at int64) (*kmsg.FetchResponseTopicPartition, error) {
	for n := 1; ; n++ {
		part, err := r.ask(ctx, p, at)
		var k *kerr.Error
		if err == nil || n == tries || ctx.Err() != nil || errors.As(err, &k) && !k.Retriable {
			return part, err
		}
		if rerr := r.Leaders.Refresh(ctx); rerr != nil {
			err = errors.Join(err, rerr)
		}
		select {
		case <-ctx.Done():
			return nil, errors.Join(err, context.Cause(ctx))
		case <-time.After(pause):
		}
	}
}

func (r *Reader) ask(ctx context.Context, p Partition, at int64) (*kmsg.FetchResponseTopicPartition, error) {
	node, _, ok := r.Leaders.Leader(p.Topic, p.Number)
	if !ok || node < 0 {
		return nil, kerr.LeaderNotAvailable
	}
	conn, err := r.conn(ctx, node)
	if err != nil {
		return nil, err
	}
	req := kmsg.NewPtrFetchRequest()
	req.MaxWaitMillis, req.MinBytes, req.MaxBytes = int32(pollTime.Milliseconds()), 1, answerBytes
	version := conn.MaxVersion(kmsg.Fetch.Int16())
	if p.ID == [16]byte{} {
		version = min(version, 12)
	}
	req.SetVersion(version)
	if r.Committed {
		req.IsolationLevel = 1
	}
	t := kmsg.NewFetchRequestTopic()
	t.Topic, t.TopicID = p.Topic, p.ID
	q := kmsg.NewFetchRequestTopicPartition()
	q.Partition, q.FetchOffset, q.PartitionMaxBytes = p.Number, at, answerBytes
	t.Partitions = append(t.Partitions, q)
	req.Topics = append(req.Topics, t)
	got, frame, err := conn.Request(ctx, req)
	if err != nil {
		conn.Close()
		delete(r.conns, node)
		return nil, err
	}
	// The connection has no pool: the answer's memory is the collector's.
	frame.Release()
	resp := got.(*kmsg.FetchResponse)
	if err := kerr.ErrorForCode(resp.ErrorCode); err != nil {
		return nil, err
	}
	if len(resp.Topics) != 1 || len(resp.Topics[0].Partitions) != 1 {
		return nil, errors.New("the broker's answer does not mention the partition")
	}
	part := &resp.Topics[0].Partitions[0]
	return part, kerr.ErrorForCode(part.ErrorCode)
}

func (r *Reader) conn(ctx context.Context, node int32) (*wire.Conn, error) {
	if c := r.conns[node]; c != nil && c.Err() == nil {
		return c, nil
	}
	addr, ok := r.Leaders.Addr(node)
	if !ok {
		return nil, kerr.BrokerNotAvailable
	}
	c, err := r.Dial(ctx, addr)
	if err != nil {
		return nil, err
	}
	if r.conns == nil {
		r.conns = map[int32]*wire.Conn{}
	}
	r.conns[node] = c
	return c, nil
}
