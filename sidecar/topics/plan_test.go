package topics

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"
	"pgregory.net/rapid"

	"mirror/sidecar/cluster"
	"mirror/sidecar/config"
	"mirror/sidecar/policy"
)

var byDefault = config.Naming{Policy: config.DefaultPolicy, Separator: "."}

func filter(include, exclude string) policy.Filter {
	whole := func(s string) []*regexp.Regexp { return []*regexp.Regexp{regexp.MustCompile("^(?:" + s + ")$")} }
	return policy.NewFilter(whole(include), whole(exclude))
}

// sized makes a view of one cluster from topic names and partition counts.
func sized(counts map[string]int) map[string]cluster.Topic {
	topics := map[string]cluster.Topic{}
	for name, n := range counts {
		topics[name] = cluster.Topic{Name: name, Partitions: make([]cluster.Partition, n)}
	}
	return topics
}

func TestSelect(t *testing.T) {
	source := sized(map[string]int{
		"t": 1, "a": 1, "heartbeats": 1, "B.t": 1, "C.t": 1, "secret": 1,
		"__consumer_offsets": 50, "mm2-offset-syncs.B.internal": 1, "C.checkpoints.internal": 1,
	})
	got := Select(source, policy.New(byDefault, "A", "B"), filter(".*", "secret"))
	want := []Pair{{"C.t", "A.C.t"}, {"a", "A.a"}, {"heartbeats", "A.heartbeats"}, {"t", "A.t"}}
	if !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestPlan(t *testing.T) {
	pair := Pair{"t", "A.t"}
	create := func(partitions int32, factor int16, required, carried map[string]string) Plan {
		return Plan{Create: []Create{{
			Pair: pair, Partitions: partitions, ReplicationFactor: factor, Required: required, Carried: carried,
		}}}
	}
	type configs = map[string]string
	unseen := errors.New("unseen")
	for _, c := range []struct {
		name     string
		from, to int // partitions of t and A.t; -1: does not exist
		own      configs
		create   config.Create
		unseen   error
		want     Plan
	}{
		{name: "missing", from: 3, to: -1, want: create(3, -1, configs{}, configs{})},
		{name: "factor", from: 3, to: -1, create: config.Create{ReplicationFactor: 2}, want: create(3, 2, configs{}, configs{})},
		{
			name: "configs", from: 1, to: -1,
			own:    configs{"cleanup.policy": "compact", "retention.ms": "5", "segment.ms": "7", "min.insync.replicas": "2"},
			create: config.Create{Configs: configs{"segment.ms": "9", "min.insync.replicas": "1", "compression.type": "zstd"}},
			want: create(1, -1,
				configs{"cleanup.policy": "compact", "segment.ms": "9", "min.insync.replicas": "1", "compression.type": "zstd"},
				configs{"retention.ms": "5"}),
		},
		{
			name: "cleanup policy of the flow", from: 1, to: -1,
			own:    configs{"cleanup.policy": "compact"},
			create: config.Create{Configs: configs{"cleanup.policy": "delete"}},
			want:   create(1, -1, configs{"cleanup.policy": "delete"}, configs{}),
		},
		{
			name: "MirrorMaker's eight", from: 1, to: -1,
			own: configs{
				"follower.replication.throttled.replicas": "*", "leader.replication.throttled.replicas": "*",
				"message.timestamp.difference.max.ms": "1", "log.message.timestamp.before.max.ms": "1",
				"log.message.timestamp.after.max.ms": "1", "message.timestamp.type": "LogAppendTime",
				"unclean.leader.election.enable": "true", "min.insync.replicas": "2",
				"max.message.bytes": "5000000",
			},
			want: create(1, -1, configs{}, configs{"max.message.bytes": "5000000"}),
		},
		{name: "same", from: 3, to: 3},
		{name: "grow", from: 5, to: 3, want: Plan{Grow: []Grow{{Pair: pair, From: 3, To: 5}}}},
		{name: "never shrink", from: 3, to: 5},
		{name: "unseen", from: 3, to: -1, unseen: unseen, want: Plan{Refused: map[string]error{"t": unseen}}},
		{name: "unseen and small", from: 3, to: 1, unseen: unseen, want: Plan{Refused: map[string]error{"t": unseen}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			v := View{
				Source:  sized(map[string]int{"t": c.from}),
				Target:  map[string]cluster.Topic{},
				Configs: map[string]map[string]string{"t": c.own},
				Unseen:  map[string]error{},
			}
			if c.to >= 0 {
				v.Target = sized(map[string]int{"A.t": c.to})
			}
			if c.unseen != nil {
				v.Unseen["t"] = c.unseen
			}
			c.want.Pairs = []Pair{pair}
			if c.want.Refused == nil {
				c.want.Refused = map[string]error{}
			}
			if got := NewPlan(v, []Pair{pair}, c.create); !reflect.DeepEqual(got, c.want) {
				t.Errorf("got\n%+v, want\n%+v", got, c.want)
			}
		})
	}
}

// A plan, carried out, leaves nothing to plan.
func TestPlanIsDoneOnce(t *testing.T) {
	counts := rapid.MapOf(rapid.StringMatching(`[a-z]{1,3}`), rapid.IntRange(1, 20))
	rapid.Check(t, func(t *rapid.T) {
		v := View{Source: sized(counts.Draw(t, "source")), Target: map[string]cluster.Topic{}}
		for name, n := range counts.Draw(t, "target") {
			v.Target["A."+name] = cluster.Topic{Partitions: make([]cluster.Partition, n)}
		}
		before := maps.Clone(v.Target)
		pairs := Select(v.Source, policy.New(byDefault, "A", "B"), filter(".*", "x.*"))
		plan := NewPlan(v, pairs, config.Create{})
		for _, c := range plan.Create {
			if _, ok := v.Target[c.Target]; ok {
				t.Fatalf("%s is there already", c.Target)
			}
			v.Target[c.Target] = cluster.Topic{Partitions: make([]cluster.Partition, c.Partitions)}
		}
		for _, g := range plan.Grow {
			if g.To <= g.From || g.From != int32(len(v.Target[g.Target].Partitions)) {
				t.Fatalf("%+v", g)
			}
			v.Target[g.Target] = cluster.Topic{Partitions: make([]cluster.Partition, g.To)}
		}
		for _, pair := range pairs {
			want := max(len(v.Source[pair.Source].Partitions), len(before[pair.Target].Partitions))
			if got := len(v.Target[pair.Target].Partitions); got != want {
				t.Fatalf("%s got %d partitions, want %d", pair.Target, got, want)
			}
		}
		if again := NewPlan(v, pairs, config.Create{}); len(again.Create)+len(again.Grow) > 0 {
			t.Fatalf("planned again: %+v", again)
		}
	})
}

func TestOwnConfigs(t *testing.T) {
	entry := func(name, value string, change func(*kmsg.DescribeConfigsResponseResourceConfig)) kmsg.DescribeConfigsResponseResourceConfig {
		c := kmsg.NewDescribeConfigsResponseResourceConfig()
		c.Name, c.Value, c.Source = name, kmsg.StringPtr(value), kmsg.ConfigSourceDynamicTopicConfig
		if change != nil {
			change(&c)
		}
		return c
	}
	type rc = kmsg.DescribeConfigsResponseResourceConfig
	d := described{version: 4, configs: []rc{
		entry("own", "1", nil),
		entry("default", "2", func(c *rc) { c.Source = kmsg.ConfigSourceDefaultConfig }),
		entry("broker's", "3", func(c *rc) { c.Source = kmsg.ConfigSourceStaticBrokerConfig }),
		entry("brokers' default", "4", func(c *rc) { c.Source = kmsg.ConfigSourceDynamicDefaultBrokerConfig }),
		entry("read only", "5", func(c *rc) { c.ReadOnly = true }),
		entry("secret", "6", func(c *rc) { c.IsSensitive = true }),
		entry("none", "7", func(c *rc) { c.Value = nil }),
	}}
	if got, want := ownConfigs(d), (map[string]string{"own": "1"}); !maps.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	d = described{version: 0, configs: []rc{
		entry("own", "1", func(c *rc) { c.Source = -1 }),
		entry("default", "2", func(c *rc) { c.Source = -1; c.IsDefault = true }),
	}}
	if got, want := ownConfigs(d), (map[string]string{"own": "1"}); !maps.Equal(got, want) {
		t.Errorf("version 0: got %v, want %v", got, want)
	}
}

func TestChunks(t *testing.T) {
	sizes := func(n, size int) []int { return slices.Repeat([]int{size}, n) }
	for _, c := range []struct {
		list []int
		want []int // lengths
	}{
		{nil, nil},
		{sizes(1, 1), []int{1}},
		{sizes(applyTopics, 1), []int{applyTopics}},
		{sizes(2*applyTopics+1, 1), []int{applyTopics, applyTopics, 1}},
		{sizes(4, applyRecords/2), []int{2, 2}},
		{[]int{1, applyRecords + 1, 1, 1}, []int{1, 1, 2}}, // too large for any: alone
	} {
		var got []int
		var all []int
		for chunk := range chunks(c.list, func(n int) int { return n }) {
			got = append(got, len(chunk))
			all = append(all, chunk...)
		}
		if !slices.Equal(got, c.want) || !slices.Equal(all, c.list) {
			t.Errorf("%s: got %v, want %v", fmt.Sprint(c.list)[:min(20, len(fmt.Sprint(c.list)))], got, c.want)
		}
	}
}
