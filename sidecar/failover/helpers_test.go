package failover

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kfake"
	"go.uber.org/goleak"

	"mirror/abi"
	"mirror/integration/watch"
	"mirror/plugins"
	"mirror/sidecar/cluster"
	"mirror/sidecar/config"
	"mirror/sidecar/groups"
	"mirror/sidecar/offsets"
	"mirror/sidecar/status"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const topicName = "A.checkpoints.internal"

// side is a cluster in this process.
type side struct {
	*kfake.Cluster
	t       testing.TB
	cluster *cluster.Cluster
	// Of the test's own, so that they do not wait behind what the engine asks.
	admin  *kadm.Client
	groups *groups.Client
}

func newSide(t testing.TB, alias string, opts ...kfake.Opt) *side {
	t.Helper()
	k, err := kfake.NewCluster(append([]kfake.Opt{kfake.NumBrokers(3), kfake.DefaultNumPartitions(1)}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(k.Close)
	open := func() *cluster.Cluster {
		c, err := cluster.Open(config.Cluster{Alias: alias, Bootstrap: k.ListenAddrs(), ClientID: "test"}, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(c.Close)
		return c
	}
	own := open()
	return &side{Cluster: k, t: t, cluster: open(), admin: kadm.NewClient(own.Client()), groups: groups.New(own)}
}

func (s *side) create(topic string, partitions int32) {
	s.t.Helper()
	if err := s.CreateTopic(topic, partitions, nil); err != nil {
		s.t.Fatal(err)
	}
}

// commit commits an offset for a group that nobody is in.
func (s *side) commit(group, topic string, partition int32, offset int64, metadata string) {
	s.t.Helper()
	eventually(s.t, "a commit", func() string {
		o := groups.Offset{Topic: topic, TopicID: s.id(topic), Partition: partition, Offset: offset, Metadata: metadata}
		return textOf(s.groups.Commit(context.Background(), group, []groups.Offset{o})[0])
	})
}

// committed is what a group has for a partition, as offset/epoch/metadata; "": nothing.
func (s *side) committed(group, topic string, partition int32) string {
	s.t.Helper()
	topics := groups.Topics{Names: map[string]bool{topic: true}, ByID: map[[16]byte]string{s.id(topic): topic}}
	c := s.groups.Fetch(context.Background(), []string{group}, topics)[0]
	if c.Err != nil {
		s.t.Fatal(c.Err)
	}
	for _, o := range c.Offsets {
		if o.Partition == partition {
			return fmt.Sprintf("%d/%d/%s", o.Offset, o.LeaderEpoch, o.Metadata)
		}
	}
	return ""
}

// id is the topic's, as it is now.
func (s *side) id(topic string) [16]byte {
	s.t.Helper()
	return s.TopicInfo(topic).TopicID
}

// lab is an engine between two clusters, with the answers and partitions that a test
// gives it.
type lab struct {
	testing.TB
	source, target *side
	log            *watch.Log

	mu         sync.Mutex
	config     config.Flow
	off        string
	partitions []Partition
	answers    func(plugins.GroupOffset) plugins.Translation
	failure    error
	asked      int
	changed    chan struct{}
}

func newLab(t testing.TB) *lab {
	t.Helper()
	return newLabOf(t, newSide(t, "A"), newSide(t, "B"))
}

func newLabOf(t testing.TB, source, target *side) *lab {
	t.Helper()
	l := &lab{TB: t, source: source, target: target, log: new(watch.Log), changed: make(chan struct{}, 1)}
	l.config = config.Flow{
		From: "A", To: "B", Naming: config.Naming{Policy: config.DefaultPolicy, Separator: "."},
		Groups: patterns(t, ".*"), ExcludeGroups: patterns(t, "tmp-.*"), Refresh: time.Hour,
		Checkpoints: config.Checkpoints{Enabled: config.Switch{On: true}, Interval: 10 * time.Millisecond},
	}
	l.answers = less(3)
	return l
}

func patterns(t testing.TB, sources ...string) (all []*regexp.Regexp) {
	t.Helper()
	for _, s := range sources {
		re, err := config.Pattern(s)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, re)
	}
	return all
}

// less answers exactly, that much less.
func less(n int64) func(plugins.GroupOffset) plugins.Translation {
	return func(g plugins.GroupOffset) plugins.Translation { return exact(g.Offset - n) }
}

func exact(offset int64) plugins.Translation {
	return plugins.Translation{Offset: offset, Outcome: abi.Exact, Plugin: "test"}
}

func bound(offset int64, why abi.Reason) plugins.Translation {
	return plugins.Translation{Offset: offset, Outcome: abi.Bound, Reason: why, Plugin: "test"}
}

func none(why abi.Reason) plugins.Translation {
	return plugins.Translation{Offset: -1, Outcome: abi.NoOffset, Reason: why, Plugin: "test"}
}

// mirrors makes a topic on both sides, that the flow mirrors.
func (l *lab) mirrors(topic string, partitions int32) {
	l.Helper()
	l.source.create(topic, partitions)
	l.target.create("A."+topic, partitions)
	l.follow(topic, partitions)
}

// follow has the flow mirror a topic, with the ids that it has now.
func (l *lab) follow(topic string, partitions int32) {
	l.Helper()
	from, err := l.source.cluster.Topics(context.Background(), []string{topic})
	if err != nil {
		l.Fatal(err)
	}
	to, err := l.target.cluster.Topics(context.Background(), []string{"A." + topic})
	if err != nil {
		l.Fatal(err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	var others []Partition
	for _, p := range l.partitions {
		if p.Topic != topic {
			others = append(others, p)
		}
	}
	for n := range partitions {
		others = append(others, Partition{
			Key: plugins.Key{Topic: topic, Partition: n}, Target: "A." + topic,
			SourceID: from[topic].ID, TargetID: to["A."+topic].ID, Position: 999_999, TargetEnd: 1_000_000, SourceEnd: 1_000_000,
		})
	}
	l.partitions = others
}

// with changes what the engine sees.
func (l *lab) with(change func(*lab)) {
	l.mu.Lock()
	change(l)
	l.mu.Unlock()
	select {
	case l.changed <- struct{}{}:
	default:
	}
}

func (l *lab) engine() *Engine {
	e := New(Options{
		Source: l.source.cluster, Target: l.target.cluster, Changed: l.changed,
		Config: func() *config.Flow {
			l.mu.Lock()
			defer l.mu.Unlock()
			c := l.config
			return &c
		},
		On: func() (bool, string) {
			l.mu.Lock()
			defer l.mu.Unlock()
			return l.off == "", l.off
		},
		Partitions: func() []Partition {
			l.mu.Lock()
			defer l.mu.Unlock()
			return append([]Partition{}, l.partitions...)
		},
		Translate: func(_ context.Context, asked []plugins.GroupOffset) ([]plugins.Translation, error) {
			l.mu.Lock()
			defer l.mu.Unlock()
			l.asked += len(asked)
			answers := make([]plugins.Translation, len(asked))
			for i, g := range asked {
				answers[i] = l.answers(g)
			}
			return answers, l.failure
		},
		Syncs: func(context.Context) ([]offsets.Sync, error) { return nil, errors.New("no syncs") },
		Count: func() {}, Log: slog.New(slog.NewTextHandler(l.log, nil)),
	})
	l.Cleanup(e.topic.Close)
	return e
}

// start runs an engine until the test ends, or stop is called.
func (l *lab) start() (e *Engine, stop func()) {
	e = l.engine()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { e.Run(ctx); close(done) }()
	var once sync.Once
	stop = func() { once.Do(func() { cancel(); <-done }) }
	l.Cleanup(stop)
	return e, stop
}

// once does one round.
func (l *lab) once(e *Engine) {
	l.Helper()
	err := e.round(context.Background(), e.o.Config())
	e.ended(err)
	if err != nil {
		l.Fatal(err)
	}
}

// checkpoints are those in the topic, the last of each, as group/topic-partition:
// up>down metadata; and how many records there are.
func (l *lab) checkpoints() (last map[string]string, records int) {
	l.Helper()
	t := offsets.NewCheckpoints(offsets.TopicOptions{Cluster: l.target.cluster, Name: topicName, Log: slog.New(slog.DiscardHandler)})
	defer t.Close()
	last = map[string]string{}
	err := t.Read(context.Background(), func(c offsets.Checkpoint, at time.Time) {
		records++
		last[fmt.Sprintf("%s/%s-%d", c.Group, c.Topic, c.Partition)] = strings.TrimSpace(fmt.Sprintf("%d>%d %s", c.Upstream, c.Downstream, c.Metadata))
	})
	if err != nil {
		l.Fatal(err)
	}
	return last, records
}

// has checks a group's checkpoint of partition 0 of a topic; "": none.
func (l *lab) has(group, topic, want string) {
	l.Helper()
	last, _ := l.checkpoints()
	if got := last[group+"/A."+topic+"-0"]; got != want {
		l.Errorf("the checkpoint of group %s is %q, want %q", group, got, want)
	}
}

// eventually waits until what it is given returns "".
var eventually = watch.Until

func held(e *Engine) string {
	var all []string
	s := e.Status()
	for _, why := range status.HeldReasons {
		if n := s.Held[why]; n > 0 {
			all = append(all, fmt.Sprintf("%s %d", why, n))
		}
	}
	return strings.Join(all, ", ")
}
