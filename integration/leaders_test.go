package integration

import (
	"fmt"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"

	"mirror/integration/contract"
	"mirror/integration/kafkatest"
)

// TestLeaders has one cluster of three brokers be source and target at once, so
// that whichever dies led partitions on both sides.
func TestLeaders(t *testing.T) {
	c := kafkatest.Start(t, kafkatest.Network(t), kafkatest.Options{Name: "three", Nodes: 3, Config: map[string]string{
		"default.replication.factor": "3", "min.insync.replicas": "2", "auto.leader.rebalance.enable": "false"}})
	// The mirror refuses what it can see to be one cluster.
	var others []string
	for _, a := range c.Bootstrap() {
		others = append(others, strings.Replace(a, "127.0.0.1", "localhost", 1))
	}
	both := contract.Pair{Source: contract.NewCluster(t, c.Bootstrap(), ""), Target: contract.NewCluster(t, others, ""), Real: true}
	contract.Play(t, func(testing.TB) contract.Pair { return both },
		[]contract.Scenario{
			{Name: "closest-replica", Real: true, Alone: true, Run: func(e *contract.Env) { closestReplicaIsRead(e, c) }},
			{Name: "leaders", Real: true, Alone: true, Run: func(e *contract.Env) { leadersChangeUnderLoad(e, c) }},
		})
}

// A mirror in the rack of a follower fetches from that one, and from another when
// it dies.
func closestReplicaIsRead(e *contract.Env, c *kafkatest.Cluster) {
	topic := e.Topic("t")
	e.Create(e.Source, topic, 1)
	leader := c.Nodes[e.Describe(e.Source, topic).Partitions[0].Leader-1]
	near := c.Nodes[leader.ID%3] // every broker has a replica
	source := *e.Source
	source.Table = fmt.Sprintf("rack = \"rack-%d\"", near.ID)
	m := e.Start(contract.Flow{Source: &source})
	e.Put(e.Source, topic, contract.Values(0, "first")...)
	m.CaughtUp(topic)
	fromLeader, fromNear := leader.Proxy.Received(), near.Proxy.Received()
	const size = 5_000_000
	e.Put(e.Source, topic, randomRecords(1, 50, size/50)...)
	m.CaughtUp(topic)
	fromLeader, fromNear = leader.Proxy.Received()-fromLeader, near.Proxy.Received()-fromNear
	if fromNear < size || fromLeader > size/2 {
		e.Errorf("of %d bytes %d came from the closest replica and %d from the leader", size, fromNear, fromLeader)
	}
	near.Kill(e)
	e.Put(e.Source, topic, contract.Numbered(0, "after", 100)...)
	m.CaughtUp(topic)
	near.Restart(e)
	c.WaitReady(e, 3)
	m.WantSame(topic)
}

func leadersChangeUnderLoad(e *contract.Env, c *kafkatest.Cluster) {
	topic := e.Topic("t")
	e.Create(e.Source, topic, 3)
	load := e.Load(e.Source, topic, 3)
	m := e.Start()
	m.Progress(topic, 2000)
	leader := func() *kafkatest.Node {
		return c.Nodes[e.Describe(e.Target, m.TargetName(topic)).Partitions[0].Leader-1]
	}
	for range 2 {
		dead := leader()
		dead.Kill(e)
		e.Eventually("another leader", func() string {
			if leader() == dead {
				return "the dead one still leads"
			}
			return ""
		})
		m.Progress(topic, 2000)
		dead.Restart(e)
		c.WaitReady(e, 3)
		// Now leaders move while all brokers live.
		m.Wait("all replicas in sync", func() string {
			for _, t := range []string{topic, m.TargetName(topic)} {
				for _, p := range e.Describe(e.Source, t).Partitions {
					if len(p.ISR) != 3 {
						return "not yet"
					}
				}
			}
			return ""
		})
		admin := kadm.NewClient(c.Client(e))
		if _, err := admin.ElectLeaders(e.Context(), kadm.ElectPreferredReplica, nil); err != nil {
			e.Fatal(err)
		}
		m.Progress(topic, 2000)
	}
	load.Stop()
	m.CaughtUp(topic)
	m.WantSame(topic)
}
