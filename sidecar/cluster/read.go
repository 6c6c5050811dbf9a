package cluster

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// Bounds of a Read.
const (
	readBytes          = 4 << 20 // one answer, unless a single batch is larger
	readPartitionBytes = 1 << 20
	readRetries        = 20 // rounds in a row that bring nothing
	readWait           = 50 * time.Millisecond
	readWaitMax        = time.Second
)

// Read reads a topic of the mirror's own: the committed records of all partitions, from
// the offsets of from on, where they are not in it from the beginning, up to what was
// the end of a partition when it was first read. It hands them to take, those of a
// partition in order, and returns where it ended. Nothing of a record is used again
// after take, so it may be kept. After an error some of the topic has been taken. An
// error wraps kerr.UnknownTopicOrPartition where the topic does not exist.
//
// It fetches on its own rather than with a consumer of kgo, which does not say how far
// it got when a partition ends in what it does not hand out: markers, aborted records,
// an emptied batch.
func (c *Cluster) Read(ctx context.Context, topic string, from map[int32]int64, take func(*kgo.Record)) (ends map[int32]int64, err error) {
	r := &reading{cluster: c, topic: topic, next: maps.Clone(from), end: map[int32]int64{}, take: take}
	if r.next == nil {
		r.next = map[int32]int64{}
	}
	for failed := 0; ; {
		done, progress, err := r.round(ctx)
		switch {
		case done:
			return r.next, nil
		case err != nil && (ctx.Err() != nil || lasting(err)):
			return nil, err
		case progress:
			failed = 0
			continue
		}
		if failed++; failed == readRetries {
			if err == nil {
				err = errors.New("its brokers answer, but with nothing")
			}
			return nil, fmt.Errorf("gave up after %d attempts: %w", readRetries, err)
		}
		select {
		case <-time.After(min(readWait<<min(failed, 10), readWaitMax)):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// reading is the state of a Read.
type reading struct {
	cluster   *Cluster
	topic     string
	next, end map[int32]int64 // by partition; no end before its first answer
	take      func(*kgo.Record)
}

// lasting says that another attempt would bring the same error.
func lasting(err error) bool {
	var ke *kerr.Error
	return errors.As(err, &ke) && !ke.Retriable || errors.As(err, new(*damage))
}

// damage is a record batch that cannot be read.
type damage struct {
	partition int32
	offset    int64
	err       error
}

func (d *damage) Error() string {
	return fmt.Sprintf("partition %d is damaged after offset %d: %v", d.partition, d.offset, d.err)
}

func (d *damage) Unwrap() error { return d.err }

// round asks every leader once for what is left of its partitions. An error
// says why some of it could not be read in this round.
func (r *reading) round(ctx context.Context) (done, progress bool, err error) {
	found, err := r.cluster.Topics(ctx, []string{r.topic})
	if err != nil {
		return false, false, err
	}
	topic, ok := found[r.topic]
	if !ok {
		return false, false, fmt.Errorf("it does not exist: was it deleted? it is made again: %w", kerr.UnknownTopicOrPartition)
	}
	if topic.Err != nil {
		return false, false, r.cluster.Explain(topic.Err)
	}
	leaders := map[int32][]int32{}
	for n, p := range topic.Partitions {
		if end, ok := r.end[int32(n)]; ok && r.next[int32(n)] >= end {
			continue
		}
		leaders[p.Leader] = append(leaders[p.Leader], int32(n))
	}
	for leader, numbers := range leaders {
		if leader < 0 {
			err = fmt.Errorf("partition %d has no leader", numbers[0])
			continue
		}
		moved, e := r.fetch(ctx, topic, leader, numbers)
		progress = progress || moved
		if e != nil {
			err = e
			if lasting(e) {
				return false, progress, err
			}
		}
	}
	return len(leaders) == 0, progress, err
}

func (r *reading) fetch(ctx context.Context, topic Topic, leader int32, numbers []int32) (progress bool, err error) {
	req := kmsg.NewPtrFetchRequest()
	req.MinBytes = 0 // answer at once
	req.MaxWaitMillis = 0
	req.MaxBytes = readBytes
	req.IsolationLevel = 1
	rt := kmsg.NewFetchRequestTopic()
	rt.Topic, rt.TopicID = topic.Name, topic.ID
	for _, n := range numbers {
		rp := kmsg.NewFetchRequestTopicPartition()
		rp.Partition = n
		rp.FetchOffset = r.next[n]
		rp.PartitionMaxBytes = readPartitionBytes
		rt.Partitions = append(rt.Partitions, rp)
	}
	req.Topics = append(req.Topics, rt)

	answer, err := r.cluster.client.Broker(int(leader)).Request(ctx, req)
	if err != nil {
		return false, fmt.Errorf("fetch from broker %d: %w", leader, err)
	}
	resp := answer.(*kmsg.FetchResponse)
	if err := kerr.ErrorForCode(resp.ErrorCode); err != nil {
		return false, fmt.Errorf("fetch from broker %d: %w", leader, err)
	}
	for i := range resp.Topics {
		for j := range resp.Topics[i].Partitions {
			moved, e := r.read(&resp.Topics[i].Partitions[j])
			progress = progress || moved
			if e != nil && !lasting(err) {
				err = e
			}
		}
	}
	return progress, err
}

// read takes in the answer for one partition.
func (r *reading) read(p *kmsg.FetchResponseTopicPartition) (progress bool, err error) {
	n := p.Partition
	switch err := kerr.ErrorForCode(p.ErrorCode); {
	case errors.Is(err, kerr.OffsetOutOfRange) && p.LogStartOffset > r.next[n]:
		// Records before the log start were deleted.
		r.next[n] = p.LogStartOffset
		return true, nil
	case err != nil:
		return false, fmt.Errorf("partition %d: %w", n, err)
	}
	if _, ok := r.end[n]; !ok {
		r.end[n] = p.LastStableOffset
		progress = true
	}
	fetched, next := kgo.ProcessFetchPartition(kgo.ProcessFetchPartitionOpts{
		Offset:         r.next[n],
		IsolationLevel: kgo.ReadCommitted(),
		Topic:          r.topic,
		Partition:      n,
	}, p, kgo.DefaultDecompressor(), nil)
	if fetched.Err != nil {
		return false, &damage{partition: n, offset: next, err: fetched.Err}
	}
	for _, record := range fetched.Records {
		r.take(record)
	}
	progress = progress || next > r.next[n]
	r.next[n] = next
	return progress, nil
}
