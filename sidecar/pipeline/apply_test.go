package pipeline

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"mirror/sidecar/config"
	"mirror/sidecar/positions"
	"mirror/sidecar/status"
)

func selecting(t testing.TB, patterns ...string) func(*config.Flow) {
	t.Helper()
	var all []*regexp.Regexp
	for _, p := range patterns {
		re, err := config.Pattern(p)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, re)
	}
	return func(f *config.Flow) { f.Topics = all }
}

func refreshing(d time.Duration) func(*config.Flow) { return func(f *config.Flow) { f.Refresh = d } }

// apply changes the config of the flow as it runs.
func (r *running) apply(change ...func(*config.Flow)) {
	for _, c := range change {
		c(&r.lab.cfg)
	}
	p, err := r.Prepare(r.lab.Context(), r.lab.cfg)
	if err != nil {
		r.lab.Fatal(err)
	}
	r.Apply(r.lab.Context(), p)
}

// left waits until no partition of the topic is left.
func (r *running) left(topic string) {
	r.lab.Helper()
	eventually(r.lab.T, "the end of "+topic, func() string {
		if p, ok := r.partition(topic, 0); ok {
			return fmt.Sprintf("it is %s: %s", p.State, p.Reason)
		}
		return ""
	})
}

// With an hour between two rounds, all that happens comes from Apply.
func TestTopicsAreSelectedLive(t *testing.T) {
	l := newLab(t, selecting(t, "a", "stays"), refreshing(time.Hour))
	for _, topic := range []string{"a", "b", "stays"} {
		l.source.create(topic, 1)
		l.source.write(topic, 0, values(topic, 0, 3)...)
	}
	r := l.start()
	l.copied("a", 0, values("a", 0, 3)...)
	before := r.all()
	r.apply(selecting(t, "b", "stays"))
	l.copied("b", 0, values("b", 0, 3)...)
	r.left("a")
	if got := l.positions()[positions.Key{Topic: "a"}].Offset; got != 2 {
		t.Errorf("the position of what left is %d, want 2", got)
	}
	l.source.write("a", 0, values("a", 3, 3)...)
	l.source.write("stays", 0, values("stays", 3, 3)...)
	l.copied("stays", 0, values("stays", 0, 6)...)
	l.copied("a", 0, values("a", 0, 3)...)

	r.apply(selecting(t, "a", "b", "stays")) // it goes on where it ended
	l.copied("a", 0, values("a", 0, 6)...)
	if i := slices.IndexFunc(before, func(p *partition) bool { return p.key.Topic == "stays" }); !slices.Contains(r.all(), before[i]) {
		t.Error("a topic that was selected all along has begun anew")
	}
	if n := l.log.Count("not selected any more"); n != 1 {
		t.Errorf("the end of a topic is logged %d times", n)
	}
	if n := l.log.Count("gone from the source"); n != 0 {
		t.Error("a topic that is there is said to be gone")
	}
}

// A topic may be selected again while what was fetched of it is still on its way.
func TestATopicThatIsSelectedAgainWhileItLeaves(t *testing.T) {
	l := newLab(t, refreshing(time.Hour))
	l.source.create("t", 1)
	r := l.start()
	r.runs("t", 0)
	release, asked := l.target.hold(t, "A.t")
	l.source.write("t", 0, values("v", 0, 50)...)
	<-asked
	r.apply(selecting(t, "other"))
	eventually(t, "it to leave", func() string {
		if n := l.log.Count("not selected any more"); n != 1 {
			return fmt.Sprintf("logged %d times", n)
		}
		return ""
	})
	r.apply(selecting(t, ".*"))
	l.source.write("t", 0, values("v", 50, 50)...)
	eventually(t, "it to be back", func() string {
		if slices.ContainsFunc(r.all(), (*partition).leaves) {
			return "it leaves"
		}
		return ""
	})
	release()
	l.copied("t", 0, values("v", 0, 100)...)
	p, _ := r.partition("t", 0)
	for _, c := range p.Paths {
		if c.Reason == status.ReasonStored {
			t.Errorf("%d records were looked for on the target, though they were on their way", c.Records)
		}
	}
}

func TestIntervalsChangeLive(t *testing.T) {
	l := newLab(t, refreshing(time.Hour), func(f *config.Flow) { f.CommitInterval = time.Hour })
	l.source.create("t", 1)
	r := l.start()
	r.runs("t", 0)
	l.source.write("t", 0, values("v", 0, 3)...)
	l.copied("t", 0, values("v", 0, 3)...)
	r.apply(refreshing(20*time.Millisecond), func(f *config.Flow) { f.CommitInterval = 20 * time.Millisecond })
	l.saved("t", 0, 2)
	for n := range 3 { // one round might come of the change itself
		topic := fmt.Sprint("new-", n)
		l.source.create(topic, 1)
		r.runs(topic, 0)
	}
}

// Changes that come faster than positions are saved must not hold that up.
func TestManyChangesLeaveTimeToSave(t *testing.T) {
	l := newLab(t, func(f *config.Flow) { f.CommitInterval = time.Second })
	l.source.create("t", 1)
	r := l.start()
	r.runs("t", 0)
	stop := make(chan struct{})
	var changing sync.WaitGroup
	changing.Go(func() {
		tick := time.NewTicker(5 * time.Millisecond)
		defer tick.Stop()
		for c := l.cfg; ; {
			select {
			case <-stop:
				return
			case <-tick.C:
				c.Grace += time.Millisecond
				p, err := r.Prepare(l.Context(), c)
				if err != nil {
					l.Error(err)
					return
				}
				r.Apply(l.Context(), p)
			}
		}
	})
	l.source.write("t", 0, values("v", 0, 3)...)
	l.saved("t", 0, 2)
	close(stop)
	changing.Wait()
}

func TestTopicsAreMadeAsTheConfigSaysNow(t *testing.T) {
	l := newLab(t, selecting(t, "a"), refreshing(time.Hour))
	l.source.create("a", 1)
	l.source.create("b", 1)
	r := l.start()
	r.runs("a", 0)
	r.apply(selecting(t, "a", "b"), func(f *config.Flow) { f.Create.Configs = map[string]string{"retention.ms": "4711"} })
	r.runs("b", 0)
	if v := l.target.TopicInfo("A.b").Configs["retention.ms"]; v == nil || *v != "4711" {
		t.Errorf("retention.ms is %v, want 4711", v)
	}
}

// Who changes what a stall is about does not wait for the next try.
func TestAStalledPartitionFollowsItsPolicyLive(t *testing.T) {
	l := newLab(t, refreshing(time.Hour), func(f *config.Flow) { f.OnLostPositions = config.Halt })
	l.source.create("t", 1)
	l.source.write("t", 0, "v")
	l.target.create("A.t", 1)
	l.target.write("A.t", 0, "foreign")
	r := l.start()
	r.stalled("t", 0, "on_lost_positions")
	r.apply(func(f *config.Flow) { f.OnLostPositions = config.Restart })
	l.copied("t", 0, "foreign", "v")
	r.runs("t", 0)
}

// A flow that has not started yet starts with what was applied meanwhile.
func TestApplyBeforeTheStart(t *testing.T) {
	l := newLab(t, selecting(t, "a"), refreshing(time.Hour))
	l.source.create("b", 1)
	l.source.write("b", 0, "v")
	refusing := l.target.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.CreateTopics}, Topic: l.cfg.Positions.Topic, Err: kerr.PolicyViolation, Count: -1})
	r := l.start()
	eventually(t, "the reason", func() string {
		if s := r.Status(); s.State != status.Starting || s.Reason == "connecting" {
			return fmt.Sprint(s.State, s.Reason)
		}
		return ""
	})
	r.apply(selecting(t, "b"))
	refusing.Remove()
	l.copied("b", 0, "v")
}

// A reload that comes in the moment a flow begins counts, plugins too: they are loaded
// by the config that the flow begins with, and that is the new one.
func TestApplyWhileAFlowBegins(t *testing.T) {
	l := newLab(t, offsetSync)
	l.source.create("t", 1)
	l.source.write("t", 0, "v")
	f := New(Options{Config: l.cfg, Source: l.source.cluster, Target: l.target.cluster, Log: l.slog()})
	off := l.cfg
	without(&off)
	p, err := f.Prepare(t.Context(), off)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var run sync.WaitGroup
	began := make(chan struct{})
	run.Go(func() { close(began); f.Run(ctx) })
	<-began
	f.Apply(t.Context(), p)
	l.copied("t", 0, "v")
	cancel()
	run.Wait()
	if n := f.generations.Load(); n != 0 {
		t.Errorf("%d generations of plugins were loaded, which are switched off", n)
	}
	if l.target.TopicInfo(syncsTopic) != nil {
		t.Error("a topic of offset syncs was made")
	}
}
