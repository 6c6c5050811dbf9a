package cluster

import (
	"context"
	"errors"
	"fmt"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// EpochQuestion asks where a leader epoch ends in a log.
type EpochQuestion struct {
	Epoch int32
	// Leader is the epoch of the leader that is asked, -1: not known. A leader of
	// another one answers FENCED_LEADER_EPOCH or UNKNOWN_LEADER_EPOCH.
	Leader int32
}

// EpochEnd is the answer for one partition.
type EpochEnd struct {
	// Epoch is the largest one in the log that is not above the one asked for; -1:
	// the log has none as high.
	Epoch int32
	End   int64 // the offset after its last record; -1 with Epoch
	Err   error
}

// EpochEnds asks the leaders where leader epochs end (OffsetForLeaderEpoch,
// KIP-101). Each partition has an entry in the answer, some possibly with an
// error: UNSUPPORTED_VERSION from brokers that do not tell (Kafka before 2.0, and
// before 2.3 where the user has no right over the cluster).
func (c *Cluster) EpochEnds(ctx context.Context, ask map[TopicPartition]EpochQuestion) map[TopicPartition]EpochEnd {
	answer := make(map[TopicPartition]EpochEnd, len(ask))
	if len(ask) == 0 {
		return answer
	}
	failed := func(p TopicPartition, err error) {
		if errors.Is(err, kerr.ClusterAuthorizationFailed) {
			err = kerr.UnsupportedVersion
		}
		answer[p] = EpochEnd{-1, -1, c.Explain(fmt.Errorf("find the end of leader epoch %d: %w", ask[p].Epoch, err))}
	}
	req := kmsg.NewPtrOffsetForLeaderEpochRequest()
	req.ReplicaID = -1 // a consumer
	topics := map[string]int{}
	for p, q := range ask {
		failed(p, kerr.UnknownTopicOrPartition) // until something else is known
		i, ok := topics[p.Topic]
		if !ok {
			i = len(req.Topics)
			topics[p.Topic] = i
			t := kmsg.NewOffsetForLeaderEpochRequestTopic()
			t.Topic = p.Topic
			req.Topics = append(req.Topics, t)
		}
		rp := kmsg.NewOffsetForLeaderEpochRequestTopicPartition()
		rp.Partition, rp.CurrentLeaderEpoch, rp.LeaderEpoch = p.Partition, q.Leader, q.Epoch
		req.Topics[i].Partitions = append(req.Topics[i].Partitions, rp)
	}
	for _, shard := range c.client.RequestSharded(ctx, req) {
		if err := shard.Err; err != nil {
			if !c.knows(ctx, kmsg.OffsetForLeaderEpoch) {
				err = kerr.UnsupportedVersion
			}
			for _, t := range shard.Req.(*kmsg.OffsetForLeaderEpochRequest).Topics {
				for _, p := range t.Partitions {
					failed(TopicPartition{t.Topic, p.Partition}, err)
				}
			}
			continue
		}
		resp := shard.Resp.(*kmsg.OffsetForLeaderEpochResponse)
		for _, t := range resp.Topics {
			for _, p := range t.Partitions {
				at := TopicPartition{t.Topic, p.Partition}
				switch err := kerr.ErrorForCode(p.ErrorCode); {
				case err != nil:
					failed(at, err)
				case resp.Version < 1: // it has no epochs in it
					failed(at, kerr.UnsupportedVersion)
				default:
					answer[at] = EpochEnd{p.LeaderEpoch, p.EndOffset, nil}
				}
			}
		}
	}
	return answer
}
