package cli

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/kversion"
	"github.com/twmb/franz-go/pkg/sasl/plain"
)

// fake runs a cluster, and gives its config table.
func fake(t *testing.T, alias, more string, opts ...kfake.Opt) (*kfake.Cluster, string) {
	t.Helper()
	c, err := kfake.NewCluster(append([]kfake.Opt{kfake.NumBrokers(1)}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c, fmt.Sprintf("[clusters.%s]\nbootstrap = [%q]\n%s\n", alias, c.ListenAddrs()[0], more)
}

const flow = "[[flows]]\nfrom = 'primary'\nto = 'backup'\n"

func administrator(t *testing.T, c *kfake.Cluster, opts ...kgo.Opt) *kadm.Client {
	t.Helper()
	client, err := kgo.NewClient(append(opts, kgo.SeedBrokers(c.ListenAddrs()...))...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	return kadm.NewClient(client)
}

func TestConnectListsTopics(t *testing.T) {
	source, primary := fake(t, "primary", "", kfake.SeedTopics(3, "orders", "backup.echo", "x.replica"))
	for _, group := range []string{"orders-service", "connect-sink"} {
		var all kadm.Offsets
		all.Add(kadm.Offset{Topic: "orders", At: 1, LeaderEpoch: -1})
		if err := administrator(t, source).CommitAllOffsets(t.Context(), group, all); err != nil {
			t.Fatal(err)
		}
	}
	target, backup := fake(t, "backup", "", kfake.SeedTopics(1, "primary.orders"))
	compact := map[string]*string{"cleanup.policy": kadm.StringPtr("compact")}
	if _, err := administrator(t, target).CreateTopic(t.Context(), 25, -1, compact, "mm2-offsets.primary.internal"); err != nil {
		t.Fatal(err)
	}
	code, stdout, stderr := mirrorWith("validate", "--connect", "-c", file(t, primary+backup+flow))
	want := `cluster backup: ok, 1 broker
cluster primary: ok, 1 broker
flow primary->backup: ok
  topics     .* but not mm2.*\.internal, .*\.replica, __.*
  written    as primary.<topic> on backup
  copies     committed records, from earliest
  positions  in mm2-offsets.primary.internal on backup
  groups     .* but not console-consumer-.*, connect-.*, __.*, checkpoints in primary.checkpoints.internal on backup
  follows    1 group there that the mirror's user may DESCRIBE
  mirrors    orders as primary.orders, 3 partitions
`
	if code != 0 || stdout != want || stderr != "" {
		t.Errorf("exit code %d, stderr:\n%s\nstdout:\n%s\nwant:\n%s", code, stderr, stdout, want)
	}
}

// It changes nothing.
func TestConnectCreatesNothing(t *testing.T) {
	_, primary := fake(t, "primary", "", kfake.SeedTopics(1, "orders"))
	target, backup := fake(t, "backup", "")
	if code, stdout, stderr := mirrorWith("validate", "--connect", "-c", file(t, primary+backup+flow)); code != 0 {
		t.Errorf("exit code %d\n%s%s", code, stdout, stderr)
	}
	topics, err := administrator(t, target).ListTopics(t.Context())
	if err != nil || len(topics) > 0 {
		t.Errorf("topics on the target: %v, %v", topics.Names(), err)
	}
}

func TestConnectFindsProblems(t *testing.T) {
	expect := func(t *testing.T, text string, parts ...string) (stderr string) {
		t.Helper()
		code, stdout, stderr := mirrorWith("validate", "--connect", "--timeout", "10s", "-c", file(t, text))
		if code != 1 || !strings.Contains(stdout, "flow primary->backup: not ok") {
			t.Errorf("exit code %d, stdout:\n%s", code, stdout)
		}
		for _, part := range parts {
			if !strings.Contains(stderr, part) {
				t.Errorf("no %q in\n%s", part, stderr)
			}
		}
		return stderr
	}
	t.Run("nobody listens", func(t *testing.T) {
		_, backup := fake(t, "backup", "")
		expect(t, "[clusters.primary]\nbootstrap = ['127.0.0.1:1']\n"+backup+flow, "cluster primary: ", "nothing listens there")
	})
	t.Run("old brokers", func(t *testing.T) {
		_, primary := fake(t, "primary", "")
		_, backup := fake(t, "backup", "", kfake.MaxVersions(kversion.V0_10_2()))
		expect(t, primary+backup+flow, "cluster backup: broker 0 does not speak Produce from version 3 on: it needs Kafka 0.11 or later")
	})
	t.Run("wrong password", func(t *testing.T) {
		_, primary := fake(t, "primary", "sasl = { mechanism = 'plain', username = 'u', password = 'hunter2' }",
			kfake.EnableSASL(), kfake.Superuser("PLAIN", "u", "other"))
		_, backup := fake(t, "backup", "")
		stderr := expect(t, primary+backup+flow, "cluster primary (127.0.0.1:", "sasl")
		if strings.Contains(stderr, "hunter2") {
			t.Errorf("shows the password: %s", stderr)
		}
	})
	t.Run("positions are not compacted", func(t *testing.T) {
		_, primary := fake(t, "primary", "")
		_, backup := fake(t, "backup", "", kfake.SeedTopics(1, "mm2-offsets.primary.internal"))
		expect(t, primary+backup+flow, "flow primary->backup: ", "mm2-offsets.primary.internal", "cleanup.policy")
	})
	t.Run("checkpoints are not compacted", func(t *testing.T) {
		_, primary := fake(t, "primary", "")
		_, backup := fake(t, "backup", "", kfake.SeedTopics(1, "primary.checkpoints.internal"))
		expect(t, primary+backup+flow, "flow primary->backup: ", "primary.checkpoints.internal", "cleanup.policy")
	})
	t.Run("plugins' state is not compacted, or has too few partitions", func(t *testing.T) {
		const topic = "mm2-plugin-state.primary.offset-sync.internal"
		_, primary := fake(t, "primary", "")
		_, backup := fake(t, "backup", "", kfake.SeedTopics(1, topic))
		expect(t, primary+backup+flow, "topic "+topic+" has 1 partition, a plugin's state needs 4", "topic "+topic+": cleanup.policy is not compact but")
	})
	t.Run("groups may not be committed for", func(t *testing.T) {
		source, primary := fake(t, "primary", "", kfake.SeedTopics(1, "orders"))
		var all kadm.Offsets
		all.Add(kadm.Offset{Topic: "orders", At: 1, LeaderEpoch: -1})
		if err := administrator(t, source).CommitAllOffsets(t.Context(), "g", all); err != nil {
			t.Fatal(err)
		}
		may := func(on kmsg.ACLResourceType, name string, op kmsg.ACLOperation) kfake.ACL {
			return kfake.ACL{Resource: on, Name: name, Pattern: kmsg.ACLResourcePatternTypeLiteral, Operation: op, Allow: true}
		}
		_, backup := fake(t, "backup", "sasl = { mechanism = 'plain', username = 'mirror', password = 'p' }", kfake.EnableSASL(), kfake.EnableACLs(),
			kfake.User("PLAIN", "mirror", "p", may(kmsg.ACLResourceTypeTopic, "*", kmsg.ACLOperationAll), may(kmsg.ACLResourceTypeCluster, "kafka-cluster", kmsg.ACLOperationCreate)))
		expect(t, primary+backup+flow+"[flows.checkpoints]\nsync_groups = true\n"+translator(t), "group g: the mirror's user may not DESCRIBE: allow it with an ACL, and READ")
	})
	t.Run("too many replicas", func(t *testing.T) {
		_, primary := fake(t, "primary", "")
		_, backup := fake(t, "backup", "")
		expect(t, primary+backup+flow+"[flows.create]\nreplication_factor = 3\n",
			"topic mm2-offsets.primary.internal could not be created", "INVALID_REPLICATION_FACTOR")
	})
	t.Run("MirrorMaker runs", func(t *testing.T) {
		_, primary := fake(t, "primary", "")
		target, backup := fake(t, "backup", "", kfake.SeedTopics(1, "t"))
		joined := make(chan struct{})
		worker, err := kgo.NewClient(kgo.SeedBrokers(target.ListenAddrs()...), kgo.ConsumerGroup("primary-mm2"), kgo.ConsumeTopics("t"),
			kgo.OnPartitionsAssigned(func(_ context.Context, _ *kgo.Client, _ map[string][]int32) { close(joined) }))
		if err != nil {
			t.Fatal(err)
		}
		defer worker.Close()
		<-joined
		expect(t, primary+backup+flow, "MirrorMaker runs the same flow, with 1 worker in the group primary-mm2")
	})
}

func TestConnectChecksRights(t *testing.T) {
	acl := func(topic string, op kmsg.ACLOperation) kfake.ACL {
		return kfake.ACL{Resource: kmsg.ACLResourceTypeTopic, Name: topic, Pattern: kmsg.ACLResourcePatternTypeLiteral, Operation: op, Allow: true}
	}
	user := "sasl = { mechanism = 'plain', username = 'mirror', password = 'p' }"
	_, primary := fake(t, "primary", user, kfake.EnableSASL(), kfake.EnableACLs(), kfake.SeedTopics(1, "orders", "hidden"),
		kfake.User("PLAIN", "mirror", "p", acl("orders", kmsg.ACLOperationDescribe)))
	target, backup := fake(t, "backup", user, kfake.EnableSASL(), kfake.EnableACLs(), kfake.SeedTopics(1, "primary.orders"),
		kfake.Superuser("PLAIN", "admin", "p"),
		kfake.User("PLAIN", "mirror", "p", acl("primary.orders", kmsg.ACLOperationDescribe)))
	root := administrator(t, target, kgo.SASL(plain.Auth{User: "admin", Pass: "p"}.AsMechanism()))
	code, stdout, stderr := mirrorWith("validate", "--connect", "-c", file(t, primary+backup+flow))
	for _, part := range []string{
		"topic orders: the mirror's user may not READ",
		"topic orders: the mirror's user may not DESCRIBE_CONFIGS",
		"topic primary.orders: the mirror's user may not WRITE",
		"topic primary.orders: the mirror's user may not READ", // to resume
		"mm2-offsets.primary.internal",
	} {
		if !strings.Contains(stderr, part) {
			t.Errorf("no %q in\n%s", part, stderr)
		}
	}
	if code != 1 || strings.Contains(stdout+stderr, "hidden") {
		t.Errorf("exit code %d\n%s%s", code, stdout, stderr)
	}
	if topics, err := root.ListTopics(t.Context()); err != nil || len(topics) != 1 {
		t.Errorf("topics on the target: %v, %v", topics.Names(), err)
	}
}
