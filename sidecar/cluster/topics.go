package cluster

import (
	"context"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// Topic is a topic as the cluster describes it.
type Topic struct {
	Name       string
	ID         [16]byte // zero before Kafka 2.8
	Internal   bool     // one of the cluster's own, such as __consumer_offsets
	Partitions []Partition
	Err        error // why the cluster would not describe the topic, for example TOPIC_AUTHORIZATION_FAILED; then only Name is set
}

// Partition is a partition, by its number in Topic.Partitions.
type Partition struct {
	Leader      int32 // node id; -1: none at the moment
	LeaderEpoch int32 // -1: unknown
	Replicas    int   // how many
}

// Topics asks the cluster now, without a cache, for the topics with these names; nil: for all that
// the user may see. A topic that does not exist is absent from the answer.
func (c *Cluster) Topics(ctx context.Context, names []string) (map[string]Topic, error) {
	if names != nil && len(names) == 0 {
		return map[string]Topic{}, nil
	}
	resp, err := c.metadata(ctx, names)
	if err != nil {
		return nil, err
	}
	return readTopics(resp)
}

// metadata asks for topics: nil for all, none for the brokers only.
func (c *Cluster) metadata(ctx context.Context, names []string) (*kmsg.MetadataResponse, error) {
	req := kmsg.NewPtrMetadataRequest()
	if names != nil {
		req.Topics = make([]kmsg.MetadataRequestTopic, 0, len(names))
	}
	for _, name := range names {
		t := kmsg.NewMetadataRequestTopic()
		t.Topic = kmsg.StringPtr(name)
		req.Topics = append(req.Topics, t)
	}
	resp, err := c.askAnyBroker(ctx, req)
	if err == nil {
		err = kerr.ErrorForCode(resp.ErrorCode)
	}
	if err != nil {
		return nil, c.Explain(fmt.Errorf("list topics: %w", err))
	}
	c.learn(resp)
	return resp, nil
}

// How long a broker may take to answer before another one is asked, and how often that is done. One
// that hangs must not keep from everybody what the others know: that they have taken over from it.
const (
	patience      = 3 * time.Second
	timesPatience = 2
)

// askAnyBroker asks one broker after the other, as the client takes turns, until one answers; the
// last may take its time.
func (c *Cluster) askAnyBroker(ctx context.Context, req *kmsg.MetadataRequest) (*kmsg.MetadataResponse, error) {
	for range timesPatience {
		bounded, cancel := context.WithTimeout(ctx, patience)
		resp, err := req.RequestWith(bounded, c.client)
		late := bounded.Err() != nil && ctx.Err() == nil
		cancel()
		if err == nil || !late {
			return resp, err
		}
	}
	return req.RequestWith(ctx, c.client)
}

func readTopics(resp *kmsg.MetadataResponse) (map[string]Topic, error) {
	topics := make(map[string]Topic, len(resp.Topics))
	for i := range resp.Topics {
		rt := &resp.Topics[i]
		if rt.Topic == nil || rt.ErrorCode == kerr.UnknownTopicOrPartition.Code {
			continue
		}
		t := Topic{Name: *rt.Topic}
		if err := kerr.ErrorForCode(rt.ErrorCode); err != nil {
			t.Err = fmt.Errorf("describe topic %s: %w", t.Name, err)
			topics[t.Name] = t
			continue
		}
		t.ID, t.Internal = rt.TopicID, rt.IsInternal
		t.Partitions = make([]Partition, len(rt.Partitions))
		for j := range t.Partitions {
			t.Partitions[j] = Partition{Leader: -1, LeaderEpoch: -1}
		}
		for _, p := range rt.Partitions {
			if p.Partition < 0 || int(p.Partition) >= len(t.Partitions) {
				return nil, fmt.Errorf("the cluster lists partition %d of topic %s, which has %d", p.Partition, t.Name, len(t.Partitions))
			}
			t.Partitions[p.Partition] = Partition{Leader: p.Leader, LeaderEpoch: p.LeaderEpoch, Replicas: len(p.Replicas)}
		}
		topics[t.Name] = t
	}
	return topics, nil
}
