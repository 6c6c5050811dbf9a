package cluster

import (
	"context"
	"fmt"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// ProducerState is what a partition's leader remembers of a producer (KIP-664).
type ProducerState struct {
	Epoch int16
	// LastSequence is that of the last record the leader has, which may be above
	// the high watermark still, and be lost with the leader.
	LastSequence int32
}

// Producers is what a leader remembers of the producers of one partition.
type Producers struct {
	ByID map[int64]ProducerState
	Err  error
}

// DescribeProducers asks the leaders which producers they remember. Each partition has an entry in the answer, some possibly with an
// error: UNSUPPORTED_VERSION before Kafka 2.8, TOPIC_AUTHORIZATION_FAILED without READ on the topic.
func (c *Cluster) DescribeProducers(ctx context.Context, partitions []TopicPartition) map[TopicPartition]Producers {
	answer := make(map[TopicPartition]Producers, len(partitions))
	if len(partitions) == 0 {
		return answer
	}
	req := kmsg.NewPtrDescribeProducersRequest()
	topics := map[string]int{}
	missing := fmt.Errorf("describe producers: %w", kerr.UnknownTopicOrPartition)
	for _, p := range partitions {
		answer[p] = Producers{Err: missing}
		i, ok := topics[p.Topic]
		if !ok {
			i = len(req.Topics)
			topics[p.Topic] = i
			t := kmsg.NewDescribeProducersRequestTopic()
			t.Topic = p.Topic
			req.Topics = append(req.Topics, t)
		}
		req.Topics[i].Partitions = append(req.Topics[i].Partitions, p.Partition)
	}
	for _, shard := range c.client.RequestSharded(ctx, req) {
		if shard.Err != nil {
			err := c.Explain(fmt.Errorf("describe producers: %w", shard.Err))
			if !c.knows(ctx, kmsg.DescribeProducers) {
				err = fmt.Errorf("describe producers: %w", kerr.UnsupportedVersion)
			}
			for _, t := range shard.Req.(*kmsg.DescribeProducersRequest).Topics {
				for _, p := range t.Partitions {
					answer[TopicPartition{t.Topic, p}] = Producers{Err: err}
				}
			}
			continue
		}
		for _, t := range shard.Resp.(*kmsg.DescribeProducersResponse).Topics {
			for _, p := range t.Partitions {
				answer[TopicPartition{t.Topic, p.Partition}] = c.producers(&p)
			}
		}
	}
	return answer
}

// knows says whether all brokers that answer know a request, in any version. The
// client has an error of its own for those that do not, which it does not export.
func (c *Cluster) knows(ctx context.Context, request kmsg.Key) bool {
	brokers, err := kadm.NewClient(c.client).ApiVersions(ctx)
	if err != nil {
		return true
	}
	for _, b := range brokers {
		if b.Err != nil {
			continue
		}
		least, _ := b.KeyMinVersion(request.Int16())
		if most, ok := b.KeyMaxVersion(request.Int16()); !ok || most < least {
			return false
		}
	}
	return true
}

func (c *Cluster) producers(p *kmsg.DescribeProducersResponseTopicPartition) Producers {
	if err := kerr.ErrorForCode(p.ErrorCode); err != nil {
		return Producers{Err: c.Explain(fmt.Errorf("describe producers: %w", err))}
	}
	s := Producers{ByID: make(map[int64]ProducerState, len(p.ActiveProducers))}
	for _, a := range p.ActiveProducers {
		s.ByID[a.ProducerID] = ProducerState{Epoch: int16(a.ProducerEpoch), LastSequence: a.LastSequence}
	}
	return s
}
