package pipeline

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kmsg"

	"mirror/abi"
	"mirror/plugins"
	"mirror/sidecar/config"
	"mirror/sidecar/state"
)

const stateTopic = "mm2-plugin-state.A.echo.internal"

// remembers is echo with state: "last" is the last offset that it was told. It fails when
// a partition begins after that, and when another topic's is there.
func remembers(f *config.Flow) {
	echo(f)
	f.Plugins[0].Config = map[string]any{"schema": "v1", "partitions": "count", "commit": "count"}
}

// state reads what is kept in the topic of a partition's state.
func (l *lab) state(topic string) *plugins.Kept {
	l.Helper()
	s, err := state.Open(l.Context(), state.Options{Cluster: l.target.cluster, Name: stateTopic, Schema: "v1", Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		l.Fatal(err)
	}
	defer s.Close()
	return s.Take(plugins.Key{Topic: topic})
}

// last is the offset that the state says, -1: there is none.
func (l *lab) last(topic string) int64 {
	l.Helper()
	for key, value := range l.state(topic).Pairs() {
		if string(key) == "last" {
			return int64(binary.LittleEndian.Uint64(value))
		}
	}
	return -1
}

// keeps waits until the state says this.
func (l *lab) keeps(topic string, want int64) {
	l.Helper()
	eventually(l.T, "a plugin's state", func() string {
		if got := l.last(topic); got != want {
			return fmt.Sprintf("it says %d, want %d", got, want)
		}
		return ""
	})
}

// What a plugin has put is there after a crash once the position is saved, wherever
// that happens.
func TestCrashesKeepState(t *testing.T) {
	points := crashes("mm2-offsets.A.internal")
	points["told, state not stored"] = crash{stateTopic, 1, false}
	points["state stored, not answered"] = crash{stateTopic, 1, true}
	for name, c := range points {
		if c.nth > 1 {
			continue
		}
		eachResume(t, name, remembers, func(l *lab) {
			r := l.settled()
			if last := l.last("t"); last != 4 {
				l.Errorf("the position is 4, and the state says %d", last)
			}
			crashed := l.crashAt(c)
			l.source.write("t", 0, values("v", 5, 5)...)
			r.dies(crashed)
			if at, last := l.positionOf("t"), l.last("t"); at > last {
				l.Errorf("position %d is saved, and the state says %d", at, last)
			}
			l.source.write("t", 0, values("v", 10, 2)...)
			l.recovers(12)
			if last := l.last("t"); last != 11 {
				l.Errorf("the state says %d, want 11", last)
			}
		})
	}
}

// From off to on the state is read again; plugins that follow each other share it.
func TestStateIsToggledLive(t *testing.T) {
	l := newLab(t, remembers, func(f *config.Flow) { f.Lanes = 2 })
	l.source.create("t", 1)
	l.source.write("t", 0, values("v", 0, 5)...)
	r := l.start()
	l.keeps("t", 4)
	open := r.states.all()
	r.apply(remembers, func(f *config.Flow) { f.Plugins[0].Tick = time.Hour })
	l.source.write("t", 0, values("v", 5, 5)...)
	l.keeps("t", 9)
	if now := r.states.all(); len(now) != 1 || now[0] != open[0] {
		t.Errorf("the state was opened again: %v", now)
	}
	l.saved("t", 0, 9)
	r.apply(without)
	eventually(t, "an end of the state", func() string { // a look after topics that are gone may still use it
		if n := len(r.states.all()); n != 0 {
			return fmt.Sprintf("%d topics of state are open while the plugin is off", n)
		}
		return ""
	})
	l.source.write("t", 0, values("v", 10, 5)...)
	l.saved("t", 0, 14)
	if last := l.last("t"); last != 9 {
		t.Errorf("the state says %d", last)
	}
	// It was off from 10 to 14, so its state is behind: the guest that minds halts, one
	// that does not goes on from what it finds.
	r.apply(remembers, func(f *config.Flow) { f.Plugins[0].Config["partitions"] = "echo" })
	l.source.write("t", 0, values("v", 15, 5)...)
	l.keeps("t", 19)
	p := r.Status().Plugins[0]
	if p.StateKeys != 2 || p.StateBytes != 4+8+3+8+2*abi.StateCost || p.StateRefused != 0 {
		t.Errorf("status %+v", p)
	}
	r.stop()
}

// Another topic of the name has nothing of the one before it.
func TestStateOfATopicThatIsMadeAgain(t *testing.T) {
	l := newLab(t, remembers, func(f *config.Flow) { f.OnRecreated = config.Restart })
	l.source.create("t", 1)
	l.source.write("t", 0, values("v", 0, 5)...)
	r := l.start()
	l.keeps("t", 4)
	l.saved("t", 0, 4)
	l.source.remove("t")
	l.source.create("t", 1)
	l.source.write("t", 0, values("w", 0, 3)...)
	l.keeps("t", 2)
	l.saved("t", 0, 2)
	r.stop()
	// The same while no mirror runs.
	l.source.remove("t")
	l.source.create("t", 1)
	l.source.write("t", 0, values("x", 0, 2)...)
	r = l.start()
	l.keeps("t", 1)
	l.saved("t", 0, 1)
	r.stop()
}

// What is kept of a topic that is gone is removed, not that of one which is not
// selected any more.
func TestStateOfATopicThatIsGone(t *testing.T) {
	l := newLab(t, remembers)
	for _, topic := range []string{"t", "gone", "late"} {
		l.source.create(topic, 1)
		l.source.write(topic, 0, values("v", 0, 5)...)
	}
	r := l.start()
	for _, topic := range []string{"t", "gone", "late"} {
		l.keeps(topic, 4)
		l.saved(topic, 0, 4)
	}
	l.source.remove("gone")
	l.keeps("gone", -1)
	r.apply(func(f *config.Flow) {
		p, err := config.Pattern("t")
		if err != nil {
			t.Fatal(err)
		}
		f.ExcludeTopics = append(f.ExcludeTopics, p)
	})
	r.left("t")
	r.stop()
	l.source.remove("late") // while no mirror runs
	r = l.start()
	l.keeps("late", -1)
	r.stop()
	if last := l.last("t"); last != 4 {
		t.Errorf("the state of a topic that is not selected says %d, want 4", last)
	}
}

// A look after topics that are gone, and which the plugin is switched off beside, neither
// uses what is closed nor keeps it open.
func TestStateInUseStaysOpen(t *testing.T) {
	l := newLab(t, remembers)
	l.source.create("t", 1)
	l.source.write("t", 0, values("v", 0, 1)...)
	r := l.start()
	l.keeps("t", 0)
	s := r.states.all()[0]
	if !r.states.stay(s) {
		t.Fatal("it is in use")
	}
	r.apply(without)
	if err := s.Forget(t.Context(), "other"); err != nil || len(r.states.all()) != 1 {
		t.Errorf("it is closed: %v", err)
	}
	r.states.leave(s)
	if len(r.states.all()) != 0 || r.states.stay(s) {
		t.Error("it is still open")
	}
}

// A plugin without a schema costs nothing for state: no topic, and no request about one.
func TestNoSchemaNoState(t *testing.T) {
	l := newLab(t, echo)
	var asked int
	l.target.ControlKey(int16(kmsg.Metadata), func(q kmsg.Request) (kmsg.Response, error, bool) {
		l.target.KeepControl()
		for _, topic := range q.(*kmsg.MetadataRequest).Topics {
			if topic.Topic != nil && strings.HasPrefix(*topic.Topic, "mm2-plugin-state") {
				asked++
			}
		}
		return nil, nil, false
	})
	l.source.create("t", 1)
	l.source.write("t", 0, values("v", 0, 5)...)
	r := l.start()
	l.saved("t", 0, 4)
	if len(r.states.all()) != 0 || l.target.TopicInfo(stateTopic) != nil {
		t.Error("there is state")
	}
	r.stop()
	if asked > 0 {
		t.Errorf("its topic was asked for %d times", asked)
	}
}

// State that cannot be read shows, and keeps positions from being saved, not records
// from being copied.
func TestStateThatCannotBeRead(t *testing.T) {
	l := newLab(t, remembers)
	l.source.create("t", 1)
	l.source.write("t", 0, values("v", 0, 5)...)
	l.target.create(stateTopic, 1) // it has too few partitions
	r := l.start()
	l.copied("t", 0, values("v", 0, 5)...)
	eventually(t, "the problem", func() string {
		if p := r.Status().PositionsProblem; !strings.Contains(p, "they wait for plugins' state: plugin echo: ") || !strings.Contains(p, "it has one partition and needs 4") {
			return fmt.Sprintf("it is %q", p)
		}
		return ""
	})
	if at := l.positionOf("t"); at != -1 {
		t.Errorf("position %d is saved", at)
	}
	// What has nothing to do with the plugins can be changed.
	r.apply(remembers, func(f *config.Flow) { f.CommitInterval = 20 * time.Millisecond })
	soon, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	c := *r.cfg()
	c.Plugins = nil
	if _, err := r.Prepare(soon, c); err == nil || !strings.Contains(err.Error(), "it has one partition and needs 4") {
		t.Errorf("the plugins can be taken away: %v", err)
	}
	l.target.remove(stateTopic)
	l.saved("t", 0, 4)
	l.keeps("t", 4)
	if p := r.Status().PositionsProblem; p != "" {
		t.Errorf("the problem %q is left", p)
	}
	if n := l.log.Count("plugins' state cannot be read yet"); n != 1 {
		t.Errorf("it is logged %d times", n)
	}
}

// A mirror whose state another one keeps, which began later, stops.
func TestAMirrorWhoseStateIsTakenOver(t *testing.T) {
	l := newLab(t, remembers)
	l.source.create("t", 1)
	l.source.write("t", 0, values("v", 0, 5)...)
	r := l.start()
	l.keeps("t", 4)
	next, err := state.Open(t.Context(), state.Options{Cluster: l.target.cluster, Name: stateTopic, Schema: "v1", Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	defer next.Close()
	if err := next.Write(t.Context(), []plugins.Change{{Key: plugins.Key{Topic: "t"}, Name: []byte("mine"), Value: []byte("x")}}); err != nil {
		t.Fatal(err)
	}
	l.source.write("t", 0, values("v", 5, 5)...)
	select {
	case <-r.done:
	case <-time.After(20 * time.Second):
		t.Fatal("it goes on")
	}
	if at := l.positionOf("t"); at != 4 {
		t.Errorf("it has saved position %d", at)
	}
}

// A plugin learns where the source's log starts, once it has moved.
func TestTheStartOfTheLogIsTold(t *testing.T) {
	l := newLab(t, echo)
	l.source.create("t", 1)
	l.source.write("t", 0, values("v", 0, 10)...)
	l.start()
	l.saved("t", 0, 9)
	offsets := kadm.Offsets{}
	offsets.Add(kadm.Offset{Topic: "t", Partition: 0, At: 6})
	rs, err := kadm.NewClient(l.source.cluster.Client()).DeleteRecords(t.Context(), offsets)
	if err = errors.Join(err, rs.Error()); err != nil {
		t.Fatal(err)
	}
	moved := func() []abi.Partition {
		return slices.DeleteFunc(l.events("t"), func(e abi.Partition) bool { return e.Event != abi.LogStartMoved })
	}
	eventually(t, "the event", func() string {
		if len(moved()) == 0 {
			return "it is not told"
		}
		return ""
	})
	l.source.write("t", 0, values("v", 10, 2)...)
	l.saved("t", 0, 11)
	all := moved()
	if len(all) != 1 || all[0].LogStart != 6 || all[0].Position != 9 || all[0].TargetEnd != 10 {
		t.Errorf("told %+v", all)
	}
}

// A plugin may not write where state is kept.
func TestStateIsNobodyElses(t *testing.T) {
	l := newLab(t, echo)
	s := &sink{flow: New(Options{Config: l.cfg, Source: l.source.cluster, Target: l.target.cluster, Log: l.slog()})}
	err := s.write(t.Context(), "p", []plugins.Emit{{Emit: abi.Emit{Kind: abi.EmitRecord, Record: abi.Record{Topic: stateTopic}}}})
	if err == nil || !strings.Contains(err.Error(), "is for plugins' state, nobody else may write to it") {
		t.Errorf("%v", err)
	}
}
