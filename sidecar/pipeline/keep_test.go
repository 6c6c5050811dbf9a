package pipeline

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"mirror/sidecar/config"
	"mirror/sidecar/positions"
	"mirror/sidecar/status"
)

// The topic of the positions goes while the flow runs, and nothing new comes: it is
// made again with all that was in it, also of topics that are gone.
func TestAPositionsTopicThatIsDeletedIsMadeAgain(t *testing.T) {
	l := newLab(t, resuming, func(f *config.Flow) { f.Lanes = 2 })
	l.source.create("t", 3)
	l.source.create("gone", 1)
	for n := range int32(3) {
		l.source.write("t", n, values("v", 0, 5)...)
	}
	l.source.write("gone", 0, values("v", 0, 2)...)
	r := l.start()
	for n := range int32(3) {
		l.copied("t", n, values("v", 0, 5)...)
		l.saved("t", n, 4)
	}
	l.saved("gone", 0, 1)
	l.source.remove("gone")
	eventually(t, "the end of its partition", func() string {
		if _, ok := r.partition("gone", 0); ok {
			return "it is there"
		}
		return ""
	})
	before := l.positions()
	l.target.remove(l.cfg.Positions.Topic)
	eventually(t, "all positions", func() string {
		if l.target.TopicInfo(l.cfg.Positions.Topic) == nil {
			return "no topic"
		}
		if now := l.positions(); len(now) != len(before) {
			return fmt.Sprintf("there are %v", now)
		}
		return ""
	})
	for k, at := range l.positions() {
		if at != before[k] {
			t.Errorf("%v: %+v, before it was %+v", k, at, before[k])
		}
	}
	if info := l.target.TopicInfo(l.cfg.Positions.Topic); *info.Configs["cleanup.policy"] != "compact" {
		t.Errorf("made with %v", info.Configs)
	}
	if n, logged := r.Status().Errors[status.ErrorPositions], l.log.Count("saving all again"); n == 0 || logged != 1 {
		t.Errorf("it counts %d times and is logged %d times", n, logged)
	}
	// And the positions move on in it, and claims are seen in it.
	l.source.write("t", 0, "more")
	l.copied("t", 0, append(values("v", 0, 5), "more")...)
	l.saved("t", 0, 5)
	if s := r.Status(); s.PositionsProblem != "" {
		t.Errorf("the problem %q is left", s.PositionsProblem)
	}
	s := l.store()
	defer s.Close()
	if claimed, err := s.Claimed(t.Context()); err != nil || len(claimed) != 3 {
		t.Errorf("claimed in it: %v, %v; want 3 partitions", claimed, err)
	}
}

// Who wakes up and finds a topic that was made again, with the claims of another
// mirror in it, does not write over what that one has saved.
func TestAReplacedMirrorDoesNotFillATopicThatWasMadeAgain(t *testing.T) {
	l := newLab(t, resuming, func(f *config.Flow) { f.Refresh = time.Hour })
	l.source.create("t", 1)
	l.source.write("t", 0, values("v", 0, 5)...)
	r := l.start()
	l.copied("t", 0, values("v", 0, 5)...)
	l.saved("t", 0, 4)
	l.target.remove(l.cfg.Positions.Topic)
	successor := l.store()
	defer successor.Close()
	key := positions.Key{Topic: "t"}
	if err := errors.Join(successor.Claim(t.Context(), []positions.Key{key}),
		successor.Save(t.Context(), map[positions.Key]positions.Position{key: positions.Plain(77)})); err != nil {
		t.Fatal(err)
	}
	r.keeper.look <- struct{}{}
	select {
	case <-r.done:
	case <-time.After(30 * time.Second):
		t.Fatal("it goes on")
	}
	if got := l.positions()[key].Offset; got != 77 {
		t.Errorf("the position is %d, want 77", got)
	}
}

func TestAPositionsTopicThatIsDeletedAtTheEndIsMadeAgain(t *testing.T) {
	l := newLab(t, resuming, func(f *config.Flow) { f.Refresh, f.CommitInterval = time.Hour, time.Hour })
	l.source.create("t", 1)
	r := l.start()
	r.runs("t", 0)
	l.source.write("t", 0, values("v", 0, 5)...)
	l.copied("t", 0, values("v", 0, 5)...)
	l.target.remove(l.cfg.Positions.Topic)
	r.stop()
	l.saved("t", 0, 4)
}

// A topic that is not compacted loses positions in time: that shows until it is
// mended, and copying goes on.
func TestAPositionsTopicThatIsNotCompactedIsToldAndUsed(t *testing.T) {
	l := newLab(t)
	l.source.create("t", 1)
	own := l.cfg.Positions.Topic
	if err := l.target.CreateTopic(own, 5, map[string]string{"cleanup.policy": "delete"}); err != nil {
		t.Fatal(err)
	}
	r := l.start()
	r.runs("t", 0)
	if s := r.Status(); !strings.Contains(s.PositionsProblem, `"delete"`) || s.State != status.Running {
		t.Errorf("%s, with the problem %q", s.State, s.PositionsProblem)
	}
	l.source.write("t", 0, "v")
	l.copied("t", 0, "v")
	l.saved("t", 0, 0)
	looks := l.target.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.DescribeConfigs}, Resource: own, Observe: true, Count: -1})
	if err := looks.Wait(t.Context(), 3); err != nil {
		t.Fatal(err)
	}
	if n, logged := r.Status().Errors[status.ErrorPositions], l.log.Count("not in order"); n != 1 || logged != 1 {
		t.Errorf("it counts %d times and is logged %d times", n, logged)
	}
	compact := "compact"
	rs, err := kadm.NewClient(l.target.cluster.Client()).AlterTopicConfigs(t.Context(), []kadm.AlterConfig{{Op: kadm.SetConfig, Name: "cleanup.policy", Value: &compact}}, own)
	if err != nil || rs[0].Err != nil {
		t.Fatal(err, rs)
	}
	eventually(t, "the end of the problem", func() string { return r.Status().PositionsProblem })
	if n := l.log.Count("in order again"); n != 1 {
		t.Errorf("its end is logged %d times", n)
	}
}
