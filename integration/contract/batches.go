package contract

import (
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// header is what a test looks at in a record batch's header.
type header struct {
	base       int64
	lastDelta  int32
	count      int32
	attributes int16
}

// batches fetches the batches at the start of a partition as they are stored.
func (e *Env) batches(c *Cluster, topic string, partition int32) (all []header) {
	e.Helper()
	d := e.Describe(c, topic)
	req := kmsg.NewPtrFetchRequest()
	req.MaxBytes = 10 << 20
	t := kmsg.NewFetchRequestTopic()
	t.Topic, t.TopicID = topic, d.ID
	p := kmsg.NewFetchRequestTopicPartition()
	p.Partition, p.FetchOffset, p.PartitionMaxBytes = partition, e.offsets(c.admin.ListStartOffsets, topic)[partition], 10<<20
	t.Partitions = append(t.Partitions, p)
	req.Topics = append(req.Topics, t)
	resp, err := c.client.Broker(int(d.Partitions[partition].Leader)).RetriableRequest(e.ctx, req) // idle connections are closed
	if err != nil {
		e.Fatalf("fetch %s: %v", topic, err)
	}
	answer := resp.(*kmsg.FetchResponse).Topics[0].Partitions[0]
	if err := kerr.ErrorForCode(answer.ErrorCode); err != nil {
		e.Fatalf("fetch %s: %v", topic, err)
	}
	for left := answer.RecordBatches; len(left) > 17; {
		var b kmsg.RecordBatch
		if err := b.ReadFrom(left); err != nil {
			break // cut at the end of the answer
		}
		all = append(all, header{b.FirstOffset, b.LastOffsetDelta, b.NumRecords, b.Attributes})
		left = left[12+b.Length:]
	}
	return all
}

// wantCodec checks that a partition of the source begins with a batch of a codec,
// as numbered in its attributes.
func (e *Env) wantCodec(topic string, partition int32, codec int) {
	e.Helper()
	if got := int(e.batches(e.Source, topic, partition)[0].attributes & 7); got != codec {
		e.Fatalf("%s/%d begins with codec %d, want %d: the scenario proves nothing", topic, partition, got, codec)
	}
}
