package pipeline

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"mirror/sidecar/config"
	"mirror/sidecar/offsets"
	"mirror/sidecar/status"
)

// following has checkpoints on, wherever a plugin translates.
func following(f *config.Flow) {
	all, _ := config.Pattern(".*")
	f.Groups = append(f.Groups, all)
	f.Checkpoints = config.Checkpoints{Enabled: config.Switch{On: true}, Interval: 10 * time.Millisecond}
}

// commit commits for a group that nobody is in.
func (s *side) commit(group, topic string, partition int32, offset int64) {
	s.t.Helper()
	var all kadm.Offsets
	all.Add(kadm.Offset{Topic: topic, Partition: partition, At: offset, LeaderEpoch: -1})
	if err := kadm.NewClient(s.cluster.Client()).CommitAllOffsets(s.t.Context(), group, all); err != nil {
		s.t.Fatal(err)
	}
}

// checkpoint waits until the last checkpoint of a group of partition 0 of a topic is
// this one.
func (l *lab) checkpoint(group, topic string, upstream, downstream int64) {
	l.Helper()
	t := offsets.NewCheckpoints(offsets.TopicOptions{Cluster: l.target.cluster, Name: l.cfg.CheckpointsTopic(), Log: slog.New(slog.DiscardHandler)})
	defer t.Close()
	eventually(l.T, "a checkpoint", func() string {
		got := "none"
		err := t.Read(l.Context(), func(c offsets.Checkpoint, _ time.Time) {
			if c.Group == group && c.Topic == "A."+topic && c.Partition == 0 {
				got = fmt.Sprintf("%d to %d", c.Upstream, c.Downstream)
			}
		})
		if want := fmt.Sprintf("%d to %d", upstream, downstream); err != nil || got != want {
			return fmt.Sprintf("it is %s, want %s (%v)", got, want, err)
		}
		return ""
	})
}

// The guest answers that a group which is ahead goes on at the end of what is copied.
func TestCheckpointsAreWritten(t *testing.T) {
	l := newLab(t, translating, following)
	l.source.create("t", 1)
	l.source.write("t", 0, values("t", 0, 5)...)
	l.source.commit("g", "t", 0, 10)
	r := l.start()
	l.checkpoint("g", "t", 10, 5)
	l.source.write("t", 0, values("t", 5, 2)...)
	l.checkpoint("g", "t", 10, 7)
	if s := r.Status().Failover; !s.Enabled || s.Topic != "A.checkpoints.internal" || s.Inexact[status.InexactAhead] != 1 {
		t.Errorf("status %+v", s)
	}
	// What a plugin says that the target's log does not bear out is not believed.
	l.source.commit("g", "t", 0, 3)
	eventually(t, "an answer that is not believed", func() string {
		if s := r.Status().Failover; s.Inexact[status.InexactPastEnd] != 1 {
			return fmt.Sprintf("%+v", s)
		}
		return ""
	})
	l.checkpoint("g", "t", 10, 7)
	r.stop()
}

// Checkpoints follow their switch and the plugins, live and in both directions.
func TestCheckpointsAreToggledLive(t *testing.T) {
	l := newLab(t, translating, following)
	l.source.create("t", 1)
	l.source.commit("g", "t", 0, 100)
	r := l.start()
	l.source.write("t", 0, values("t", 0, 5)...)
	l.checkpoint("g", "t", 100, 5)
	off := func(reason string) {
		t.Helper()
		eventually(t, "an end", func() string {
			if s := r.Status().Failover; s.Enabled || s.Reason != reason || s.Checkpoints != 0 {
				return fmt.Sprintf("%+v", s)
			}
			return ""
		})
	}
	total := int64(5)
	grows := func() {
		t.Helper()
		l.source.write("t", 0, "more")
		total++
		l.copied("t", 0, append(values("t", 0, 5), strings.Split(strings.Repeat("more,", int(total-5)), ",")[:total-5]...)...)
	}
	r.apply(func(f *config.Flow) { f.Checkpoints.Enabled.On = false })
	off("switched off")
	grows()
	l.checkpoint("g", "t", 100, 5)
	r.apply(func(f *config.Flow) { f.Checkpoints.Enabled.On = true })
	l.checkpoint("g", "t", 100, total)
	r.apply(without)
	off("no plugin translates groups' offsets")
	grows()
	r.apply(translating)
	grows()
	l.checkpoint("g", "t", 100, total)
	r.stop()
}

// Off, or without groups to follow: what is asked of the clusters for it.
func TestWhatFollowingGroupsCosts(t *testing.T) {
	l := newLab(t, translating, following)
	l.source.create("t", 1)
	var asked, elsewhere atomic.Int64
	for _, s := range []*side{l.source, l.target} {
		for _, key := range []kmsg.Key{kmsg.ListGroups, kmsg.OffsetFetch, kmsg.FindCoordinator, kmsg.DescribeGroups, kmsg.ConsumerGroupDescribe} {
			s.ControlKey(key.Int16(), func(kmsg.Request) (kmsg.Response, error, bool) {
				s.KeepControl()
				if s == l.source && key == kmsg.ListGroups {
					asked.Add(1)
				} else {
					elsewhere.Add(1)
				}
				return nil, nil, false
			})
		}
	}
	r := l.start()
	eventually(t, "questions", func() string {
		if n := asked.Load(); n < 6 {
			return fmt.Sprint(n)
		}
		return ""
	})
	r.apply(func(f *config.Flow) { f.Checkpoints.Interval = time.Hour })
	eventually(t, "the last question", func() string {
		before := asked.Load()
		l.source.write("t", 0, "one")
		if asked.Load() != before {
			return "there are more"
		}
		return ""
	})
	before := asked.Load()
	r.apply(func(f *config.Flow) { f.ExcludeGroups = f.Groups }) // a round, by the change
	eventually(t, "a round", func() string {
		if asked.Load() != before+2 { // there are two brokers
			return fmt.Sprint(asked.Load() - before)
		}
		return ""
	})
	r.stop()
	if n := elsewhere.Load(); n != 0 {
		t.Errorf("%d requests beside those that list the source's groups", n)
	}

	asked.Store(0)
	for name, change := range map[string]func(*config.Flow){
		"switched off":   func(f *config.Flow) { f.Checkpoints.Enabled.On = false },
		"without plugin": func(f *config.Flow) { f.Checkpoints.Enabled.On, f.Plugins = true, nil },
	} {
		change(&l.cfg)
		r := l.start()
		l.source.write("t", 0, name)
		l.saved("t", 0, r.sourceEnd("t")-1)
		r.stop()
	}
	if asked.Load()+elsewhere.Load() != 0 {
		t.Errorf("%d and %d requests while it is off", asked.Load(), elsewhere.Load())
	}
	if found, err := l.target.cluster.Topics(t.Context(), []string{l.cfg.CheckpointsTopic()}); err != nil || len(found) != 0 {
		t.Errorf("the topic is there: %v, %v", found, err)
	}
}

// sourceEnd waits until all of partition 0 is copied, and gives its end.
func (r *running) sourceEnd(topic string) (end int64) {
	r.lab.Helper()
	eventually(r.lab.T, "the end of "+topic, func() string {
		p, _ := r.partition(topic, 0)
		if end = p.SourceEnd; end <= 0 || p.Lag != 0 {
			return fmt.Sprintf("%+v", p)
		}
		return ""
	})
	return end
}

// Asked for by the file, checkpoints need a plugin that has the hook: which have is
// known once they are loaded.
func TestCheckpointsThatNothingTranslatesAreRefused(t *testing.T) {
	dir, err := filepath.Abs(filepath.Join("..", "..", "plugins", "testdata"))
	if err != nil {
		t.Fatal(err)
	}
	parse := func(guest, checkpoints string) config.Flow {
		t.Helper()
		text := fmt.Sprintf("[clusters.A]\nbootstrap = ['embedded']\n[clusters.B]\nbootstrap = ['embedded']\n[[flows]]\nfrom = 'A'\nto = 'B'\n"+
			"[flows.checkpoints]\n%s\n[[flows.plugins]]\nname = 'offset-sync'\nenabled = false\n"+
			"[[flows.plugins]]\nname = 'other'\npath = '%s'\nemit = { groups = true }\n", checkpoints, filepath.Join(dir, guest))
		c, err := config.Parse("mirror.toml", []byte(text), os.LookupEnv)
		if err != nil {
			t.Fatal(err)
		}
		return c.Flows[0]
	}
	for _, c := range []struct{ guest, checkpoints, want string }{
		{"guest.wasm", "enabled = true", "mirror.toml:9: flows[0].checkpoints.enabled: cannot be: none of the plugins exports mirror_on_groups"},
		{"guest.wasm", "sync_groups = true", "mirror.toml:9: flows[0].checkpoints.sync_groups: cannot be"},
		{"guest.wasm", "interval = '1s'", ""},
		{"groups.wasm", "enabled = true\nsync_groups = true", ""},
	} {
		f := parse(c.guest, c.checkpoints)
		l := newLab(t, translating)
		l.cfg.Groups = f.Groups
		_, checked := CheckPlugins(t.Context(), &f)
		r := l.start()
		p, prepared := r.Prepare(context.Background(), f)
		if p != nil {
			p.Discard()
		}
		r.stop()
		for _, err := range []error{checked, prepared} {
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("%s with %s: %v, want %s", c.guest, c.checkpoints, err, c.want)
			}
		}
	}
}

// The built-in plugin translates: wherever groups stand, also between transactions, in a
// partition without data and at the head, they go on with the record that comes next for
// them, on checkpoints and on synced groups.
func TestGroupsGoOnAtTheRightRecord(t *testing.T) {
	l := newLab(t, offsetSync, following, func(f *config.Flow) {
		f.Checkpoints.SyncGroups = config.Switch{On: true}
		f.Plugins[0].Limits = config.Limits{Memory: 64 << 20, Call: time.Minute}
		f.Plugins[0].Config["translate"] = true
	})
	l.source.create("t", 1)
	l.source.create("empty", 1)
	for n := range 20 {
		l.source.transaction("t", n%3 != 1, values(fmt.Sprintf("tx%d", n), 0, 1+n%4)...)
	}
	end := l.source.PartitionInfo("t", 0).HighWatermark
	for offset := range end + 1 {
		l.source.commit(fmt.Sprintf("at-%d", offset), "t", 0, offset)
	}
	l.source.commit("nothing-yet", "empty", 0, 0)
	r := l.start()
	eventually(t, "exact answers", func() string {
		if s := r.Status().Failover; s.Groups[status.OutcomeExact] != int(end)+2 || len(s.Problem) > 0 {
			return fmt.Sprintf("%+v", s)
		}
		return ""
	})
	source, target := l.source.committed("t"), l.target.committed("A.t")
	for offset := range end + 1 {
		group := fmt.Sprintf("at-%d", offset)
		g, err := r.Explain(t.Context(), group, "")
		if err != nil || len(g.Partitions) != 1 {
			t.Fatalf("%+v, %v", g, err)
		}
		p := g.Partitions[0]
		if want, got := after(source, offset), after(target, p.Offset); want != got || p.Outcome != status.OutcomeExact {
			t.Errorf("group %s goes on at %d (%s) with %q, want %q", group, p.Offset, p.Outcome, got, want)
		}
		l.checkpoint(group, "t", offset, p.Offset)
		if p.Committed != p.Offset || p.Would != status.SyncInPlace {
			t.Errorf("group %s has %d on the target: %+v", group, p.Committed, p)
		}
	}
	if g, err := r.Explain(t.Context(), "nothing-yet", ""); err != nil || g.Partitions[0].Offset != 0 || g.Partitions[0].Outcome != status.OutcomeExact {
		t.Errorf("a group of a partition without data: %+v, %v", g, err)
	}
	if err := r.Lag(t.Context(), func(g status.GroupLag) {
		if g.Lose != 0 || g.Repeat != 0 || g.Unknown != 0 || g.NotCopied != 0 || g.AtMost {
			t.Errorf("%+v", g)
		}
	}); err != nil {
		t.Error(err)
	}
	r.stop()
}

// committed are the records of a topic that readers see, by their offsets.
func (s *side) committed(topic string) (all []*kgo.Record) {
	s.t.Helper()
	if _, err := s.cluster.Read(s.t.Context(), topic, nil, func(r *kgo.Record) { all = append(all, r) }); err != nil {
		s.t.Fatal(err)
	}
	return all
}

// after is the value of the first record at or after an offset, "": there is none.
func after(records []*kgo.Record, offset int64) string {
	for _, r := range records {
		if r.Offset >= offset {
			return string(r.Value)
		}
	}
	return ""
}
