package cluster

import (
	"context"
	"fmt"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// LogEnds asks the leaders where their logs end, above the high watermark too: so does a leader answer what the end of the epoch is
// that it leads in (OffsetForLeaderEpoch, KIP-320). epochs has those; one that is not the leader's any more is an error, and
// worth asking again after a look at the metadata. Each partition has an entry in the answer; its offset is -1 where the leader cannot
// tell: before Kafka 2.1, or where the epoch is not known.
func (c *Cluster) LogEnds(ctx context.Context, epochs map[TopicPartition]int32) map[TopicPartition]Offset {
	answer := make(map[TopicPartition]Offset, len(epochs))
	req := kmsg.NewPtrOffsetForLeaderEpochRequest()
	req.ReplicaID = -1
	topics := map[string]int{}
	missing := fmt.Errorf("ask for the end of the log: %w", kerr.UnknownTopicOrPartition)
	for p, epoch := range epochs {
		if epoch < 0 {
			answer[p] = Offset{Offset: -1, LeaderEpoch: -1}
			continue
		}
		answer[p] = Offset{Offset: -1, LeaderEpoch: -1, Err: missing}
		i, ok := topics[p.Topic]
		if !ok {
			i = len(req.Topics)
			topics[p.Topic] = i
			t := kmsg.NewOffsetForLeaderEpochRequestTopic()
			t.Topic = p.Topic
			req.Topics = append(req.Topics, t)
		}
		q := kmsg.NewOffsetForLeaderEpochRequestTopicPartition()
		q.Partition, q.CurrentLeaderEpoch, q.LeaderEpoch = p.Partition, epoch, epoch
		req.Topics[i].Partitions = append(req.Topics[i].Partitions, q)
	}
	if len(req.Topics) == 0 {
		return answer
	}
	for _, shard := range c.client.RequestSharded(ctx, req) {
		if shard.Err != nil {
			o := Offset{Offset: -1, LeaderEpoch: -1}
			if c.knows(ctx, kmsg.OffsetForLeaderEpoch, forConsumers) {
				o.Err = c.Explain(fmt.Errorf("ask for the end of the log: %w", shard.Err))
			}
			for _, t := range shard.Req.(*kmsg.OffsetForLeaderEpochRequest).Topics {
				for _, p := range t.Partitions {
					answer[TopicPartition{t.Topic, p.Partition}] = o
				}
			}
			continue
		}
		for _, t := range shard.Resp.(*kmsg.OffsetForLeaderEpochResponse).Topics {
			for _, p := range t.Partitions {
				o := Offset{Offset: p.EndOffset, LeaderEpoch: p.LeaderEpoch}
				if err := kerr.ErrorForCode(p.ErrorCode); err != nil {
					o = Offset{Offset: -1, LeaderEpoch: -1, Err: c.Explain(fmt.Errorf("ask for the end of the log: %w", err))}
				}
				answer[TopicPartition{t.Topic, p.Partition}] = o
			}
		}
	}
	return answer
}

// forConsumers is the first version of OffsetForLeaderEpoch that is not for
// brokers only (Kafka 2.1).
const forConsumers = 2
