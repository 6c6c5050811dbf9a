package topics

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kfake"
	"go.uber.org/goleak"

	"mirror/sidecar/cluster"
	"mirror/sidecar/config"
	"mirror/sidecar/policy"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// pair is a flow between two fake clusters, A and B, of three brokers each.
type pair struct {
	source, target *kfake.Cluster
	options        Options
	create         config.Create
	log            *bytes.Buffer
}

// manager keeps up all topics but internal ones.
func (p *pair) manager() *Manager {
	m := New(p.options)
	m.Choose(filter(".*", "__.*"), p.create)
	return m
}

func newPair(t *testing.T) *pair {
	t.Helper()
	p := &pair{log: new(bytes.Buffer)}
	open := func(alias string) (*kfake.Cluster, *cluster.Cluster) {
		fake, err := kfake.NewCluster(kfake.NumBrokers(3))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(fake.Close)
		c, err := cluster.Open(config.Cluster{Alias: alias, Bootstrap: fake.ListenAddrs(), ClientID: "mirror"}, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(c.Close)
		return fake, c
	}
	var source, target *cluster.Cluster
	p.source, source = open("A")
	p.target, target = open("B")
	p.options = Options{
		Source: source, Target: target,
		Policy: policy.New(byDefault, "A", "B"),
		Log:    slog.New(slog.NewTextHandler(p.log, nil)),
	}
	return p
}

func create(t *testing.T, c *kfake.Cluster, topic string, partitions int32, configs map[string]string) {
	t.Helper()
	if err := c.CreateTopic(topic, partitions, configs); err != nil {
		t.Fatal(err)
	}
}

func remove(t *testing.T, c *kfake.Cluster, topic string) {
	t.Helper()
	if err := c.DeleteTopic(topic); err != nil {
		t.Fatal(err)
	}
}

// sync does a round and returns its topics by source name.
func sync(t *testing.T, m *Manager) map[string]Topic {
	t.Helper()
	s, err := m.Sync(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	topics := map[string]Topic{}
	last := ""
	for _, topic := range s.Topics {
		if topic.Source <= last {
			t.Errorf("%s comes after %s", topic.Source, last)
		}
		last = topic.Source
		topics[topic.Source] = topic
	}
	return topics
}

// warnings counts what was logged as a warning since the last call, and returns it.
func (p *pair) warnings() (int, string) {
	log := p.log.String()
	p.log.Reset()
	return strings.Count(log, "level=WARN"), log
}

func (p *pair) wantQuiet(t *testing.T) {
	t.Helper()
	if n, log := p.warnings(); n > 0 {
		t.Errorf("warned:\n%s", log)
	}
}

func configOf(c *kfake.Cluster, topic, name string) string {
	if info := c.TopicInfo(topic); info == nil {
		return "no topic"
	} else if v := info.Configs[name]; v != nil {
		return *v
	}
	return "not set"
}

func TestSyncCreates(t *testing.T) {
	p := newPair(t)
	create(t, p.source, "t", 3, map[string]string{"cleanup.policy": "compact", "max.message.bytes": "2000000", "min.insync.replicas": "2"})
	create(t, p.source, "plain", 1, nil)
	create(t, p.source, "heartbeats", 1, nil)
	create(t, p.source, "B.t", 1, nil) // came from the target
	create(t, p.source, "__internal", 1, nil)
	create(t, p.target, "bystander", 1, nil)
	p.create = config.Create{ReplicationFactor: 2, Configs: map[string]string{"message.timestamp.type": "LogAppendTime"}}

	got := sync(t, p.manager())
	if len(got) != 3 {
		t.Errorf("got %v, want t, plain and heartbeats", got)
	}
	for source, want := range map[string]Topic{
		"t":          {Source: "t", Target: "A.t", Partitions: 3, MaxMessageBytes: 2000000, LogAppendTime: true},
		"plain":      {Source: "plain", Target: "A.plain", Partitions: 1, MaxMessageBytes: 1048588, LogAppendTime: true},
		"heartbeats": {Source: "heartbeats", Target: "A.heartbeats", Partitions: 1, MaxMessageBytes: 1048588, LogAppendTime: true},
	} {
		want.SourceID = p.source.TopicInfo(want.Source).TopicID
		want.TargetID = p.target.TopicInfo(want.Target).TopicID
		if got[source] != want {
			t.Errorf("got\n%+v, want\n%+v", got[source], want)
		}
		if n := p.target.TopicInfo(want.Target).NumReplicas; n != 2 {
			t.Errorf("%s has %d replicas, want 2", want.Target, n)
		}
	}
	for name, want := range map[string]string{
		"cleanup.policy": "compact", "max.message.bytes": "2000000", "min.insync.replicas": "not set", "message.timestamp.type": "LogAppendTime",
	} {
		if got := configOf(p.target, "A.t", name); got != want {
			t.Errorf("%s of A.t is %s, want %s", name, got, want)
		}
	}
	p.wantQuiet(t)
}

func TestSyncGrows(t *testing.T) {
	p := newPair(t)
	create(t, p.source, "t", 5, nil)
	create(t, p.target, "A.t", 2, map[string]string{"retention.ms": "77"})
	create(t, p.source, "wide", 2, nil)
	create(t, p.target, "A.wide", 4, nil)
	got := sync(t, p.manager())
	if got["t"].Partitions != 5 || got["t"].Err != nil || len(p.target.PartitionInfos("A.t")) != 5 {
		t.Errorf("t: got %+v, want 5 partitions on both sides", got["t"])
	}
	if got["wide"].Partitions != 2 || got["wide"].Err != nil || len(p.target.PartitionInfos("A.wide")) != 4 {
		t.Errorf("wide: got %+v, want 2 partitions and 4 left on the target", got["wide"])
	}
	if got := configOf(p.target, "A.t", "retention.ms"); got != "77" {
		t.Errorf("the config of a topic that was there became %s", got)
	}
	p.wantQuiet(t)
}

func TestSyncFollowsDeletion(t *testing.T) {
	p := newPair(t)
	create(t, p.source, "t", 1, nil)
	create(t, p.source, "u", 1, nil)
	m := p.manager()
	before := sync(t, m)

	remove(t, p.target, "A.t")
	after := sync(t, m)
	if after["t"].Err != nil || after["t"].Partitions != 1 || after["t"].TargetID == before["t"].TargetID || after["t"].SourceID != before["t"].SourceID {
		t.Errorf("target deleted: %+v became %+v", before["t"], after["t"])
	}

	remove(t, p.source, "t")
	create(t, p.source, "t", 4, nil)
	again := sync(t, m)
	if again["t"].Err != nil || again["t"].Partitions != 4 || again["t"].SourceID == after["t"].SourceID || again["t"].TargetID != after["t"].TargetID {
		t.Errorf("source made again: %+v became %+v", after["t"], again["t"])
	}

	remove(t, p.source, "t")
	if last := sync(t, m); len(last) != 1 || last["u"] != before["u"] {
		t.Errorf("source deleted: got %v, want u alone, as it was", last)
	}
	if p.target.TopicInfo("A.t") == nil {
		t.Error("the target topic is gone with its source")
	}
	p.wantQuiet(t)
}

func TestSyncOfNothing(t *testing.T) {
	p := newPair(t)
	create(t, p.target, "x", 1, nil)
	if got := sync(t, p.manager()); len(got) != 0 {
		t.Errorf("got %v", got)
	}
}

func TestSyncManyTopics(t *testing.T) {
	p := newPair(t)
	const n = 2*describeChunk + 10
	for i := range n {
		create(t, p.source, fmt.Sprintf("t%04d", i), 1+int32(i%2), map[string]string{"retention.ms": fmt.Sprint(1000 + i)})
	}
	m := p.manager()
	check := func() {
		t.Helper()
		got := sync(t, m)
		if len(got) != n {
			t.Fatalf("%d topics, want %d", len(got), n)
		}
		for i := range n {
			name := fmt.Sprintf("t%04d", i)
			if topic := got[name]; topic.Err != nil || topic.Partitions != 1+int32(i%2) || topic.MaxMessageBytes != 1048588 {
				t.Fatalf("got %+v", topic)
			}
			if got, want := configOf(p.target, "A."+name, "retention.ms"), fmt.Sprint(1000+i); got != want {
				t.Fatalf("%s: retention.ms is %s, want %s", name, got, want)
			}
		}
	}
	largest := map[int16]int{}
	p.watch(t, largest)
	check()
	check()
	for key, limit := range map[int16]int{19: applyTopics, 32: describeChunk} {
		if largest[key] != limit {
			t.Errorf("the largest request of kind %d is for %d topics, want %d", key, largest[key], limit)
		}
	}
	p.wantQuiet(t)
}

// What is chosen between two rounds is what the next one keeps up.
func TestChoose(t *testing.T) {
	p := newPair(t)
	for _, topic := range []string{"a", "b", "c"} {
		create(t, p.source, topic, 1, nil)
	}
	m := New(p.options)
	if got := sync(t, m); len(got) != 0 || m.Selects("a") {
		t.Errorf("nothing is chosen, got %v", got)
	}
	m.Choose(filter("a|b", "b"), config.Create{})
	if got := sync(t, m); len(got) != 1 || got["a"].Partitions != 1 || !m.Selects("a") || m.Selects("b") {
		t.Errorf("got %v, want a", got)
	}
	m.Choose(filter(".*", "a"), config.Create{Configs: map[string]string{"retention.ms": "4711"}})
	if got := sync(t, m); len(got) != 2 || got["a"].Partitions != 0 || m.Selects("a") || !m.Selects("c") {
		t.Errorf("got %v, want b and c", got)
	}
	if v := p.target.TopicInfo("A.b").Configs["retention.ms"]; v == nil || *v != "4711" {
		t.Errorf("A.b is made with retention.ms %v, want 4711", v)
	}
	if _, ok := p.target.TopicInfo("A.a").Configs["retention.ms"]; ok {
		t.Error("A.a was there, and has got a config")
	}
}
