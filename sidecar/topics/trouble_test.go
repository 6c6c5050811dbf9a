package topics

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"mirror/sidecar/config"
)

// watch notes the largest number of topics in the target's requests, by key.
// Its map is to be read when no request is on its way.
func (p *pair) watch(t *testing.T, largest map[int16]int) {
	t.Helper()
	note := func(r kmsg.Request, n int) bool {
		largest[r.Key()] = max(largest[r.Key()], n)
		return false
	}
	p.target.Fault(
		kfake.Fault{Keys: []kmsg.Key{kmsg.CreateTopics}, Observe: true, Count: -1, When: func(r kmsg.Request) bool {
			return note(r, len(r.(*kmsg.CreateTopicsRequest).Topics))
		}},
		kfake.Fault{Keys: []kmsg.Key{kmsg.DescribeConfigs}, Observe: true, Count: -1, When: func(r kmsg.Request) bool {
			return note(r, len(r.(*kmsg.DescribeConfigsRequest).Resources))
		}},
	)
}

// One topic's trouble is its own: it is explained, logged when it begins and
// when it ends, and other topics go on.
func TestTroubleOfOneTopic(t *testing.T) {
	for _, c := range []struct {
		name   string
		source bool // the fault is the source's
		small  bool // A.bad exists, with a partition too few
		fault  kfake.Fault
		says   []string
		usable int32
	}{
		{
			name:  "create denied",
			fault: kfake.Fault{Keys: []kmsg.Key{kmsg.CreateTopics}, Topic: "A.bad", Err: kerr.TopicAuthorizationFailed},
			says:  []string{`create topic "A.bad"`, `cluster "B"`, "allow Create"},
		}, {
			name:  "replication factor",
			fault: kfake.Fault{Keys: []kmsg.Key{kmsg.CreateTopics}, Topic: "A.bad", Err: kerr.InvalidReplicationFactor},
			says:  []string{`create topic "A.bad"`, "set replication_factor in [flows.create] to"},
		}, {
			name:  "policy",
			fault: kfake.Fault{Keys: []kmsg.Key{kmsg.CreateTopics}, Topic: "A.bad", Err: kerr.PolicyViolation},
			says:  []string{`create topic "A.bad"`, "policy", "[flows.create]"},
		}, {
			name:  "invalid name",
			fault: kfake.Fault{Keys: []kmsg.Key{kmsg.CreateTopics}, Topic: "A.bad", Err: kerr.InvalidTopicException},
			says:  []string{`create topic "A.bad"`, "exclude_topics"},
		}, {
			name:  "invalid name, when looked up",
			fault: kfake.Fault{Keys: []kmsg.Key{kmsg.Metadata}, Topic: "A.bad", Err: kerr.InvalidTopicException},
			says:  []string{"A.bad", `cluster "B"`, "exclude_topics"},
		}, {
			name:  "anything else",
			fault: kfake.Fault{Keys: []kmsg.Key{kmsg.CreateTopics}, Topic: "A.bad", Err: kerr.InvalidPartitions},
			says:  []string{`create topic "A.bad"`, "next round"},
		}, {
			name: "grow denied", small: true,
			fault:  kfake.Fault{Keys: []kmsg.Key{kmsg.CreatePartitions}, Topic: "A.bad", Err: kerr.TopicAuthorizationFailed},
			says:   []string{`grow topic "A.bad"`, "from 1 to 2", "allow Create and Alter"},
			usable: 1,
		}, {
			name: "not grown", small: true,
			fault:  kfake.Fault{Keys: []kmsg.Key{kmsg.CreatePartitions}, Topic: "A.bad", Err: kerr.InvalidPartitions},
			says:   []string{`topic "A.bad"`, "lacks 1 partitions", "next round"},
			usable: 1,
		}, {
			name: "source configs denied", source: true,
			fault: kfake.Fault{Keys: []kmsg.Key{kmsg.DescribeConfigs}, Resource: "bad", Err: kerr.TopicAuthorizationFailed},
			says:  []string{`topic "bad"`, `cluster "A"`, "allow DescribeConfigs"},
		}, {
			name:  "target topic hidden",
			fault: kfake.Fault{Keys: []kmsg.Key{kmsg.Metadata}, Topic: "A.bad", Err: kerr.TopicAuthorizationFailed},
			says:  []string{"A.bad", "cluster B", "DESCRIBE"},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := newPair(t)
			create(t, p.source, "bad", 2, nil)
			create(t, p.source, "good", 2, nil)
			if c.small {
				create(t, p.target, "A.bad", 1, nil)
			}
			c.fault.Count = -1
			faulty := p.target
			if c.source {
				faulty = p.source
			}
			fault := faulty.Fault(c.fault)
			m := p.manager()
			m.patience = 0
			for round := range 3 {
				got := sync(t, m)
				if good := got["good"]; good.Err != nil || good.Partitions != 2 {
					t.Fatalf("the other topic: %+v", good)
				}
				bad := got["bad"]
				if bad.Err == nil || bad.Partitions != c.usable {
					t.Fatalf("got %+v, want an error and %d partitions", bad, c.usable)
				}
				for _, part := range c.says {
					if !strings.Contains(bad.Err.Error(), part) {
						t.Errorf("%q does not say %q", bad.Err, part)
					}
				}
				if n, log := p.warnings(); n != max(0, 1-round) {
					t.Errorf("round %d: %d warnings\n%s", round, n, log)
				}
			}
			fault.Remove()
			if bad := sync(t, m)["bad"]; bad.Err != nil || bad.Partitions != 2 {
				t.Errorf("after the trouble: %+v", bad)
			}
			if n, log := p.warnings(); n > 0 || strings.Count(log, "mirrored again") != 1 {
				t.Errorf("after the trouble:\n%s", log)
			}
		})
	}
}

// answerCreate has the target answer requests for A.t with errors, given its
// configs; no error means its own answer.
func (p *pair) answerCreate(answer func(configs []string) *kerr.Error) (requests *[]string) {
	requests = new([]string)
	p.target.ControlKey(int16(kmsg.CreateTopics), func(r kmsg.Request) (kmsg.Response, error, bool) {
		p.target.KeepControl()
		req := r.(*kmsg.CreateTopicsRequest)
		var configs []string
		for _, c := range req.Topics[0].Configs {
			configs = append(configs, c.Name)
		}
		kind := "create "
		if req.ValidateOnly {
			kind = "validate "
		}
		*requests = append(*requests, kind+strings.Join(configs, " "))
		refusal := answer(configs)
		if refusal == nil {
			return nil, nil, false
		}
		resp := req.ResponseKind().(*kmsg.CreateTopicsResponse)
		rt := kmsg.NewCreateTopicsResponseTopic()
		rt.Topic, rt.ErrorCode, rt.ErrorMessage = req.Topics[0].Topic, refusal.Code, kmsg.StringPtr("because")
		resp.Topics = append(resp.Topics, rt)
		return resp, nil, true
	})
	return requests
}

func TestConfigsTheTargetRefuses(t *testing.T) {
	p := newPair(t)
	create(t, p.source, "t", 1, map[string]string{
		"cleanup.policy": "compact", "retention.ms": "5", "remote.storage.enable": "true", "max.message.bytes": "7000000",
	})
	p.create = config.Create{Configs: map[string]string{"compression.type": "zstd"}}
	requests := p.answerCreate(func(configs []string) *kerr.Error {
		if slices.Contains(configs, "remote.storage.enable") {
			return kerr.InvalidConfig
		}
		return nil
	})
	if topic := sync(t, p.manager())["t"]; topic.Err != nil || topic.MaxMessageBytes != 7000000 {
		t.Errorf("got %+v", topic)
	}
	want := []string{
		"create cleanup.policy compression.type max.message.bytes remote.storage.enable retention.ms",
		"validate cleanup.policy compression.type max.message.bytes",
		"validate cleanup.policy compression.type max.message.bytes remote.storage.enable",
		"validate cleanup.policy compression.type max.message.bytes retention.ms",
		"create cleanup.policy compression.type max.message.bytes retention.ms",
	}
	if !slices.Equal(*requests, want) {
		t.Errorf("requests\n%s, want\n%s", strings.Join(*requests, "\n"), strings.Join(want, "\n"))
	}
	for name, want := range map[string]string{
		"cleanup.policy": "compact", "compression.type": "zstd", "retention.ms": "5", "remote.storage.enable": "not set",
	} {
		if got := configOf(p.target, "A.t", name); got != want {
			t.Errorf("%s is %s, want %s", name, got, want)
		}
	}
	if n, log := p.warnings(); n != 1 || !strings.Contains(log, "configs=[remote.storage.enable]") || !strings.Contains(log, "because") {
		t.Errorf("log\n%s", log)
	}
}

func TestConfigsOfTheFlowRefused(t *testing.T) {
	p := newPair(t)
	create(t, p.source, "t", 1, map[string]string{"retention.ms": "5"})
	p.create = config.Create{Configs: map[string]string{"compression.type": "no such"}}
	p.answerCreate(func([]string) *kerr.Error { return kerr.InvalidConfig })
	topic := sync(t, p.manager())["t"]
	if !errors.Is(topic.Err, kerr.InvalidConfig) || !strings.Contains(topic.Err.Error(), "(because)") ||
		!strings.Contains(topic.Err.Error(), "check configs in [flows.create]") {
		t.Errorf("got %v", topic.Err)
	}
}

func TestTargetHasNoDefaultReplication(t *testing.T) {
	p := newPair(t)
	create(t, p.source, "t", 1, nil)
	p.target.ControlKey(int16(kmsg.CreateTopics), func(r kmsg.Request) (kmsg.Response, error, bool) {
		req := r.(*kmsg.CreateTopicsRequest)
		if req.Topics[0].ReplicationFactor != -1 {
			t.Errorf("replication factor %d, want -1", req.Topics[0].ReplicationFactor)
		}
		return nil, nil, false
	})
	if err := sync(t, p.manager())["t"].Err; err != nil {
		t.Error(err)
	}
	for version, want := range map[int16]string{3: "before Kafka 2.4", 4: "what the cluster has brokers for"} {
		if got := (answer{err: kerr.InvalidReplicationFactor, version: version}).advice(); !strings.Contains(got, want) {
			t.Errorf("version %d: %q does not say %q", version, got, want)
		}
	}
}

func TestSomebodyIsFaster(t *testing.T) {
	p := newPair(t)
	create(t, p.source, "t", 3, nil)
	create(t, p.target, "A.t", 2, nil)
	// Seen as missing, once, then as it is.
	p.target.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Metadata}, Topic: "A.t", Err: kerr.UnknownTopicOrPartition})
	m := p.manager()
	m.patience = 0
	if topic := sync(t, m)["t"]; topic.Partitions != 2 || topic.Err == nil || !strings.Contains(topic.Err.Error(), "lacks 1 partitions") {
		t.Errorf("got %+v, want the two partitions that there are", topic)
	}
	if topic := sync(t, m)["t"]; topic.Partitions != 3 || topic.Err != nil {
		t.Errorf("got %+v, want all three partitions in the next round", topic)
	}
}

func TestTargetConfigsDenied(t *testing.T) {
	p := newPair(t)
	create(t, p.source, "t", 1, nil)
	create(t, p.source, "u", 1, nil)
	fault := p.target.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.DescribeConfigs}, Err: kerr.TopicAuthorizationFailed, Count: -1})
	m := p.manager()
	for round := range 3 {
		if topic := sync(t, m)["t"]; topic.Err != nil || topic.Partitions != 1 || topic.MaxMessageBytes != 0 {
			t.Errorf("got %+v, want it usable with its limit unknown", topic)
		}
		if n, log := p.warnings(); n != max(0, 1-round) {
			t.Errorf("round %d: %d warnings\n%s", round, n, log)
		}
	}
	fault.Remove()
	if topic := sync(t, m)["t"]; topic.MaxMessageBytes != 1048588 {
		t.Errorf("got %+v, want the limit", topic)
	}
}

// A broker may not have heard of a topic that the controller has made.
func TestBrokerThatIsBehind(t *testing.T) {
	p := newPair(t)
	create(t, p.source, "t", 2, nil)
	p.target.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.DescribeConfigs}, Err: kerr.UnknownTopicOrPartition, Count: 2})
	hidden := p.target.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Metadata}, Topic: "A.t", Err: kerr.UnknownTopicOrPartition, Count: 3})
	m := p.manager()
	if topic := sync(t, m)["t"]; topic.Err != nil || topic.Partitions != 2 || topic.MaxMessageBytes != 1048588 {
		t.Errorf("got %+v", topic)
	}
	if hidden.Hits() != 3 {
		t.Errorf("looked %d times in vain, want 3", hidden.Hits())
	}
	p.wantQuiet(t)

	// One that stays behind does not hold the round up for ever.
	remove(t, p.target, "A.t")
	hidden = p.target.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Metadata}, Topic: "A.t", Err: kerr.UnknownTopicOrPartition, Count: -1})
	m.patience = 0
	if topic := sync(t, m)["t"]; topic.Partitions != 0 || topic.Err == nil || !strings.Contains(topic.Err.Error(), "does not show it yet") {
		t.Errorf("got %+v", topic)
	}
	hidden.Remove()
	gone := p.target.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.DescribeConfigs}, Err: kerr.UnknownTopicOrPartition, Count: -1})
	if topic := sync(t, m)["t"]; topic.Partitions != 0 || topic.Err == nil || !strings.Contains(topic.Err.Error(), "deleted a moment ago") {
		t.Errorf("got %+v", topic)
	}
	gone.Remove()
	if topic := sync(t, m)["t"]; topic.Partitions != 2 || topic.Err != nil {
		t.Errorf("got %+v", topic)
	}
}

func TestClusterAway(t *testing.T) {
	for _, away := range []string{"A", "B"} {
		p := newPair(t)
		create(t, p.source, "t", 1, nil)
		fake := map[string]*kfake.Cluster{"A": p.source, "B": p.target}[away]
		fake.ControlKey(int16(kmsg.Metadata), func(r kmsg.Request) (kmsg.Response, error, bool) {
			if req := r.(*kmsg.MetadataRequest); req.Topics != nil && len(req.Topics) == 0 {
				return nil, nil, false // the client's own, about brokers
			}
			resp := r.ResponseKind().(*kmsg.MetadataResponse)
			resp.ErrorCode = kerr.ClusterAuthorizationFailed.Code
			return resp, nil, true
		})
		_, err := p.manager().Sync(t.Context())
		if err == nil || !strings.Contains(err.Error(), "cluster "+away) {
			t.Errorf("%s away: got %v", away, err)
		}
	}
}
