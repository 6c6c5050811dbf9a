package compare

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

const (
	fetchWait      = 100 * time.Millisecond // a broker's long poll, and the pause after a failure
	partitionBytes = 256 << 10              // of one answer, for one partition
	requestTimeout = 30 * time.Second
)

// side reads all partitions of one cluster, by requests of its own and not
// through a consumer, because only so one knows the next offset past aborted
// records and control batches, and reads nothing ahead of what is wanted.
type side struct {
	index       int
	client      *kgo.Client
	comparison  *Comparison
	other       *side
	uncommitted bool
	finishing   atomic.Bool
	wake        chan struct{} // the other side has moved on

	topics map[string]topic // as of the last describe
}

func newSide(index int, client *kgo.Client, c *Comparison, uncommitted bool) *side {
	return &side{index: index, client: client, comparison: c, uncommitted: uncommitted, wake: make(chan struct{}, 1)}
}

// finish makes the side end where the log ends for a request sent from now on.
func (s *side) finish() {
	s.finishing.Store(true)
	s.poke()
}

// poke wakes the side if it waits for the other.
func (s *side) poke() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// run reads until all is read after finish was called, or ctx ends.
func (s *side) run(ctx context.Context) {
	for ctx.Err() == nil {
		// Taken before reading: only an answer to a request sent after
		// finish proves that there is no more.
		finishing := s.finishing.Load()
		byLeader, waiting := s.plan(ctx, finishing)
		switch {
		case len(byLeader) > 0:
			s.fetchAll(ctx, byLeader, finishing)
			s.other.poke()
		case s.allDone():
			s.other.poke()
			return
		case waiting:
			sleep(ctx, fetchWait)
		default: // full, until the other side moves
			select {
			case <-s.wake:
			case <-ctx.Done():
			}
		}
	}
}

func (s *side) allDone() bool {
	for _, p := range s.comparison.partitions {
		if !p.isDone(s.index) {
			return false
		}
	}
	return true
}

// read is one partition to read, and from where.
type read struct {
	partition *partition
	next      int64
}

// plan sorts the partitions that want reading by their leader; waiting says
// that some have none.
func (s *side) plan(ctx context.Context, finishing bool) (byLeader map[int32][]read, waiting bool) {
	byLeader = map[int32][]read{}
	described := false
	for _, p := range s.comparison.partitions {
		next, ok := p.wanted(s.index)
		if !ok {
			continue
		}
		leader, found := s.leader(p)
		if !found && !described {
			described = true
			if err := s.describe(ctx); err != nil {
				p.failed(s.index, err)
				return byLeader, true
			}
			leader, found = s.leader(p)
		}
		switch {
		case !found:
			p.absent(s.index, finishing)
			s.other.poke()
			waiting = true
		case leader < 0:
			p.failed(s.index, kerr.LeaderNotAvailable)
			delete(s.topics, p.name(s.index))
			waiting = true
		default:
			byLeader[leader] = append(byLeader[leader], read{p, next})
		}
	}
	return byLeader, waiting
}

func (s *side) leader(p *partition) (leader int32, found bool) {
	t, ok := s.topics[p.name(s.index)]
	if !ok || int(p.number) >= len(t.partitions) {
		return -1, false
	}
	return t.partitions[p.number], true
}

func (s *side) describe(ctx context.Context) error {
	var names []string
	seen := map[string]bool{}
	for _, p := range s.comparison.partitions {
		if name := p.name(s.index); !seen[name] {
			seen[name] = true
			names = append(names, name)
		}
	}
	topics, err := describe(ctx, s.client, names)
	if err != nil {
		return err
	}
	s.topics = topics
	return nil
}

// fetchAll sends one request to each leader and takes in the answers.
func (s *side) fetchAll(ctx context.Context, byLeader map[int32][]read, finishing bool) {
	var work sync.WaitGroup
	failed := make(chan error, len(byLeader))
	for leader, reads := range byLeader {
		work.Go(func() {
			if err := s.fetch(ctx, leader, reads, finishing); err != nil && ctx.Err() == nil {
				for _, r := range reads {
					r.partition.failed(s.index, err)
				}
				failed <- err
			}
		})
	}
	work.Wait()
	if len(failed) > 0 {
		s.topics = nil // leaders may have moved
		sleep(ctx, fetchWait)
	}
}

// fetch asks one leader and hands the records to the partitions. It returns an
// error when leaders have to be looked up again.
func (s *side) fetch(ctx context.Context, leader int32, reads []read, finishing bool) error {
	req := s.request(reads)
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	answer, err := s.client.Broker(int(leader)).Request(ctx, req)
	if err != nil {
		return fmt.Errorf("fetch from broker %d: %w", leader, err)
	}
	resp := answer.(*kmsg.FetchResponse)
	if err := kerr.ErrorForCode(resp.ErrorCode); err != nil {
		return fmt.Errorf("fetch from broker %d: %w", leader, err)
	}
	names := map[[16]byte]string{}
	for name, t := range s.topics {
		names[t.id] = name
	}
	byName := map[string]map[int32]read{}
	for _, r := range reads {
		name := r.partition.name(s.index)
		if byName[name] == nil {
			byName[name] = map[int32]read{}
		}
		byName[name][r.partition.number] = r
	}
	var failure error
	for i := range resp.Topics {
		t := &resp.Topics[i]
		name := t.Topic
		if name == "" {
			name = names[t.TopicID]
		}
		for j := range t.Partitions {
			answer := &t.Partitions[j]
			r, ok := byName[name][answer.Partition]
			if !ok {
				continue
			}
			if err := s.take(ctx, r, answer, finishing); err != nil {
				r.partition.failed(s.index, err)
				failure = err
			}
		}
	}
	return failure
}

func (s *side) request(reads []read) *kmsg.FetchRequest {
	req := kmsg.NewPtrFetchRequest()
	req.MaxWaitMillis = int32(fetchWait / time.Millisecond)
	req.MinBytes = 1
	req.MaxBytes = int32(partitionBytes*len(reads)) + 64<<20
	if !s.uncommitted {
		req.IsolationLevel = 1
	}
	index := map[string]int{}
	for _, r := range reads {
		name := r.partition.name(s.index)
		i, ok := index[name]
		if !ok {
			i = len(req.Topics)
			index[name] = i
			t := kmsg.NewFetchRequestTopic()
			t.Topic = name
			t.TopicID = s.topics[name].id
			req.Topics = append(req.Topics, t)
		}
		p := kmsg.NewFetchRequestTopicPartition()
		p.Partition = r.partition.number
		p.FetchOffset = r.next
		p.PartitionMaxBytes = partitionBytes
		req.Topics[i].Partitions = append(req.Topics[i].Partitions, p)
	}
	return req
}

// take hands the answer for one partition to it.
func (s *side) take(ctx context.Context, r read, answer *kmsg.FetchResponseTopicPartition, finishing bool) error {
	switch err := kerr.ErrorForCode(answer.ErrorCode); err {
	case nil:
	case kerr.OffsetOutOfRange:
		return s.rewind(ctx, r.partition)
	default:
		return err
	}
	isolation, end := kgo.ReadCommitted(), answer.LastStableOffset
	if s.uncommitted {
		isolation, end = kgo.ReadUncommitted(), answer.HighWatermark
	}
	fetched, next := kgo.ProcessFetchPartition(kgo.ProcessFetchPartitionOpts{
		Offset:         r.next,
		IsolationLevel: isolation,
		Topic:          r.partition.name(s.index),
		Partition:      r.partition.number,
	}, answer, kgo.DefaultDecompressor(), nil)
	records := make([]Record, 0, len(fetched.Records))
	for _, f := range fetched.Records {
		records = append(records, Record{Offset: f.Offset, Timestamp: f.Timestamp.UnixMilli(), Key: f.Key, Value: f.Value, Headers: f.Headers})
	}
	r.partition.add(s.index, records, next, finishing && next >= end)
	return fetched.Err
}

// rewind moves a partition to the beginning of its log, for one that has lost
// what should be read next.
func (s *side) rewind(ctx context.Context, p *partition) error {
	starts, err := kadm.NewClient(s.client).ListStartOffsets(ctx, p.name(s.index))
	if err != nil {
		return fmt.Errorf("list start offsets: %w", err)
	}
	start, ok := starts.Lookup(p.name(s.index), p.number)
	if !ok {
		return errNoTopic
	}
	if start.Err != nil {
		return start.Err
	}
	p.jump(s.index, start.Offset)
	return nil
}

func sleep(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}
