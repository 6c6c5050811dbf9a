package pipeline

import (
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"mirror/sidecar/batch"
	"mirror/sidecar/config"
	"mirror/sidecar/positions"
	"mirror/sidecar/status"
)

func resuming(f *config.Flow) { f.Resume = true }

// killed is a flow that has copied n values, of which the saved position knows
// only the first known: so a kill leaves it.
func killed(t *testing.T, known, n int, change ...func(*config.Flow)) *lab {
	t.Helper()
	l := newLab(t, append(change, resuming)...)
	l.source.create("t", 1)
	key := positions.Key{Topic: "t"}
	l.source.write("t", 0, values("v", 0, known)...)
	r := l.start()
	l.copied("t", 0, values("v", 0, known)...)
	l.saved("t", 0, int64(known-1))
	old := l.positions()[key]
	l.source.write("t", 0, values("v", known, n-known)...)
	l.copied("t", 0, values("v", 0, n)...)
	r.stop()
	s := l.store()
	defer s.Close()
	if err := s.Save(t.Context(), map[positions.Key]positions.Position{key: old}); err != nil {
		t.Fatal(err)
	}
	l.source.write("t", 0, values("v", n, 2)...)
	return l
}

func TestWhatIsStoredAfterTheSavedPositionIsNotRepeated(t *testing.T) {
	l := killed(t, 3, 6)
	r := l.start()
	l.copied("t", 0, values("v", 0, 8)...)
	if n := l.log.Count("are on the target already"); n != 1 {
		t.Errorf("it is logged %d times", n)
	}
	eventually(t, "what is counted", func() string {
		p, _ := r.partition("t", 0)
		if stored := (status.Count{Path: status.PathSkipped, Reason: status.ReasonStored, Records: 3}); p.Records != 2 || p.Repeats != 0 || !slices.Contains(p.Paths, stored) {
			return fmt.Sprintf("%+v, want 2 records copied and 3 found", p)
		}
		return ""
	})
}

// Brokers that are away when the mirror comes back are waited for.
func TestTroubleWhileResumingRepeatsNothing(t *testing.T) {
	for name, side := range map[string]func(l *lab) *side{
		"source": func(l *lab) *side { return l.source },
		"target": func(l *lab) *side { return l.target },
	} {
		t.Run(name, func(t *testing.T) {
			l := killed(t, 3, 6)
			own := l.target.TopicInfo(l.cfg.Positions.Topic)
			// Not one that resuming itself tries again.
			fault := side(l).Fault(kfake.Fault{
				Keys: []kmsg.Key{kmsg.Fetch}, Err: kerr.UnknownServerError, Count: 2,
				When: func(q kmsg.Request) bool { return !reads(q, own) },
			})
			r := l.start()
			if err := fault.Wait(t.Context(), 2); err != nil {
				t.Fatal(err)
			}
			eventually(t, "all records", func() string {
				if got := l.target.values("A.t", 0); len(got) < 8 {
					return fmt.Sprint(got)
				}
				return ""
			})
			l.copied("t", 0, values("v", 0, 8)...)
			r.stop()
		})
	}
}

// reads says whether a fetch request is for the topic.
func reads(q kmsg.Request, topic *kfake.TopicInfo) bool {
	for _, t := range q.(*kmsg.FetchRequest).Topics {
		if t.TopicID == topic.TopicID || t.Topic == topic.Topic {
			return true
		}
	}
	return false
}

// What cannot be matched is copied again, and that is said.
func TestATailThatCannotBeMatchedIsRepeated(t *testing.T) {
	l := killed(t, 3, 6)
	if err := l.source.DeleteRecords("t", 0, 5); err != nil {
		t.Fatal(err)
	}
	r := l.start()
	l.copied("t", 0, append(values("v", 0, 6), values("v", 5, 3)...)...)
	if p, _ := r.partition("t", 0); p.Repeats != 3 { // the target's, after the position
		t.Errorf("%d records are counted that may be repeated, want 3", p.Repeats)
	}
	if n := l.log.Count("cannot be matched"); n != 1 {
		t.Errorf("it is logged %d times", n)
	}
}

// Plugins are told of what was matched before it is known that the rest cannot be,
// which must not be forgotten meanwhile.
func TestATailThatIsMatchedInPartWithPlugins(t *testing.T) {
	l := killed(t, 3, 4, offsetSync)
	at := l.positions()[positions.Key{Topic: "t"}]
	other := l.target.made(batch.None, "other")
	other.Rewrite(producerOf(at), batch.NextSequence(at.Sequence, 2)) // after v-3
	l.target.store("A.t", 0, other)
	// It begins when its plugin is there.
	l.target.faults = l.target.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.ListOffsets}, Err: kerr.LeaderNotAvailable, Count: -1})
	r := l.start()
	eventually(t, "the plugin", func() string {
		if ps := r.Status().Plugins; len(ps) == 0 || ps[0].State != "running" {
			return fmt.Sprintf("%+v", ps)
		}
		return ""
	})
	l.target.heal()
	l.copied("t", 0, append(values("v", 0, 4), "other", "v-4", "v-5")...)
	l.synced("t", 5, 6)
	if p, _ := r.partition("t", 0); p.Repeats != 1 { // other, as far as it knows
		t.Errorf("%d records are counted that may be repeated, want 1", p.Repeats)
	}
	if n := l.log.Count("cannot be matched"); n != 1 {
		t.Errorf("it is logged %d times", n)
	}
}

// A leader that has forgotten the producer may hold records that cannot be read
// yet. Only the end of its log shows them.
func TestWhatIsAboveTheHighWatermarkIsWaitedFor(t *testing.T) {
	l := killed(t, 3, 6)
	l.target.ControlKey(int16(kmsg.DescribeProducers), func(q kmsg.Request) (kmsg.Response, error, bool) {
		l.target.KeepControl()
		resp := q.ResponseKind().(*kmsg.DescribeProducersResponse)
		for _, rt := range q.(*kmsg.DescribeProducersRequest).Topics {
			t := kmsg.NewDescribeProducersResponseTopic()
			t.Topic = rt.Topic
			for _, n := range rt.Partitions {
				p := kmsg.NewDescribeProducersResponseTopicPartition()
				p.Partition = n
				t.Partitions = append(t.Partitions, p)
			}
			resp.Topics = append(resp.Topics, t)
		}
		return resp, nil, true
	})
	var more atomic.Bool
	more.Store(true)
	l.target.ControlKey(int16(kmsg.OffsetForLeaderEpoch), func(q kmsg.Request) (kmsg.Response, error, bool) {
		l.target.KeepControl()
		resp := q.ResponseKind().(*kmsg.OffsetForLeaderEpochResponse)
		t := kmsg.NewOffsetForLeaderEpochResponseTopic()
		t.Topic = "A.t"
		p := kmsg.NewOffsetForLeaderEpochResponseTopicPartition()
		p.LeaderEpoch, p.EndOffset = 0, 7 // readers see 6
		t.Partitions = append(t.Partitions, p)
		resp.Topics = append(resp.Topics, t)
		return resp, nil, more.Load()
	})
	r := l.start()
	eventually(t, "the partition to wait", func() string {
		if p, _ := r.partition("t", 0); p.State != status.Starting || !strings.Contains(p.Reason, "above its high watermark") {
			return fmt.Sprintf("it is %s: %s", p.State, p.Reason)
		}
		return ""
	})
	if n := len(l.target.values("A.t", 0)); n != 6 {
		t.Errorf("%d records on the target meanwhile, want 6", n)
	}
	more.Store(false)
	l.copied("t", 0, values("v", 0, 8)...)
}

// What this process itself has sent is looked for in any case: records too old for
// a resend are there once, also without resuming.
func TestOldRecordsThatMayBeStoredAreLookedFor(t *testing.T) {
	l := newLab(t)
	l.source.create("t", 1)
	r := l.start()
	r.runs("t", 0)
	topic := l.target.TopicInfo("A.t")
	var want []string
	for n := range 4 {
		fault := l.target.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Err: kerr.RequestTimedOut, Count: 1,
			When: func(q kmsg.Request) bool { return toTopic(q, topic) }})
		vs := values(fmt.Sprint("round", n), 0, 3)
		l.source.write("t", 0, vs...) // from 1970
		want = append(want, vs...)
		l.copied("t", 0, want...)
		if fault.Hits() != 1 {
			t.Errorf("round %d: %d faults", n, fault.Hits())
		}
		fault.Remove()
	}
	if n := r.Status().Errors[status.ErrorResume]; n != 0 {
		t.Errorf("%d times what is on the target did not match", n)
	}
}

// toTopic says whether a produce request is for the topic.
func toTopic(q kmsg.Request, topic *kfake.TopicInfo) bool {
	for _, t := range q.(*kmsg.ProduceRequest).Topics {
		if t.TopicID == topic.TopicID || t.Topic == topic.Topic {
			return true
		}
	}
	return false
}
