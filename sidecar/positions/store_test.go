package positions

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"strings"
	"sync"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"go.uber.org/goleak"

	"mirror/sidecar/cluster"
	"mirror/sidecar/config"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	topic     = "mm2-offsets.A.internal"
	connector = "MirrorSourceConnector"
)

// target is a fake cluster B and what a store logs of it.
type target struct {
	*kfake.Cluster
	client *cluster.Cluster
	log    *bytes.Buffer // to be read when the store is idle
}

func newTarget(t *testing.T, opts ...kfake.Opt) *target {
	t.Helper()
	fake, err := kfake.NewCluster(append([]kfake.Opt{kfake.NumBrokers(3)}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(fake.Close)
	c, err := cluster.Open(config.Cluster{Alias: "B", Bootstrap: fake.ListenAddrs(), ClientID: "mirror"}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return &target{Cluster: fake, client: c, log: new(bytes.Buffer)}
}

func (tg *target) options() Options {
	return Options{
		Cluster:   tg.client,
		Source:    "A",
		Positions: config.Positions{Topic: topic, Connector: connector},
		Log:       slog.New(slog.NewTextHandler(tg.log, nil)),
	}
}

func (tg *target) open(t *testing.T) *Store {
	t.Helper()
	s, err := Open(t.Context(), tg.options())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

// write produces records as somebody else, MirrorMaker for one.
func (tg *target) write(t *testing.T, records ...*kgo.Record) {
	t.Helper()
	cl, err := kgo.NewClient(kgo.SeedBrokers(tg.ListenAddrs()...), kgo.DefaultProduceTopic(topic),
		kgo.ProducerBatchCompression(kgo.NoCompression()))
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	if err := cl.ProduceSync(t.Context(), records...).FirstErr(); err != nil {
		t.Fatal(err)
	}
}

func mm2(topic string, partition int32, value string) *kgo.Record {
	r := &kgo.Record{Key: fmt.Appendf(nil, `["MirrorSourceConnector",{"cluster":"A","partition":%d,"topic":"%s"}]`, partition, topic)}
	if value != "" {
		r.Value = []byte(value)
	}
	return r
}

func load(t *testing.T, s *Store) map[Key]Position {
	t.Helper()
	got, err := s.Load(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func wantLoad(t *testing.T, s *Store, want map[Key]Position) {
	t.Helper()
	if got := load(t, s); !maps.Equal(got, want) {
		t.Errorf("loaded\n%+v, want\n%+v", got, want)
	}
}

func TestOpenCreatesTheTopic(t *testing.T) {
	tg := newTarget(t)
	o := tg.options()
	o.Create = config.Create{ReplicationFactor: 2, Configs: map[string]string{"cleanup.policy": "delete", "min.insync.replicas": "1"}}
	s, err := Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	info := tg.TopicInfo(topic)
	if info == nil {
		t.Fatal("no topic")
	}
	found, err := tg.client.Topics(t.Context(), []string{topic})
	if err != nil {
		t.Fatal(err)
	}
	if ps := found[topic].Partitions; len(ps) != 25 || ps[0].Replicas != 2 {
		t.Errorf("made with %d partitions, replicas %v, want 25 and 2", len(ps), ps)
	}
	for name, want := range map[string]string{"cleanup.policy": "compact", "min.insync.replicas": "1"} {
		if got := info.Configs[name]; got == nil || *got != want {
			t.Errorf("%s is %v, want %s", name, got, want)
		}
	}
	wantLoad(t, s, map[Key]Position{})
}

func TestOpenLeavesReplicationToTheCluster(t *testing.T) {
	tg := newTarget(t)
	var factor int16
	tg.ControlKey(int16(kmsg.CreateTopics), func(r kmsg.Request) (kmsg.Response, error, bool) {
		factor = r.(*kmsg.CreateTopicsRequest).Topics[0].ReplicationFactor
		return nil, nil, false
	})
	tg.open(t)
	if factor != -1 {
		t.Errorf("created with replication factor %d, want -1", factor)
	}
}

func TestOpenErrors(t *testing.T) {
	for _, c := range []struct {
		err  *kerr.Error
		says string
	}{
		{kerr.TopicAuthorizationFailed, "allow Create"},
		{kerr.InvalidReplicationFactor, "replication_factor"},
		{kerr.PolicyViolation, "POLICY_VIOLATION"},
	} {
		tg := newTarget(t)
		tg.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.CreateTopics}, Topic: topic, Err: c.err})
		_, err := Open(t.Context(), tg.options())
		if !errors.Is(err, c.err) || !strings.Contains(err.Error(), c.says) || !strings.Contains(err.Error(), topic) {
			t.Errorf("%v: got %v", c.err.Message, err)
		}
	}
}

func TestOpenWithoutConfigsThatDoNotFit(t *testing.T) {
	tg := newTarget(t)
	refusal := tg.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.CreateTopics}, Err: kerr.InvalidConfig, Count: -1, When: func(r kmsg.Request) bool {
		return len(r.(*kmsg.CreateTopicsRequest).Topics[0].Configs) > 1
	}})
	o := tg.options()
	o.Create.Configs = map[string]string{"remote.storage.enable": "true"}
	s, err := Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	s.Close()
	configs := tg.TopicInfo(topic).Configs
	if refusal.Hits() != 1 || len(configs) != 1 || configs["cleanup.policy"] == nil || *configs["cleanup.policy"] != "compact" {
		t.Errorf("refused %d times, made with %v", refusal.Hits(), configs)
	}
	if !strings.Contains(tg.log.String(), "trying without them") {
		t.Errorf("log\n%s", tg.log)
	}
}

func TestOpenWhenSomebodyWasFaster(t *testing.T) {
	tg := newTarget(t)
	if err := tg.CreateTopic(topic, 5, map[string]string{"cleanup.policy": "delete"}); err != nil {
		t.Fatal(err)
	}
	tg.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Metadata}, Topic: topic, Err: kerr.UnknownTopicOrPartition})
	if _, err := tg.open(t).Check(t.Context()); !errors.Is(err, ErrCleanupPolicy) {
		t.Errorf("got %v: their topic was not looked at", err)
	}
}

func TestSaveAndLoad(t *testing.T) {
	tg := newTarget(t)
	s := tg.open(t)
	want := map[Key]Position{{"t", 0}: full, {"t", 1}: {Offset: -1, ProducerID: -1, TargetOffset: 1}}
	for n := range int32(300) {
		want[Key{"many", n}] = Position{Offset: int64(n), Sequence: n}
	}
	if err := s.Save(t.Context(), want); err != nil {
		t.Fatal(err)
	}
	if err := s.Save(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	wantLoad(t, s, want)

	// Plain is what a reader found, not what is written.
	later := map[Key]Position{{"t", 1}: {Offset: 12, Plain: true}}
	if err := s.Save(t.Context(), later); err != nil {
		t.Fatal(err)
	}
	want[Key{"t", 1}] = Position{Offset: 12}
	wantLoad(t, s, want)

	// MirrorMaker takes over, and loses what it does not know. Its records have
	// our keys, so they are in the same partition.
	tg.write(t, mm2("t", 0, `{"offset":500}`))
	want[Key{"t", 0}] = Plain(500)
	wantLoad(t, s, want)
	if tg.log.Len() > 0 && strings.Contains(tg.log.String(), "WARN") {
		t.Errorf("warned: %s", tg.log)
	}
}

func TestSaveFromManyLanes(t *testing.T) {
	tg := newTarget(t)
	s := tg.open(t)
	var lanes sync.WaitGroup
	for lane := range int32(4) {
		lanes.Go(func() {
			for n := range int64(20) {
				if err := s.Save(t.Context(), map[Key]Position{{"t", lane}: {Offset: n}}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	lanes.Wait()
	wantLoad(t, s, map[Key]Position{{"t", 0}: {Offset: 19}, {"t", 1}: {Offset: 19}, {"t", 2}: {Offset: 19}, {"t", 3}: {Offset: 19}})
}

func TestSaveAfterAFailedSave(t *testing.T) {
	one := func(offset int64) map[Key]Position { return map[Key]Position{{"t", 0}: {Offset: offset}} }
	for _, c := range []struct {
		err   *kerr.Error
		fails bool // or is retried
	}{
		{kerr.TopicAuthorizationFailed, true},
		{kerr.MessageTooLarge, true},
		{kerr.InvalidProducerEpoch, false},
		{kerr.NotEnoughReplicas, false},
		{kerr.NotLeaderForPartition, false},
	} {
		t.Run(c.err.Message, func(t *testing.T) {
			tg := newTarget(t)
			s := tg.open(t)
			if err := s.Save(t.Context(), one(1)); err != nil {
				t.Fatal(err)
			}
			fault := tg.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Err: c.err})
			err := s.Save(t.Context(), one(2))
			if fault.Hits() != 1 {
				t.Fatalf("the fault was met %d times", fault.Hits())
			}
			switch {
			case !c.fails && err != nil:
				t.Fatal(err)
			case c.fails && (!errors.Is(err, c.err) || !strings.Contains(err.Error(), `save positions of 1 partitions to topic "`+topic+`"`)):
				t.Fatalf("got %v", err)
			}
			if err := s.Save(t.Context(), one(3)); err != nil {
				t.Fatal(err)
			}
			wantLoad(t, s, one(3))
		})
	}
}

func TestSaveEndsWithItsContext(t *testing.T) {
	tg := newTarget(t)
	s := tg.open(t)
	fault := tg.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Err: kerr.NotEnoughReplicas, Count: -1})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- s.Save(ctx, map[Key]Position{{"t", 0}: {Offset: 1}}) }()
	if err := fault.Wait(t.Context(), 1); err != nil {
		t.Fatal(err)
	}

	// Another lane waits its turn, and gives up.
	waiting, giveUp := context.WithCancel(t.Context())
	giveUp()
	if err := s.Save(waiting, map[Key]Position{{"t", 1}: {Offset: 1}}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}

	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want context.Canceled", err)
	}
	fault.Remove()
	if err := s.Save(t.Context(), map[Key]Position{{"t", 0}: {Offset: 2}}); err != nil {
		t.Fatal(err)
	}
	wantLoad(t, s, map[Key]Position{{"t", 0}: {Offset: 2}})
}

func TestTopicDeletedWhileRunning(t *testing.T) {
	tg := newTarget(t)
	s := tg.open(t)
	p := map[Key]Position{{"t", 0}: {Offset: 1}}
	if err := s.Save(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	if err := tg.DeleteTopic(topic); err != nil {
		t.Fatal(err)
	}
	err := s.Save(t.Context(), p)
	if err == nil || !strings.Contains(err.Error(), "was it deleted?") || !strings.Contains(err.Error(), topic) {
		t.Errorf("got %v", err)
	}
	tg.open(t)
	if err := s.Save(t.Context(), p); err != nil {
		t.Errorf("made again: %v", err)
	}
	wantLoad(t, s, p)
}
