package pipeline

import (
	"fmt"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/kversion"

	"mirror/sidecar/cluster"
	"mirror/sidecar/config"
	"mirror/sidecar/positions"
	"mirror/sidecar/status"
)

func restarting(f *config.Flow) {
	f.Resume, f.OnRecreated, f.OnLostPositions = true, config.Restart, config.Restart
}

// ends has the cluster say of any leader epoch that is asked for that it, or the
// one given, ends at the offset, for as long as on is set. Fetches that say which
// epoch they come after find the logs diverging then. It counts the questions.
func (s *side) ends(on *atomic.Bool, epoch int32, end int64) *atomic.Int64 {
	asked := new(atomic.Int64)
	s.ControlKey(int16(kmsg.OffsetForLeaderEpoch), func(q kmsg.Request) (kmsg.Response, error, bool) {
		s.KeepControl()
		if !on.Load() {
			return nil, nil, false
		}
		asked.Add(1)
		req := q.(*kmsg.OffsetForLeaderEpochRequest)
		resp := req.ResponseKind().(*kmsg.OffsetForLeaderEpochResponse)
		for _, rt := range req.Topics {
			st := kmsg.NewOffsetForLeaderEpochResponseTopic()
			st.Topic = rt.Topic
			for _, rp := range rt.Partitions {
				sp := kmsg.NewOffsetForLeaderEpochResponseTopicPartition()
				sp.Partition, sp.LeaderEpoch, sp.EndOffset = rp.Partition, min(epoch, rp.LeaderEpoch), end
				st.Partitions = append(st.Partitions, sp)
			}
			resp.Topics = append(resp.Topics, st)
		}
		return resp, nil, true
	})
	s.ControlKey(int16(kmsg.Fetch), func(q kmsg.Request) (kmsg.Response, error, bool) {
		s.KeepControl()
		req := q.(*kmsg.FetchRequest)
		diverges := func(p kmsg.FetchRequestTopicPartition) bool { return p.LastFetchedEpoch >= 0 && p.FetchOffset > end }
		if !on.Load() || !slices.ContainsFunc(req.Topics, func(t kmsg.FetchRequestTopic) bool { return slices.ContainsFunc(t.Partitions, diverges) }) {
			return nil, nil, false
		}
		resp := req.ResponseKind().(*kmsg.FetchResponse)
		for _, rt := range req.Topics {
			st := kmsg.NewFetchResponseTopic()
			st.Topic, st.TopicID = rt.Topic, rt.TopicID
			for _, rp := range rt.Partitions {
				sp := kmsg.NewFetchResponseTopicPartition()
				sp.Partition = rp.Partition
				if diverges(rp) {
					sp.DivergingEpoch.Epoch, sp.DivergingEpoch.EndOffset = min(epoch, rp.LastFetchedEpoch), end
				}
				st.Partitions = append(st.Partitions, sp)
			}
			resp.Topics = append(resp.Topics, st)
		}
		return resp, nil, true
	})
	return asked
}

// A log is found to be truncated while it is read.
func TestATruncatedLogStalls(t *testing.T) {
	l := newLab(t, resuming)
	l.source.create("t", 1)
	l.source.write("t", 0, values("v", 0, 4)...)
	r := l.start()
	l.copied("t", 0, values("v", 0, 4)...)
	var truncated atomic.Bool
	truncated.Store(true)
	asked := l.source.ends(&truncated, 0, 2)
	p := r.stalled("t", 0, "parts from the one that was copied at offset 2", "up to 3", `on_recreated = "restart"`)
	if p.StalledAt != 2 || p.Position != 3 {
		t.Errorf("stalled at %d with position %d, want 2 and 3", p.StalledAt, p.Position)
	}
	eventually(t, "two more looks", func() string {
		if n := asked.Load(); n < 3 {
			return fmt.Sprintf("%d in all", n)
		}
		return ""
	})
	if n, logged := r.Status().Errors[status.ErrorRecreated], l.log.Count("partition is stalled"); n != 1 || logged != 1 {
		t.Errorf("it counts %d times and is logged %d times", n, logged)
	}
}

// While the mirror was down the log was truncated and has grown longer than what
// was copied: only its leader epochs tell, and they tell where.
func TestATruncatedLogIsCopiedFromWhereItParts(t *testing.T) {
	l := newLab(t, restarting)
	l.source.create("t", 1)
	l.source.write("t", 0, values("v", 0, 4)...)
	r := l.start()
	l.copied("t", 0, values("v", 0, 4)...)
	l.saved("t", 0, 3)
	r.stop()
	l.source.write("t", 0, values("v", 4, 2)...)
	var truncated atomic.Bool
	truncated.Store(true)
	l.source.ends(&truncated, 0, 2)
	fetched := atomic.Int64{}
	l.source.ControlKey(int16(kmsg.Fetch), func(q kmsg.Request) (kmsg.Response, error, bool) {
		l.source.KeepControl()
		if fetched.Add(1) == 1 {
			if got := l.positions()[positions.Key{Topic: "t"}].Offset; got != 1 {
				t.Errorf("the position is %d when reading begins, want 1", got)
			}
		}
		return nil, nil, false
	})
	r = l.start()
	l.copied("t", 0, append(values("v", 0, 4), values("v", 2, 4)...)...)
	r.runs("t", 0)
	if n, logged := r.Status().Errors[status.ErrorRecreated], l.log.Count("the source topic was truncated"); n != 1 || logged != 1 {
		t.Errorf("it counts %d times and is logged %d times", n, logged)
	}
	if fetched.Load() == 0 {
		t.Error("nothing was fetched: the test is void")
	}
}

// Where the logs part cannot be told without topic ids, from a topic that was
// made again: it is copied from its beginning, that nothing is left out.
func TestWithoutTopicIDsAnotherLogIsCopiedFromItsBeginning(t *testing.T) {
	for name, longer := range map[string]bool{"shorter": false, "longer": true} {
		t.Run(name, func(t *testing.T) {
			l := newLabOf(t, newSide(t, "A", kfake.MaxVersions(kversion.V2_7_0())), newSide(t, "B"), restarting)
			l.source.create("t", 1)
			l.source.write("t", 0, values("old", 0, 4)...)
			r := l.start()
			l.copied("t", 0, values("old", 0, 4)...)
			r.stop()
			again := values("new", 0, 2)
			l.source.remove("t")
			l.source.create("t", 1)
			if longer { // and of an earlier epoch than what was copied
				again = values("new", 0, 8)
				s := l.store()
				key := positions.Key{Topic: "t"}
				at := l.positions()[key]
				at.SourceLeaderEpoch, at.SourceEpochs = 5, positions.Epochs{}.Seen(5, 0)
				if err := s.Save(t.Context(), map[positions.Key]positions.Position{key: at}); err != nil {
					t.Fatal(err)
				}
				s.Close()
			}
			l.source.write("t", 0, again...)
			r = l.start()
			l.copied("t", 0, append(values("old", 0, 4), again...)...)
			if n, logged := r.Status().Errors[status.ErrorRecreated], l.log.Count("the source topic was truncated or made again"); n != 1 || logged != 1 {
				t.Errorf("it counts %d times and is logged %d times", n, logged)
			}
		})
	}
}

func TestATopicMadeAgainIsCopiedFromItsBeginning(t *testing.T) {
	for name, down := range map[string]bool{"running": false, "down": true} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t, restarting)
			l.source.create("t", 1)
			l.source.write("t", 0, values("old", 0, 3)...)
			r := l.start()
			l.copied("t", 0, values("old", 0, 3)...)
			l.saved("t", 0, 2)
			if down {
				r.stop()
			}
			l.source.remove("t")
			l.source.create("t", 1)
			l.source.write("t", 0, values("new", 0, 5)...)
			if down {
				r = l.start()
			}
			l.copied("t", 0, append(values("old", 0, 3), values("new", 0, 5)...)...)
			l.saved("t", 0, 4)
			if n, logged := r.Status().Errors[status.ErrorRecreated], l.log.Count("was deleted and made again"); n != 1 || logged != 1 {
				t.Errorf("it counts %d times and is logged %d times", n, logged)
			}
			r.stop()
			l.start() // which knows the new one
			l.source.write("t", 0, "last")
			l.copied("t", 0, append(append(values("old", 0, 3), values("new", 0, 5)...), "last")...)
		})
	}
}

// A topic of which nothing was ever copied may be made again as one likes.
func TestAnEmptyTopicMadeAgainIsNoMatter(t *testing.T) {
	l := newLab(t, resuming)
	l.source.create("t", 1)
	r := l.start()
	r.runs("t", 0)
	r.stop()
	l.source.remove("t")
	l.source.create("t", 1)
	l.source.write("t", 0, "v")
	r = l.start()
	l.copied("t", 0, "v")
	if n := r.Status().Errors[status.ErrorRecreated]; n != 0 {
		t.Errorf("it counts %d times", n)
	}
}

func TestWhatRetentionTookStallsWhereItIsToHalt(t *testing.T) {
	l := newLab(t, func(f *config.Flow) { f.OnDataLoss = config.Halt })
	l.source.create("t", 1)
	l.source.write("t", 0, values("v", 0, 4)...)
	r := l.start()
	l.copied("t", 0, values("v", 0, 4)...)
	r.stop()
	l.source.write("t", 0, values("v", 4, 6)...)
	if err := l.source.DeleteRecords("t", 0, 7); err != nil {
		t.Fatal(err)
	}
	r = l.start()
	p := r.stalled("t", 0, "offsets 4 to 6", `on_data_loss = "continue"`)
	if p.StalledAt != 4 || p.Position != 3 || p.Lost != 0 {
		t.Errorf("stalled at %d with position %d and %d lost, want 4, 3 and 0", p.StalledAt, p.Position, p.Lost)
	}
	if err := l.source.DeleteRecords("t", 0, 8); err != nil { // it goes on, and is no news
		t.Fatal(err)
	}
	r.stalled("t", 0, "offsets 4 to 7")
	if n, logged := r.Status().Errors[status.ErrorDataLoss], l.log.Count("partition is stalled"); n != 1 || logged != 1 {
		t.Errorf("it counts %d times and is logged %d times", n, logged)
	}
	r.stop()
	l.cfg.OnDataLoss = config.Continue
	r = l.start()
	l.copied("t", 0, append(values("v", 0, 4), values("v", 8, 2)...)...)
	if p, _ := r.partition("t", 0); p.Lost != 4 || r.Status().Errors[status.ErrorDataLoss] != 1 {
		t.Errorf("%d offsets lost, want 4; errors %v", p.Lost, r.Status().Errors)
	}
}

// parting is what a follower does with the same answers (KIP-101).
func TestWhereLogsPart(t *testing.T) {
	history := positions.Epochs{}.Seen(2, 10).Seen(4, 40).Seen(7, 60) // copied up to 99
	for _, c := range []struct {
		name  string
		asked int32
		end   cluster.EpochEnd
		parts bool
		at    int64
		ask   int32
	}{
		{"the same log", 7, cluster.EpochEnd{Epoch: 7, End: 100}, false, -1, -1},
		{"the same, longer", 7, cluster.EpochEnd{Epoch: 7, End: 500}, false, -1, -1},
		{"cut in the last epoch", 7, cluster.EpochEnd{Epoch: 7, End: 80}, true, 80, -1},
		{"cut in the one before", 7, cluster.EpochEnd{Epoch: 4, End: 50}, true, 50, -1},
		{"the one before went on there", 7, cluster.EpochEnd{Epoch: 4, End: 75}, true, 60, -1},
		{"and further than what was copied", 7, cluster.EpochEnd{Epoch: 4, End: 300}, true, 60, -1},
		{"an epoch that was not copied", 7, cluster.EpochEnd{Epoch: 6, End: 300}, false, -1, 4},
		{"the answer for the one below", 4, cluster.EpochEnd{Epoch: 4, End: 300}, true, 60, -1},
		{"and shorter", 4, cluster.EpochEnd{Epoch: 4, End: 45}, true, 45, -1},
		{"two below", 4, cluster.EpochEnd{Epoch: 3, End: 300}, false, -1, 2},
		{"the first that is known", 2, cluster.EpochEnd{Epoch: 2, End: 300}, true, 40, -1},
		{"below all that is known", 7, cluster.EpochEnd{Epoch: 1, End: 5}, true, -1, -1},
		{"nothing as high", 7, cluster.EpochEnd{Epoch: -1, End: -1}, true, -1, -1},
		{"no answer", 7, cluster.EpochEnd{Epoch: 9, End: 5}, false, -1, -1},
	} {
		b := &beginning{at: positions.Position{Offset: 99, SourceLeaderEpoch: 7, SourceEpochs: history}}
		if parts, at, ask := b.parting(c.asked, c.end); parts != c.parts || at != c.at || ask != c.ask {
			t.Errorf("%s: %v at %d, ask %d; want %v at %d, ask %d", c.name, parts, at, ask, c.parts, c.at, c.ask)
		}
	}
}
