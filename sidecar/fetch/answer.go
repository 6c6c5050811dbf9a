package fetch

import (
	"fmt"
	"io"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"mirror/sidecar/batch"
	"mirror/sidecar/wire"
)

// answered hands the answer's parts to the owners.
func (l *link) answered(s *session, r *kmsg.FetchResponse, frame *wire.Frame) error {
	again, err := s.answered(r)
	if err != nil {
		return fmt.Errorf("fetch from broker %d: %w", l.node, err)
	}
	for _, b := range r.Brokers {
		l.fetcher.o.Leaders.LearnBroker(b.NodeID, b.Host, b.Port)
	}
	if again {
		return nil
	}
	for i := range r.Topics {
		t := &r.Topics[i]
		for j := range t.Partitions {
			if w, ok := s.find(t, t.Partitions[j].Partition); ok {
				l.part(w, &t.Partitions[j], frame)
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
	next, epoch, largest, err := ends(q.RecordBatches, w.epoch)
	if err != nil && next < 0 {
		p.failed(w, err)
		return
	}
	if !p.fetched(w, next, epoch, largest, q.HighWatermark) {
		return
	}
	p.owner.Ends(q.HighWatermark, q.LastStableOffset)
	if next < 0 {
		return
	}
	frame.Retain()
	p.owner.Fetched(Data{Generation: w.generation, Offset: w.offset, LeaderEpoch: w.epoch, Set: q.RecordBatches, Frame: frame, Aborted: q.AbortedTransactions})
	if l.quiet {
		l.fetcher.arrive(l.node, p)
	}
}

// ends returns the offset after the last whole batch of the set and that batch's
// leader epoch, -1 and the given epoch where there is none, and the size of the
// largest one. The error is of what follows the last good one.
func ends(set []byte, epoch int32) (int64, int32, int, error) {
	next, largest := int64(-1), 0
	for {
		b, rest, err := batch.Next(set)
		if err != nil {
			if err == batch.ErrPartial || err == io.EOF {
				err = nil
			}
			return next, epoch, largest, err
		}
		next, largest = b.LastOffset()+1, max(largest, len(b))
		if b.Magic() == 2 {
			epoch = b.LeaderEpoch()
		}
		set = rest
	}
}
