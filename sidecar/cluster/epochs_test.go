package cluster

import (
	"errors"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/kversion"
)

func TestEpochEnds(t *testing.T) {
	f := fake(t)
	c := open(t, f, nil)
	leaders := follow(t, f, "topic")
	p := TopicPartition{"topic", 1}
	epoch := func() int32 {
		look(t, leaders)
		_, epoch, _ := leaders.Leader(p.Topic, p.Partition)
		return epoch
	}
	produce(t, c, p.Topic, p.Partition, 4)
	first := epoch()
	if err := f.MoveTopicPartition(p.Topic, p.Partition, (f.LeaderFor(p.Topic, p.Partition)+1)%3); err != nil {
		t.Fatal(err)
	}
	produce(t, c, p.Topic, p.Partition, 3)
	second := epoch()
	if second <= first {
		t.Fatalf("epochs %d and %d: the test is void", first, second)
	}
	missing := []TopicPartition{{"topic", 9}, {"missing", 0}}
	for _, ask := range []struct {
		EpochQuestion
		want EpochEnd
		err  error
	}{
		{EpochQuestion{second, second}, EpochEnd{second, 7, nil}, nil},
		{EpochQuestion{first, second}, EpochEnd{first, 4, nil}, nil},
		{EpochQuestion{first, -1}, EpochEnd{first, 4, nil}, nil},
		{EpochQuestion{second + 5, second}, EpochEnd{-1, -1, nil}, nil},
		{EpochQuestion{first, first}, EpochEnd{-1, -1, nil}, kerr.FencedLeaderEpoch},
		{EpochQuestion{first, second + 1}, EpochEnd{-1, -1, nil}, kerr.UnknownLeaderEpoch},
	} {
		got := c.EpochEnds(t.Context(), map[TopicPartition]EpochQuestion{p: ask.EpochQuestion, missing[0]: ask.EpochQuestion, missing[1]: ask.EpochQuestion})
		if err := got[p].Err; !errors.Is(err, ask.err) || got[p].Epoch != ask.want.Epoch || got[p].End != ask.want.End {
			t.Errorf("%+v: %+v, want %+v, %v", ask.EpochQuestion, got[p], ask.want, ask.err)
		}
		for _, m := range missing {
			if o, ok := got[m]; !ok || !errors.Is(o.Err, kerr.UnknownTopicOrPartition) {
				t.Errorf("%v: %+v, want an error", m, o)
			}
		}
	}
	if got := c.EpochEnds(t.Context(), nil); len(got) != 0 {
		t.Errorf("of nothing: %v", got)
	}
}

// A leader that tells brokers only is no trouble; one that fails is.
func TestEpochEndsThatNobodyTells(t *testing.T) {
	p := TopicPartition{"topic", 0}
	ask := map[TopicPartition]EpochQuestion{p: {0, -1}}
	without := kversion.V2_8_0()
	without.SetMaxKeyVersion(kmsg.OffsetForLeaderEpoch.Int16(), -1)
	// The fake cluster says of the request that it speaks version 3 at least, and 2 at most.
	for _, old := range []*kversion.Versions{without, kversion.V2_1_0()} {
		if o := open(t, fake(t, kfake.MaxVersions(old)), nil).EpochEnds(t.Context(), ask)[p]; !errors.Is(o.Err, kerr.UnsupportedVersion) {
			t.Errorf("a leader that does not know the request: %+v", o)
		}
	}
	for _, answer := range []struct{ got, want error }{
		{kerr.ClusterAuthorizationFailed, kerr.UnsupportedVersion}, // before Kafka 2.3
		{kerr.TopicAuthorizationFailed, kerr.TopicAuthorizationFailed},
	} {
		f := fake(t)
		f.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.OffsetForLeaderEpoch}, Err: answer.got.(*kerr.Error), Count: -1})
		if o := open(t, f, nil).EpochEnds(t.Context(), ask)[p]; !errors.Is(o.Err, answer.want) {
			t.Errorf("answered %v: %+v, want %v", answer.got, o, answer.want)
		}
	}
}
