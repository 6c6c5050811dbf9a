package cluster

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"mirror/sidecar/config"
)

func TestTopics(t *testing.T) {
	f := fake(t, kfake.SeedTopics(1, "other"))
	c := open(t, f, nil)
	all, err := c.Topics(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(all) != 2 || len(all["topic"].Partitions) != 3 || len(all["other"].Partitions) != 1 {
		t.Errorf("all topics: %+v", all)
	}
	if err := f.CreateTopic("late", 5, nil); err != nil {
		t.Fatal(err)
	}
	named, err := c.Topics(t.Context(), []string{"topic", "missing", "late"})
	if err != nil {
		t.Fatal(err)
	}
	if len(named) != 2 || len(named["late"].Partitions) != 5 {
		t.Errorf("named topics, one of them new, one missing: %+v", named)
	}
	topic, info := named["topic"], f.TopicInfo("topic")
	if topic.Name != "topic" || topic.ID != info.TopicID || topic.Internal || topic.Err != nil {
		t.Errorf("topic is %+v", topic)
	}
	for i, p := range topic.Partitions {
		want := f.PartitionInfo("topic", int32(i))
		if p.Leader != want.Leader || p.LeaderEpoch != want.Epoch || p.Replicas < 1 {
			t.Errorf("partition %d is %+v, want leader %d in epoch %d", i, p, want.Leader, want.Epoch)
		}
	}
	if err := f.DeleteTopic("late"); err != nil {
		t.Fatal(err)
	}
	if gone, err := c.Topics(t.Context(), []string{"late"}); err != nil || len(gone) != 0 {
		t.Errorf("a deleted topic: %+v, %v", gone, err)
	}
	if none, err := c.Topics(t.Context(), []string{}); err != nil || len(none) != 0 {
		t.Errorf("no topics: %+v, %v", none, err)
	}
}

// A broker that hangs does not keep the others from answering, though the client
// would wait for it for 10 s.
func TestTopicsDoNotWaitForAHungBroker(t *testing.T) {
	f := fake(t, kfake.NumBrokers(3))
	c := open(t, f, nil)
	var asked atomic.Int64
	release := make(chan struct{})
	defer close(release)
	f.ControlKey(int16(kmsg.Metadata), func(kmsg.Request) (kmsg.Response, error, bool) {
		f.KeepControl()
		if f.CurrentNode() == 0 {
			asked.Add(1)
			f.SleepControl(func() { <-release })
		}
		return nil, nil, false
	})
	for asked.Load() == 0 {
		ctx, cancel := context.WithTimeout(t.Context(), patience*timesPatience+patience/2)
		_, err := c.Topics(ctx, nil)
		cancel()
		if err != nil {
			t.Fatal(err)
		}
	}
}

// metadataOf answers metadata requests of f with one topic.
func metadataOf(f *kfake.Cluster, topic kmsg.MetadataResponseTopic) {
	f.ControlKey(int16(kmsg.Metadata), func(req kmsg.Request) (kmsg.Response, error, bool) {
		f.KeepControl()
		resp := req.ResponseKind().(*kmsg.MetadataResponse)
		topic.Topic = kmsg.StringPtr("topic")
		resp.Topics = append(resp.Topics, topic)
		return resp, nil, true
	})
}

func TestTopicsWithTrouble(t *testing.T) {
	partition := func(number, leader int32) kmsg.MetadataResponseTopicPartition {
		p := kmsg.NewMetadataResponseTopicPartition()
		p.Partition, p.Leader, p.LeaderEpoch = number, leader, 7
		return p
	}
	t.Run("not allowed", func(t *testing.T) {
		f := fake(t)
		metadataOf(f, kmsg.MetadataResponseTopic{ErrorCode: kerr.TopicAuthorizationFailed.Code})
		got, err := open(t, f, nil).Topics(t.Context(), []string{"topic"})
		if err != nil || !errors.Is(got["topic"].Err, kerr.TopicAuthorizationFailed) || !strings.Contains(got["topic"].Err.Error(), "topic topic") {
			t.Errorf("got %+v, %v", got, err)
		}
	})
	t.Run("out of order and without a leader", func(t *testing.T) {
		f := fake(t)
		metadataOf(f, kmsg.MetadataResponseTopic{IsInternal: true, Partitions: []kmsg.MetadataResponseTopicPartition{partition(1, -1), partition(0, 2)}})
		got, err := open(t, f, nil).Topics(t.Context(), nil)
		want := []Partition{{Leader: 2, LeaderEpoch: 7}, {Leader: -1, LeaderEpoch: 7}}
		if err != nil || !got["topic"].Internal || !slices.Equal(got["topic"].Partitions, want) {
			t.Errorf("got %+v, %v, want %+v", got, err, want)
		}
	})
	t.Run("garbage", func(t *testing.T) {
		for _, number := range []int32{-1, 2, 1<<31 - 1} {
			f := fake(t)
			metadataOf(f, kmsg.MetadataResponseTopic{Partitions: []kmsg.MetadataResponseTopicPartition{partition(0, 0), partition(number, 0)}})
			if got, err := open(t, f, nil).Topics(t.Context(), nil); err == nil {
				t.Errorf("partition %d of 2: got %+v", number, got)
			}
		}
	})
}

func TestListOffsets(t *testing.T) {
	f := fake(t)
	c := open(t, f, nil)
	produce(t, c, "topic", 1, 4)
	ask := []TopicPartition{{"topic", 0}, {"topic", 1}, {"topic", 9}, {"missing", 0}}
	tests := []struct {
		name      string
		timestamp int64
		want      []int64 // for partitions 0 and 1
	}{
		{"latest", LatestOffset, []int64{0, 4}},
		{"earliest", EarliestOffset, []int64{0, 0}},
		{"at the second record", 2000, []int64{-1, 2}},
		{"after all records", 1 << 40, []int64{-1, -1}},
	}
	for _, tt := range tests {
		got := c.ListOffsets(t.Context(), ask, tt.timestamp, config.ReadCommitted)
		for i, want := range tt.want {
			if o := got[ask[i]]; o.Err != nil || o.Offset != want {
				t.Errorf("%s: partition %d: %+v, want offset %d", tt.name, i, o, want)
			}
		}
		for _, p := range ask[2:] {
			if o := got[p]; !errors.Is(o.Err, kerr.UnknownTopicOrPartition) || o.Offset != -1 {
				t.Errorf("%s: %v: %+v, want an error", tt.name, p, o)
			}
		}
	}
	if got := c.ListOffsets(t.Context(), nil, LatestOffset, config.ReadCommitted); len(got) != 0 {
		t.Errorf("no partitions: %v", got)
	}
}

func TestListOffsetsAfterAMove(t *testing.T) {
	f := fake(t)
	c := open(t, f, nil)
	produce(t, c, "topic", 0, 3)
	p := TopicPartition{"topic", 0}
	for range 3 {
		if err := f.MoveTopicPartition("topic", 0, (f.LeaderFor("topic", 0)+1)%3); err != nil {
			t.Fatal(err)
		}
		if o := c.ListOffsets(t.Context(), []TopicPartition{p}, LatestOffset, config.ReadUncommitted)[p]; o.Err != nil || o.Offset != 3 {
			t.Errorf("after a move: %+v", o)
		}
	}
}

func TestOffsetErrorsAreOfTheirPartition(t *testing.T) {
	f := fake(t)
	c := open(t, f, nil)
	f.ControlKey(int16(kmsg.ListOffsets), func(req kmsg.Request) (kmsg.Response, error, bool) {
		f.KeepControl()
		resp := req.ResponseKind().(*kmsg.ListOffsetsResponse)
		for _, rt := range req.(*kmsg.ListOffsetsRequest).Topics {
			topic := kmsg.NewListOffsetsResponseTopic()
			topic.Topic = rt.Topic
			for _, rp := range rt.Partitions {
				p := kmsg.NewListOffsetsResponseTopicPartition()
				p.Partition, p.Offset = rp.Partition, 5
				if rp.Partition == 1 {
					p.ErrorCode = kerr.TopicAuthorizationFailed.Code
				}
				topic.Partitions = append(topic.Partitions, p)
			}
			resp.Topics = append(resp.Topics, topic)
		}
		return resp, nil, true
	})
	ask := []TopicPartition{{"topic", 0}, {"topic", 1}, {"topic", 2}}
	got := c.ListOffsets(t.Context(), ask, LatestOffset, config.ReadCommitted)
	for i, p := range ask {
		o := got[p]
		if i == 1 && (!errors.Is(o.Err, kerr.TopicAuthorizationFailed) || o.Offset != -1) || i != 1 && (o.Err != nil || o.Offset != 5) {
			t.Errorf("partition %d: %+v", i, o)
		}
	}
}

func TestProducerIDsAreNew(t *testing.T) {
	c := open(t, fake(t), nil)
	seen := map[int64]bool{}
	for range 3 {
		id, epoch, err := c.InitProducerID(t.Context())
		if err != nil || id < 0 || epoch != 0 || seen[id] {
			t.Errorf("id %d, epoch %d, %v after %v", id, epoch, err, seen)
		}
		seen[id] = true
	}
}
