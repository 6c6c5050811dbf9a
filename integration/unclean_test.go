package integration

import (
	"fmt"
	"slices"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kfake"

	"mirror/integration/contract"
	"mirror/integration/kafkatest"
	"mirror/sidecar/status"
)

// TestUnclean has a source that loses records it had acknowledged and handed out,
// to a replica that never had them: its log is truncated, and grows on past where
// it was.
func TestUnclean(t *testing.T) {
	c := kafkatest.Start(t, kafkatest.Network(t), kafkatest.Options{Name: "unclean", Nodes: 3, Config: map[string]string{
		"default.replication.factor": "2", "min.insync.replicas": "1", "unclean.leader.election.enable": "true",
		"auto.leader.rebalance.enable": "false", "replica.lag.time.max.ms": "2000"}})
	target, err := kfake.NewCluster(kfake.NumBrokers(1))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(target.Close)
	pair := contract.Pair{Source: contract.NewCluster(t, c.Bootstrap(), ""), Target: contract.NewCluster(t, target.ListenAddrs(), ""), Real: true}
	contract.Play(t, func(testing.TB) contract.Pair { return pair }, []contract.Scenario{
		{Name: "truncated-live", Real: true, Alone: true, Run: func(e *contract.Env) { sourceIsTruncated(e, c, false) }},
		{Name: "truncated-down", Real: true, Alone: true, Run: func(e *contract.Env) { sourceIsTruncated(e, c, true) }},
	})
}

func sourceIsTruncated(e *contract.Env, c *kafkatest.Cluster, down bool) {
	topic := e.Topic("t")
	e.Create(e.Source, topic, 1)
	partition := func() kadm.PartitionDetail { return e.Describe(e.Source, topic).Partitions[0] }
	p := partition()
	leader := c.Nodes[p.Leader-1]
	follower := c.Nodes[p.Replicas[slices.IndexFunc(p.Replicas, func(id int32) bool { return id != p.Leader })]-1]
	restart := contract.Flow{Keys: `on_recreated = "restart"`}
	m := e.Start(restart)
	e.Put(e.Source, topic, contract.Numbered(0, "both", 10)...)
	m.CaughtUp(topic)

	follower.Kill(e)
	e.Eventually("the leader to be alone in sync", func() string {
		if isr := partition().ISR; len(isr) != 1 {
			return fmt.Sprint(isr)
		}
		return ""
	})
	e.PutWith(e.Source.Client(e), topic, contract.Numbered(0, "lost", 10)...)
	m.CaughtUp(topic)
	if down {
		m.Stop()
	}
	leader.Kill(e)
	follower.Restart(e)
	e.Eventually("a leader without the records", func() string {
		_, _ = kadm.NewClient(e.Source.Client(e)).ElectLeaders(e.Context(), kadm.ElectLiveReplica, kadm.TopicsSet{topic: {0: {}}})
		if now := partition().Leader; now != int32(follower.ID) {
			return fmt.Sprintf("%d leads, not %d", now, follower.ID)
		}
		return ""
	})
	e.PutWith(e.Source.Client(e), topic, contract.Numbered(0, "new", 30)...) // further than it was
	leader.Restart(e)
	c.WaitReady(e, 3)

	values := func(rs ...int) (want []string) {
		for i, prefix := range []string{"both", "lost", "new"} {
			for n := range rs[i] {
				want = append(want, fmt.Sprintf("%s-%d", prefix, n))
			}
		}
		return want
	}
	// A high watermark follows the end of the log, once the others have caught up.
	e.Eventually("the end of the source", func() string {
		if got := e.Ends(e.Source, topic)[0]; got != 40 {
			return fmt.Sprintf("the source ends at %d, want 40: it lost nothing, or more", got)
		}
		return ""
	})
	if down {
		m = e.Start()
		m.Wait("the truncation to be told", func() string {
			if p, _ := m.Partition(topic, 0); p.State != status.Stalled || p.StalledAt != 10 || p.Position != 19 {
				return fmt.Sprintf("it is %s at %d, position %d: %s", p.State, p.StalledAt, p.Position, p.Reason)
			}
			return ""
		})
		m.Stop()
		e.WantValues(e.Target, m.TargetName(topic), values(10, 10, 0))
		m = e.Start(restart)
	}
	m.Reached(topic, 0, 39)
	m.Counted(status.ErrorRecreated, 1)
	e.WantValues(e.Target, m.TargetName(topic), values(10, 10, 30))
	m.Stop()
	m = e.Start() // it knows the log as it is now
	e.PutWith(e.Source.Client(e), topic, contract.Values(0, "last")...)
	m.CaughtUp(topic)
	e.WantValues(e.Target, m.TargetName(topic), append(values(10, 10, 30), "last"))
}
