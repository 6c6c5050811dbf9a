package positions

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"mirror/sidecar/cluster"
)

// Bounds of a Load.
const (
	fetchBytes     = 4 << 20 // one answer, unless a single batch is larger
	partitionBytes = 1 << 20
	retries        = 20 // rounds in a row that bring nothing
	retryWait      = 50 * time.Millisecond
	retryWaitMax   = time.Second
)

// Load reads the positions of all partitions: all of the topic's committed
// records, up to what was its end when a partition was first read. The last
// record of a key wins, a tombstone removes. Records of other connectors and
// clusters are passed over, and so are those that nobody can read, which is
// logged with their number.
func (s *Store) Load(ctx context.Context) (map[Key]Position, error) {
	l := newLoader(s)
	if err := l.run(ctx); err != nil {
		return nil, fmt.Errorf("load positions from topic %q on cluster %q: %w", s.topic, s.cluster.Alias(), err)
	}
	if l.garbage > 0 {
		s.log.Warn("passed over records that are not positions", "records", l.garbage,
			"partition", l.firstGarbage.partition, "offset", l.firstGarbage.offset, "err", l.firstGarbage.err)
	}
	s.mu.Lock()
	s.loaded = l.next
	s.mu.Unlock()
	return l.positions, nil
}

// Claimed reads which partitions other stores have claimed in the topic as it is
// now.
func (s *Store) Claimed(ctx context.Context) (map[Key]bool, error) {
	l := newLoader(s)
	if err := l.run(ctx); err != nil {
		return nil, fmt.Errorf("load claims from topic %q on cluster %q: %w", s.topic, s.cluster.Alias(), err)
	}
	return l.claimed, nil
}

// loader is the state of one Load. It fetches on its own rather than with a
// consumer of kgo, which does not say how far it got when a partition ends in
// what it does not hand out: markers, aborted records, an emptied batch.
type loader struct {
	store     *Store
	next, end map[int32]int64 // by partition; no end before its first answer
	positions map[Key]Position
	claimed   map[Key]bool // by others, last

	garbage      int
	firstGarbage struct {
		partition int32
		offset    int64
		err       error
	}
}

func newLoader(s *Store) *loader {
	return &loader{store: s, next: map[int32]int64{}, end: map[int32]int64{}, positions: map[Key]Position{},
		claimed: map[Key]bool{}}
}

func (l *loader) run(ctx context.Context) error {
	failed := 0
	for {
		done, progress, err := l.round(ctx)
		switch {
		case done:
			return nil
		case err != nil && (ctx.Err() != nil || final(err)):
			return err
		case progress:
			failed = 0
			continue
		}
		if failed++; failed == retries {
			if err == nil {
				err = errors.New("its brokers answer, but with nothing")
			}
			return fmt.Errorf("gave up after %d attempts: %w", retries, err)
		}
		select {
		case <-time.After(min(retryWait<<min(failed, 10), retryWaitMax)):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// final says that another attempt would bring the same error.
func final(err error) bool {
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
func (l *loader) round(ctx context.Context) (done, progress bool, err error) {
	found, err := l.store.cluster.Topics(ctx, []string{l.store.topic})
	if err != nil {
		return false, false, err
	}
	topic, ok := found[l.store.topic]
	if !ok {
		return false, false, errors.New("it does not exist: was it deleted? it is made again")
	}
	if topic.Err != nil {
		return false, false, l.store.cluster.Explain(topic.Err)
	}
	leaders := map[int32][]int32{}
	for n, p := range topic.Partitions {
		if end, ok := l.end[int32(n)]; ok && l.next[int32(n)] >= end {
			continue
		}
		leaders[p.Leader] = append(leaders[p.Leader], int32(n))
	}
	for leader, numbers := range leaders {
		if leader < 0 {
			err = fmt.Errorf("partition %d has no leader", numbers[0])
			continue
		}
		moved, e := l.fetch(ctx, topic, leader, numbers)
		progress = progress || moved
		if e != nil {
			err = e
			if final(e) {
				return false, progress, err
			}
		}
	}
	return len(leaders) == 0, progress, err
}

func (l *loader) fetch(ctx context.Context, topic cluster.Topic, leader int32, numbers []int32) (progress bool, err error) {
	req := kmsg.NewPtrFetchRequest()
	req.MinBytes = 0 // answer at once
	req.MaxWaitMillis = 0
	req.MaxBytes = fetchBytes
	req.IsolationLevel = 1
	rt := kmsg.NewFetchRequestTopic()
	rt.Topic, rt.TopicID = topic.Name, topic.ID
	for _, n := range numbers {
		rp := kmsg.NewFetchRequestTopicPartition()
		rp.Partition = n
		rp.FetchOffset = l.next[n]
		rp.PartitionMaxBytes = partitionBytes
		rt.Partitions = append(rt.Partitions, rp)
	}
	req.Topics = append(req.Topics, rt)

	answer, err := l.store.cluster.Client().Broker(int(leader)).Request(ctx, req)
	if err != nil {
		return false, fmt.Errorf("fetch from broker %d: %w", leader, err)
	}
	resp := answer.(*kmsg.FetchResponse)
	if err := kerr.ErrorForCode(resp.ErrorCode); err != nil {
		return false, fmt.Errorf("fetch from broker %d: %w", leader, err)
	}
	for i := range resp.Topics {
		for j := range resp.Topics[i].Partitions {
			moved, e := l.read(&resp.Topics[i].Partitions[j])
			progress = progress || moved
			if e != nil && !final(err) {
				err = e
			}
		}
	}
	return progress, err
}

// read takes in the answer for one partition.
func (l *loader) read(p *kmsg.FetchResponseTopicPartition) (progress bool, err error) {
	n := p.Partition
	switch err := kerr.ErrorForCode(p.ErrorCode); {
	case errors.Is(err, kerr.OffsetOutOfRange) && p.LogStartOffset > l.next[n]:
		// Records before the log start were deleted.
		l.next[n] = p.LogStartOffset
		return true, nil
	case err != nil:
		return false, fmt.Errorf("partition %d: %w", n, err)
	}
	if _, ok := l.end[n]; !ok {
		l.end[n] = p.LastStableOffset
		progress = true
	}
	fetched, next := kgo.ProcessFetchPartition(kgo.ProcessFetchPartitionOpts{
		Offset:         l.next[n],
		IsolationLevel: kgo.ReadCommitted(),
		Topic:          l.store.topic,
		Partition:      n,
	}, p, kgo.DefaultDecompressor(), nil)
	if fetched.Err != nil {
		return false, &damage{partition: n, offset: next, err: fetched.Err}
	}
	for _, r := range fetched.Records {
		l.take(r)
	}
	progress = progress || next > l.next[n]
	l.next[n] = next
	return progress, nil
}

func (l *loader) take(r *kgo.Record) {
	k, err := parseKey(r.Key, l.store.connector, l.store.source)
	if errors.Is(err, errForeign) {
		if k, err := parseKey(r.Key, claimant, l.store.source); err == nil {
			delete(l.claimed, k)
			if _, others := l.store.others(r.Value); others {
				l.claimed[k] = true
			}
		}
		return
	}
	if err == nil {
		var p Position
		var ok bool
		if p, ok, err = parseValue(r.Value); err == nil {
			if ok {
				l.positions[k] = p
			} else {
				delete(l.positions, k)
			}
			return
		}
	}
	if l.garbage++; l.garbage == 1 {
		l.firstGarbage.partition, l.firstGarbage.offset, l.firstGarbage.err = r.Partition, r.Offset, err
	}
}
