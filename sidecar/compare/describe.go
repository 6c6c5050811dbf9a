package compare

import (
	"context"
	"fmt"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// topic is what a fetch needs to know of a topic.
type topic struct {
	id         [16]byte
	partitions []int32 // their leaders, -1: none
}

// describe asks a cluster for topics. Those that do not exist are absent.
func describe(ctx context.Context, client *kgo.Client, names []string) (map[string]topic, error) {
	req := kmsg.NewPtrMetadataRequest()
	req.Topics = []kmsg.MetadataRequestTopic{}
	for _, name := range names {
		t := kmsg.NewMetadataRequestTopic()
		t.Topic = kmsg.StringPtr(name)
		req.Topics = append(req.Topics, t)
	}
	resp, err := req.RequestWith(ctx, client)
	if err != nil {
		return nil, fmt.Errorf("metadata: %w", err)
	}
	topics := map[string]topic{}
	for _, t := range resp.Topics {
		switch err := kerr.ErrorForCode(t.ErrorCode); err {
		case nil:
		case kerr.UnknownTopicOrPartition, kerr.LeaderNotAvailable:
			continue
		default:
			return nil, fmt.Errorf("metadata of topic %s: %w", *t.Topic, err)
		}
		leaders := make([]int32, len(t.Partitions))
		for i := range leaders {
			leaders[i] = -1
		}
		for _, p := range t.Partitions {
			if int(p.Partition) < len(leaders) && p.ErrorCode == 0 {
				leaders[p.Partition] = p.Leader
			}
		}
		topics[*t.Topic] = topic{t.TopicID, leaders}
	}
	return topics, nil
}
