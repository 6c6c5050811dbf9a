package pipeline

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kfake"
	"go.uber.org/goleak"

	"mirror/integration/watch"
	"mirror/sidecar/cluster"
	"mirror/sidecar/config"
	"mirror/sidecar/positions"
	"mirror/sidecar/status"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// lab is a flow from a cluster A to a cluster B, which can be started again and
// again.
type lab struct {
	*testing.T
	source, target *side
	cfg            config.Flow
	log            *watch.Log
}

func newLab(t *testing.T, change ...func(*config.Flow)) *lab {
	t.Helper()
	return newLabOf(t, newSide(t, "A"), newSide(t, "B"), change...)
}

func newLabOf(t *testing.T, source, target *side, change ...func(*config.Flow)) *lab {
	t.Helper()
	l := &lab{T: t, source: source, target: target, log: new(watch.Log)}
	all, err := config.Pattern(".*")
	if err != nil {
		t.Fatal(err)
	}
	own, err := config.Pattern(`mm2.*\.internal`)
	if err != nil {
		t.Fatal(err)
	}
	l.cfg = config.Flow{
		From: "A", To: "B",
		Topics: []*regexp.Regexp{all}, ExcludeTopics: []*regexp.Regexp{own},
		Naming:  config.Naming{Policy: config.DefaultPolicy, Separator: "."},
		Refresh: 100 * time.Millisecond, CommitInterval: 20 * time.Millisecond, Grace: 10 * time.Second,
		Memory:    1 << 20,
		Positions: config.Positions{Topic: "mm2-offsets.A.internal", Connector: "MirrorSourceConnector"},
	}
	for _, f := range change {
		f(&l.cfg)
	}
	return l
}

// running is a flow that runs.
type running struct {
	*Flow
	lab  *lab
	done chan struct{} // closed at the end of the flow
	stop func()        // ends the flow and checks that it has given everything back
}

func (l *lab) start() *running {
	l.Helper()
	f := New(Options{Config: l.cfg, Source: l.source.cluster, Target: l.target.cluster, Log: l.slog()})
	ctx, cancel := context.WithCancel(l.Context())
	done := make(chan struct{})
	go func() { f.Run(ctx); close(done) }()
	var once sync.Once
	r := &running{Flow: f, lab: l, done: done}
	r.stop = func() {
		once.Do(func() {
			cancel()
			select {
			case <-done:
			case <-time.After(l.cfg.Grace + 10*time.Second):
				l.Fatal("the flow does not end within its grace time")
			}
			if n := f.frames.InUse() + f.producer.SetAside(); n != 0 {
				l.Errorf("%d bytes of frames are still held", n)
			}
		})
	}
	l.Cleanup(r.stop)
	return r
}

func (l *lab) slog() *slog.Logger { return slog.New(slog.NewTextHandler(l.log, nil)) }

// partition is the state of a partition as the flow reports it.
func (r *running) partition(topic string, number int32) (status.Partition, bool) {
	for _, p := range r.Status().Partitions {
		if p.Topic == topic && p.Partition == number {
			return p, true
		}
	}
	return status.Partition{}, false
}

// runs waits until the partition is copied.
func (r *running) runs(topic string, number int32) {
	r.lab.Helper()
	eventually(r.lab.T, "a running partition", func() string {
		if p, ok := r.partition(topic, number); !ok || p.State != status.Running {
			return fmt.Sprintf("%s-%d is %q: %s", topic, number, p.State, p.Reason)
		}
		return ""
	})
}

// stalled waits until the partition is stalled, with all the words in its reason.
func (r *running) stalled(topic string, number int32, words ...string) status.Partition {
	r.lab.Helper()
	var found status.Partition
	eventually(r.lab.T, "a stall", func() string {
		p, ok := r.partition(topic, number)
		if !ok || p.State != status.Stalled {
			return fmt.Sprintf("%s-%d is %q: %s", topic, number, p.State, p.Reason)
		}
		for _, w := range words {
			if !strings.Contains(p.Reason, w) {
				return fmt.Sprintf("%q is not in the reason %q", w, p.Reason)
			}
		}
		found = p
		return ""
	})
	return found
}

// copied waits until the target partition holds the values.
func (l *lab) copied(topic string, number int32, want ...string) {
	l.Helper()
	eventually(l.T, "records on the target", func() string {
		if got := l.target.values("A."+topic, number); fmt.Sprint(got) != fmt.Sprint(want) {
			return fmt.Sprintf("A.%s-%d holds %.300q, want %.300q", topic, number, got, want)
		}
		return ""
	})
}

// saved waits until the position is saved.
func (l *lab) saved(topic string, number int32, want int64) {
	l.Helper()
	eventually(l.T, "a saved position", func() string {
		if p, ok := l.positions()[positions.Key{Topic: topic, Partition: number}]; !ok || p.Offset != want {
			return fmt.Sprintf("it is %d, want %d (there: %v)", p.Offset, want, ok)
		}
		return ""
	})
}

// positions are those that are saved.
func (l *lab) positions() map[positions.Key]positions.Position {
	l.Helper()
	s := l.store()
	defer s.Close()
	ps, err := s.Load(l.Context())
	if err != nil {
		l.Fatal(err)
	}
	return ps
}

func (l *lab) store() *positions.Store {
	l.Helper()
	s, err := positions.Open(l.Context(), positions.Options{
		Cluster: l.target.cluster, Source: "A", Positions: l.cfg.Positions, Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		l.Fatal(err)
	}
	return s
}

// eventually waits until what it is given returns "".
var eventually = watch.Until

// values makes n of them, numbered, after a word.
func values(word string, from, n int) []string {
	vs := make([]string, n)
	for i := range vs {
		vs[i] = fmt.Sprintf("%s-%d", word, from+i)
	}
	return vs
}

// side is a cluster in this process.
type side struct {
	*kfake.Cluster
	t         *testing.T
	net       *tap
	cluster   *cluster.Cluster
	faults    *kfake.FaultHandle // of refuse
	throttles atomic.Int64       // requests that were throttled
	healed    atomic.Bool
}

func newSide(t *testing.T, alias string, opts ...kfake.Opt) *side {
	t.Helper()
	s := &side{t: t, net: newTap()}
	var err error
	if s.Cluster, err = kfake.NewCluster(append(opts, kfake.NumBrokers(2), kfake.DefaultNumPartitions(1), kfake.ListenFn(s.net.listen))...); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	s.connect(alias)
	return s
}

// connect opens the cluster as a process does that has just begun.
func (s *side) connect(alias string) {
	s.t.Helper()
	if s.cluster != nil {
		s.cluster.Close()
	}
	var err error
	s.cluster, err = cluster.Open(config.Cluster{Alias: alias, Bootstrap: s.ListenAddrs(), ClientID: "test"}, slog.New(slog.DiscardHandler))
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(s.cluster.Close)
}

func (s *side) create(topic string, partitions int32) {
	s.t.Helper()
	if err := s.CreateTopic(topic, partitions, nil); err != nil {
		s.t.Fatal(err)
	}
}

func (s *side) remove(topic string) {
	s.t.Helper()
	if err := s.DeleteTopic(topic); err != nil {
		s.t.Fatal(err)
	}
}

// grow gives the topic more partitions.
func (s *side) grow(topic string, partitions int) {
	s.t.Helper()
	rs, err := kadm.NewClient(s.cluster.Client()).UpdatePartitions(s.t.Context(), partitions, topic)
	if err = errors.Join(err, rs.Error()); err != nil {
		s.t.Fatal(err)
	}
}
