package pipeline

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"mirror/sidecar/config"
	"mirror/sidecar/positions"
	"mirror/sidecar/status"
)

func grace(d time.Duration) func(*config.Flow) { return func(f *config.Flow) { f.Grace = d } }

// names says whether the request has something for the topic.
func names(q *kmsg.ProduceRequest, topic *kfake.TopicInfo) bool {
	for _, t := range q.Topics {
		if t.TopicID == topic.TopicID || t.Topic == topic.Topic {
			return true
		}
	}
	return false
}

func TestWhatWasFetchedIsStoredBeforeTheEnd(t *testing.T) {
	l := newLab(t)
	l.source.create("t", 1)
	r := l.start()
	r.runs("t", 0)
	release, asked := l.target.hold(t, "A.t")
	l.source.write("t", 0, values("v", 0, 50)...)
	<-asked
	ended := make(chan struct{})
	go func() { r.stop(); close(ended) }()
	eventually(t, "the end to begin", func() string {
		if s := r.Status().State; s != status.Stopping {
			return string(s)
		}
		return ""
	})
	select {
	case <-ended:
		t.Error("the flow ended before the target had answered")
	default:
	}
	release()
	<-ended
	l.copied("t", 0, values("v", 0, 50)...)
	if got := l.positions()[positions.Key{Topic: "t"}].Offset; got != 49 {
		t.Errorf("the position is %d, want 49", got)
	}
}

// hold keeps the answers to produce requests for the topic until release is
// called; asked is closed when there is one.
func (s *side) hold(t *testing.T, topic string) (release func(), asked chan struct{}) {
	asked, released := make(chan struct{}), make(chan struct{})
	var once atomic.Bool
	info := s.TopicInfo(topic)
	s.ControlKey(int16(kmsg.Produce), func(q kmsg.Request) (kmsg.Response, error, bool) {
		if names(q.(*kmsg.ProduceRequest), info) {
			if once.CompareAndSwap(false, true) {
				close(asked)
			}
			s.SleepControl(func() { <-released })
		}
		return nil, nil, false
	})
	var off atomic.Bool
	release = func() {
		if off.CompareAndSwap(false, true) {
			close(released)
		}
	}
	t.Cleanup(release)
	return release, asked
}

// Whatever a cluster does, the flow ends within its grace time, and the next run
// copies what this one could not.
func TestTheGraceTimeHolds(t *testing.T) {
	produce, fetch := int16(kmsg.Produce), int16(kmsg.Fetch)
	for name, c := range map[string]struct {
		trouble func(l *lab)
		bites   func(l *lab, r *running) bool
	}{
		"a target that is gone":            {func(l *lab) { l.target.net.set(goDown) }, holds},
		"a target that hangs":              {func(l *lab) { l.target.net.set(hang) }, holds},
		"a target that throttles":          {func(l *lab) { l.target.throttle(produce) }, throttled},
		"a topic that takes nothing":       {func(l *lab) { l.target.refuse("A.t") }, refused},
		"positions that cannot be written": {func(l *lab) { l.target.refuse(l.cfg.Positions.Topic) }, refused},
		"a source that throttles":          {func(l *lab) { l.source.throttle(fetch) }, throttled},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t, grace(time.Second), resuming) // what hung may be stored yet
			l.source.create("t", 1)
			l.source.write("t", 0, values("v", 0, 3)...)
			r := l.start()
			l.copied("t", 0, values("v", 0, 3)...)
			l.saved("t", 0, 2)
			c.trouble(l)
			l.source.write("t", 0, values("v", 3, 3)...)
			eventually(t, "the trouble", func() string {
				if !c.bites(l, r) {
					return "there is none"
				}
				return ""
			})
			r.stop()
			l.target.net.set(work)
			l.source.heal()
			l.target.heal()
			l.start()
			l.copied("t", 0, values("v", 0, 6)...)
		})
	}
}

func holds(_ *lab, r *running) bool { return r.frames.InUse() > 0 }

func throttled(l *lab, _ *running) bool {
	return l.source.throttles.Load()+l.target.throttles.Load() > 0
}

func refused(l *lab, _ *running) bool { return l.target.faults.Hits() > 1 }

// throttle has the cluster tell the client to stay away for a minute (KIP-219).
func (s *side) throttle(key int16) {
	s.ControlKey(key, func(q kmsg.Request) (kmsg.Response, error, bool) {
		if s.healed.Load() {
			return nil, nil, false
		}
		resp := q.ResponseKind()
		switch r := resp.(type) {
		case *kmsg.FetchResponse:
			r.ThrottleMillis = 60000
		case *kmsg.ProduceResponse:
			r.ThrottleMillis = 60000
			if !names(q.(*kmsg.ProduceRequest), s.TopicInfo("A.t")) {
				return nil, nil, false
			}
		}
		s.KeepControl()
		s.throttles.Add(1)
		return resp, nil, true
	})
}

// refuse keeps the topic from being written to, until heal.
func (s *side) refuse(topic string) {
	s.faults = s.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Topic: topic, Err: kerr.NotEnoughReplicas, Count: -1})
}

// heal ends throttle and refuse.
func (s *side) heal() {
	s.healed.Store(true)
	if s.faults != nil {
		s.faults.Remove()
	}
}

// A stop that comes before the first plugins are there waits for them, if positions do.
func TestAStopWaitsForTheFirstPlugins(t *testing.T) {
	l := newLab(t, remembers)
	l.source.create("t", 1)
	l.source.write("t", 0, values("v", 0, 5)...)
	l.target.create(stateTopic, 1) // unfit: it keeps the plugins from being loaded
	r := l.start()
	l.copied("t", 0, values("v", 0, 5)...)
	var stop sync.WaitGroup
	stop.Go(r.stop)
	eventually(t, "the stop", func() string {
		if s := r.Status(); s.State != status.Stopping {
			return string(s.State)
		}
		return ""
	})
	l.target.remove(stateTopic)
	stop.Wait()
	if at := l.positionOf("t"); at != 4 {
		t.Errorf("the position is %d at the end, want 4", at)
	}
}
