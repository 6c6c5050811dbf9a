package cluster

import (
	"errors"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/kversion"
)

func TestLogEnds(t *testing.T) {
	f := fake(t)
	c := open(t, f, nil)
	produce(t, c, "topic", 1, 4)
	leaders := follow(t, f, "topic")
	look(t, leaders)
	_, empty, _ := leaders.Leader("topic", 0)
	_, full, _ := leaders.Leader("topic", 1)
	ask := map[TopicPartition]int32{{"topic", 0}: empty, {"topic", 1}: full, {"topic", 2}: -1, {"topic", 9}: 0, {"missing", 0}: 0}
	got := c.LogEnds(t.Context(), ask)
	for p, want := range map[TopicPartition]int64{{"topic", 0}: 0, {"topic", 1}: 4, {"topic", 2}: -1} {
		if o := got[p]; o.Err != nil || o.Offset != want {
			t.Errorf("%v: %+v, want offset %d", p, o, want)
		}
	}
	for _, p := range []TopicPartition{{"topic", 9}, {"missing", 0}} {
		if o := got[p]; !errors.Is(o.Err, kerr.UnknownTopicOrPartition) || o.Offset != -1 {
			t.Errorf("%v: %+v, want an error", p, o)
		}
	}
	// An epoch that is over would be answered with where the next one began.
	if err := f.MoveTopicPartition("topic", 1, (f.LeaderFor("topic", 1)+1)%3); err != nil {
		t.Fatal(err)
	}
	p := TopicPartition{"topic", 1}
	if o := c.LogEnds(t.Context(), map[TopicPartition]int32{p: full})[p]; !errors.Is(o.Err, kerr.FencedLeaderEpoch) {
		t.Errorf("of an epoch that is over: %+v", o)
	}
	if got := c.LogEnds(t.Context(), nil); len(got) != 0 {
		t.Errorf("no partitions: %v", got)
	}
}

// A leader that is too old to tell is no error; one that fails is.
func TestLogEndsThatNobodyTells(t *testing.T) {
	p := TopicPartition{"topic", 0}
	old := kversion.V2_8_0()
	old.SetMaxKeyVersion(kmsg.OffsetForLeaderEpoch.Int16(), -1)
	c := open(t, fake(t, kfake.MaxVersions(old)), nil)
	if o := c.LogEnds(t.Context(), map[TopicPartition]int32{p: 0})[p]; o.Err != nil || o.Offset != -1 {
		t.Errorf("an old leader: %+v", o)
	}
	f := fake(t)
	c = open(t, f, nil)
	f.ControlKey(int16(kmsg.OffsetForLeaderEpoch), func(kmsg.Request) (kmsg.Response, error, bool) {
		f.KeepControl()
		return nil, errors.New("cut"), true
	})
	if o := c.LogEnds(t.Context(), map[TopicPartition]int32{p: 0})[p]; o.Err == nil {
		t.Errorf("a leader that does not answer: %+v", o)
	}
}
