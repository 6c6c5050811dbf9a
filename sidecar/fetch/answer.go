package fetch

import (
	"fmt"
	"io"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"mirror/sidecar/batch"
	"mirror/sidecar/wire"
)

// answered hands the answer's parts to the owners. Parts are matched by topic
// id, or by name where the answer has names.
func (l *link) answered(wants []want, r *kmsg.FetchResponse, frame *wire.Frame) error {
	if err := kerr.ErrorForCode(r.ErrorCode); err != nil {
		return fmt.Errorf("fetch from broker %d: %w", l.node, err)
	}
	leaders := l.fetcher.o.Leaders
	for _, b := range r.Brokers {
		leaders.LearnBroker(b.NodeID, b.Host, b.Port)
	}
	type key struct {
		id     [16]byte
		name   string
		number int32
	}
	byID := r.Version >= 13
	asked := make(map[key]want, len(wants))
	for _, w := range wants {
		if byID {
			asked[key{id: w.id, number: w.p.number}] = w
		} else {
			asked[key{name: w.p.topic, number: w.p.number}] = w
		}
	}
	for i := range r.Topics {
		t := &r.Topics[i]
		for j := range t.Partitions {
			q := &t.Partitions[j]
			k := key{name: t.Topic, number: q.Partition}
			if byID {
				k = key{id: t.TopicID, number: q.Partition}
			}
			if w, ok := asked[k]; ok {
				l.part(w, q, frame)
			}
		}
	}
	return nil
}

// part hands one partition's part of an answer to its owner.
func (l *link) part(w want, q *kmsg.FetchResponseTopicPartition, frame *wire.Frame) {
	p := w.p
	if q.CurrentLeader.LeaderID >= 0 {
		l.fetcher.o.Leaders.Learn(p.topic, p.number, q.CurrentLeader.LeaderID, q.CurrentLeader.LeaderEpoch)
	}
	switch err := kerr.ErrorForCode(q.ErrorCode); err {
	case nil:
	case kerr.OffsetOutOfRange:
		p.gap(w, Gap{Offset: w.offset}, err)
		return
	case kerr.NotLeaderForPartition, kerr.LeaderNotAvailable, kerr.FencedLeaderEpoch, kerr.UnknownLeaderEpoch,
		kerr.UnknownTopicOrPartition, kerr.UnknownTopicID, kerr.InconsistentTopicID, kerr.ReplicaNotAvailable,
		kerr.OffsetNotAvailable, kerr.KafkaStorageError:
		l.fetcher.router.Stale()
		p.failed(w, err)
		return
	default:
		p.failed(w, err)
		return
	}
	if q.DivergingEpoch.EndOffset >= 0 {
		p.gap(w, Gap{Offset: w.offset, Diverged: true, Epoch: q.DivergingEpoch.Epoch, End: q.DivergingEpoch.EndOffset},
			fmt.Errorf("the log diverges at offset %d", q.DivergingEpoch.EndOffset))
		return
	}
	if q.PreferredReadReplica >= 0 && q.PreferredReadReplica != l.node {
		p.prefer(q.PreferredReadReplica)
		l.fetcher.arrive(q.PreferredReadReplica, p)
		return
	}
	next, epoch, err := ends(q.RecordBatches, w.epoch)
	if err != nil && next < 0 {
		p.failed(w, err)
		return
	}
	if !p.fetched(w, next, epoch) {
		return
	}
	p.owner.Ends(q.HighWatermark, q.LastStableOffset)
	if next < 0 {
		return
	}
	frame.Retain()
	p.owner.Fetched(Data{Generation: w.generation, Offset: w.offset, LeaderEpoch: w.epoch, Set: q.RecordBatches, Frame: frame, Aborted: q.AbortedTransactions})
}

// ends returns the offset after the last whole batch of the set and that batch's
// leader epoch; -1 and the given epoch where there is none. The error is of what
// follows the last good one.
func ends(set []byte, epoch int32) (int64, int32, error) {
	next := int64(-1)
	for {
		b, rest, err := batch.Next(set)
		if err != nil {
			if err == batch.ErrPartial || err == io.EOF {
				err = nil
			}
			return next, epoch, err
		}
		next = b.LastOffset() + 1
		if b.Magic() == 2 {
			epoch = b.LeaderEpoch()
		}
		set = rest
	}
}
