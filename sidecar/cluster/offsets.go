package cluster

import (
	"context"
	"fmt"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"mirror/sidecar/config"
)

// TopicPartition names a partition.
type TopicPartition struct {
	Topic     string
	Partition int32
}

// Timestamps that ListOffsets takes besides milliseconds of the epoch.
const (
	LatestOffset   int64 = -1 // the end: the high watermark, or the last stable offset when reading committed
	EarliestOffset int64 = -2 // the start of the log
)

// Offset is the answer for one partition.
type Offset struct {
	Offset      int64 // -1: there is no record at or after the timestamp
	LeaderEpoch int32 // of the record at Offset; -1: unknown
	Err         error
}

// ListOffsets asks the leaders for an offset of each partition: the first at or after a timestamp
// in milliseconds, LatestOffset or EarliestOffset. Each partition has an entry in the answer, some
// possibly with an error: a leader that moved is worth asking again.
func (c *Cluster) ListOffsets(ctx context.Context, partitions []TopicPartition, timestamp int64, isolation config.Isolation) map[TopicPartition]Offset {
	answer := make(map[TopicPartition]Offset, len(partitions))
	if len(partitions) == 0 {
		return answer
	}
	missing := fmt.Errorf("list offsets: %w", kerr.UnknownTopicOrPartition)
	for _, p := range partitions {
		answer[p] = Offset{Offset: -1, LeaderEpoch: -1, Err: missing}
	}
	for _, shard := range c.client.RequestSharded(ctx, offsetsRequest(partitions, timestamp, isolation)) {
		if shard.Err != nil {
			err := c.Explain(fmt.Errorf("list offsets: %w", shard.Err))
			for _, t := range shard.Req.(*kmsg.ListOffsetsRequest).Topics {
				for _, p := range t.Partitions {
					answer[TopicPartition{t.Topic, p.Partition}] = Offset{Offset: -1, LeaderEpoch: -1, Err: err}
				}
			}
			continue
		}
		for _, t := range shard.Resp.(*kmsg.ListOffsetsResponse).Topics {
			for _, p := range t.Partitions {
				o := Offset{Offset: p.Offset, LeaderEpoch: p.LeaderEpoch}
				if err := kerr.ErrorForCode(p.ErrorCode); err != nil {
					o = Offset{Offset: -1, LeaderEpoch: -1, Err: c.Explain(fmt.Errorf("list offsets: %w", err))}
				}
				answer[TopicPartition{t.Topic, p.Partition}] = o
			}
		}
	}
	return answer
}

func offsetsRequest(partitions []TopicPartition, timestamp int64, isolation config.Isolation) *kmsg.ListOffsetsRequest {
	req := kmsg.NewPtrListOffsetsRequest()
	req.ReplicaID = -1
	if isolation == config.ReadCommitted {
		req.IsolationLevel = 1
	}
	topics := map[string]int{}
	for _, p := range partitions {
		i, ok := topics[p.Topic]
		if !ok {
			i = len(req.Topics)
			topics[p.Topic] = i
			t := kmsg.NewListOffsetsRequestTopic()
			t.Topic = p.Topic
			req.Topics = append(req.Topics, t)
		}
		rp := kmsg.NewListOffsetsRequestTopicPartition()
		rp.Partition = p.Partition
		rp.Timestamp = timestamp
		req.Topics[i].Partitions = append(req.Topics[i].Partitions, rp)
	}
	return req
}

// InitProducerID returns a new producer id, with its epoch, for idempotent writes outside of
// transactions.
func (c *Cluster) InitProducerID(ctx context.Context) (id int64, epoch int16, err error) {
	req := kmsg.NewPtrInitProducerIDRequest()
	req.ProducerID, req.ProducerEpoch = -1, -1
	resp, err := req.RequestWith(ctx, c.client)
	if err == nil {
		err = kerr.ErrorForCode(resp.ErrorCode)
	}
	if err != nil {
		return -1, -1, c.Explain(fmt.Errorf("get a producer id: %w", err))
	}
	return resp.ProducerID, resp.ProducerEpoch, nil
}
