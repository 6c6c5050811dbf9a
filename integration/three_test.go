package integration

import (
	"fmt"
	"os"
	"testing"
	"time"

	"mirror/integration/contract"
	"mirror/integration/kafkatest"
)

// three is a source and a target of three brokers each. Topics have three
// replicas, of which two have to have a record before it is acknowledged.
type three struct{ source, target *kafkatest.Cluster }

// TestThree plays what only clusters of several brokers can do, under load: a
// broker goes away and the others take over.
func TestThree(t *testing.T) {
	o := kafkatest.Options{Nodes: 3, Config: map[string]string{"default.replication.factor": "3", "min.insync.replicas": "2",
		"transaction.state.log.min.isr": "2", "auto.leader.rebalance.enable": "false"}}
	source, target := o, o
	source.Name, target.Name = "source", "target"
	cs := kafkatest.StartAll(t, nil, source, target)
	k := &three{cs[0], cs[1]}
	pair := contract.Pair{Source: contract.NewCluster(t, k.source.Bootstrap(), ""), Target: contract.NewCluster(t, k.target.Bootstrap(), ""), Real: true}
	contract.Play(t, func(testing.TB) contract.Pair { return pair }, []contract.Scenario{
		{Name: "closest-replica", Real: true, Alone: true, Run: k.closestReplicaIsRead},
		{Name: "brokers-killed", Real: true, Alone: true, Limit: 4 * time.Minute, Run: k.everyBrokerIsKilled},
		{Name: "broker-paused", Real: true, Alone: true, Limit: limit(brokerOutage, 2), Run: k.brokerIsPaused},
		{Name: "broker-isolated", Real: true, Alone: true, Limit: limit(brokerOutage, 2), Run: k.brokerIsIsolated},
		{Name: "killed-together", Real: true, Alone: true, Limit: 3 * time.Minute, Run: k.mirrorDiesWithLeader},
		{Name: "links", Real: true, Alone: true, Limit: 3 * time.Minute, Run: k.linksAreSlowAndCut},
		{Name: "target-away", Real: true, Alone: true, Limit: limit(targetOutage, 1), Run: k.targetIsAway},
		{Name: "kill", Real: true, Limit: time.Minute + time.Duration(contract.Kills(usualKills))*20*time.Second, Run: k.mirrorIsKilled},
		{Name: "leaders-moved", Real: true, Limit: 3 * time.Minute, Run: k.leadersMove},
		{Name: "successor", Real: true, Limit: 3 * time.Minute, Run: k.pausedMirrorMissesMove},
	})
}

// How long brokers are away. A long round sets MIRROR_TEST_OUTAGE, like "3m".
const (
	brokerOutage = 6 * time.Second
	targetOutage = 20 * time.Second
)

// usualKills is how often the mirror is killed, where MIRROR_TEST_KILLS says nothing.
const usualKills = 4

func outage(usual time.Duration) time.Duration {
	if d, err := time.ParseDuration(os.Getenv("MIRROR_TEST_OUTAGE")); err == nil {
		return d
	}
	return usual
}

// limit is how long a scenario with so many outages may take. What is missed in
// one takes a while to be copied.
func limit(usual time.Duration, times int) time.Duration {
	return 2*time.Minute + 3*time.Duration(times)*outage(usual)
}

// lasts waits until d has passed.
func lasts(e *contract.Env, d time.Duration) {
	e.Helper()
	end := time.Now().Add(d)
	e.Eventually("the end of an outage", func() string {
		if left := time.Until(end); left > 0 {
			return fmt.Sprintf("%v are left", left)
		}
		return ""
	})
}

// side is one of the clusters, as both packages know it.
type side struct {
	name    string
	cluster *contract.Cluster
	kafka   *kafkatest.Cluster
}

func (k *three) sides(e *contract.Env) []side {
	return []side{{"target", e.Target, k.target}, {"source", e.Source, k.source}}
}

// names are what topics of the source are called there.
func (s side) names(p *contract.Process, topics []string) (names []string) {
	for _, t := range topics {
		if s.name == "target" {
			t = p.TargetName(t)
		}
		names = append(names, t)
	}
	return names
}

// leader is the node that leads the partition.
func (s side) leader(e *contract.Env, topic string, partition int32) *kafkatest.Node {
	e.Helper()
	return s.kafka.Nodes[e.Describe(s.cluster, topic).Partitions[partition].Leader-1]
}

// recovered waits until all of the side's brokers are there with all replicas.
func (s side) recovered(e *contract.Env) {
	e.Helper()
	s.kafka.WaitReady(e, 3)
	e.InSync(s.cluster)
}

// finishFollowed is finish of traffic that groups walk through: none of them ever was, on
// the target, where it would lose something, and in the end all go on exactly.
func finishFollowed(e *contract.Env, p *contract.Process, traffic *contract.Traffic, walkers *contract.Walkers) {
	e.Helper()
	walkers.Stop()
	finish(e, p, traffic)
	walkers.WantFollowed(p.Flow)
}

// walking is how many groups walk through the traffic.
const walking = 2

// finish ends the traffic and compares source and target record by record.
func finish(e *contract.Env, p *contract.Process, traffic *contract.Traffic) {
	e.Helper()
	traffic.Stop()
	p.CaughtUp(traffic.Topics...)
	p.WantSame(traffic.Topics...)
}
