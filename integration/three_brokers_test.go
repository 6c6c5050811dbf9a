package integration

import (
	"fmt"
	"time"

	"mirror/integration/contract"
	"mirror/integration/kafkatest"
)

// partitions is how many a topic has here: each broker leads one.
const partitions = 3

// A mirror in the rack of a follower fetches from that one, and from another when
// it dies.
func (k *three) closestReplicaIsRead(e *contract.Env) {
	c, topic := k.source, e.Topic("t")
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
	e.InSync(e.Source)
	m.WantSame(topic)
}

// Each broker dies once, one of either side at a time, and comes back with its data,
// while groups commit.
func (k *three) everyBrokerIsKilled(e *contract.Env) {
	traffic := e.Traffic(partitions)
	flow := e.SyncGroups()
	p := e.Launch(flow)
	walkers := e.Walk(flow, walking, traffic.Topics...)
	p.ProgressAll(traffic.Topics, 200)
	for i := range 3 {
		for _, s := range k.sides(e) {
			s.kafka.Nodes[i].Kill(e)
		}
		for _, s := range k.sides(e) {
			s.kafka.WaitMoved(e, s.kafka.Nodes[i])
		}
		p.ProgressAll(traffic.Plain, 200)
		for _, s := range k.sides(e) {
			s.kafka.Nodes[i].Restart(e)
		}
		for _, s := range k.sides(e) {
			s.recovered(e)
		}
		p.ProgressAll(traffic.Topics, 200)
	}
	finishFollowed(e, p, traffic, walkers)
}

// A broker stands still and keeps its connections; others take over what it led,
// and what it has not answered may be stored or not.
func (k *three) brokerIsPaused(e *contract.Env) {
	k.brokerIsAway(e,
		func(_ side, n *kafkatest.Node) { n.Pause(e) },
		func(_ side, n *kafkatest.Node) { n.Unpause(e) })
}

// A broker runs on, alone: neither the other brokers nor clients reach it.
func (k *three) brokerIsIsolated(e *contract.Env) {
	k.brokerIsAway(e,
		func(s side, n *kafkatest.Node) { s.kafka.Isolate(e, n) },
		func(s side, n *kafkatest.Node) { s.kafka.Rejoin(e, n) })
}

func (k *three) brokerIsAway(e *contract.Env, leave, comeBack func(side, *kafkatest.Node)) {
	traffic := e.Traffic(partitions)
	p := e.Launch()
	p.ProgressAll(traffic.Topics, 200)
	for _, s := range k.sides(e) {
		node := s.leader(e, s.names(p, traffic.Topics)[0], 0)
		away := true
		leave(s, node)
		e.Cleanup(func() {
			if away {
				comeBack(s, node)
			}
		})
		began := time.Now()
		s.kafka.WaitMoved(e, node)
		e.Logf("%s: others lead what broker %d led after %v", s.name, node.ID, time.Since(began))
		p.ProgressEverywhere(traffic.Plain, 10)
		e.Logf("%s: all partitions go on after %v", s.name, time.Since(began))
		lasts(e, outage(brokerOutage)-time.Since(began))
		comeBack(s, node)
		away = false
		s.recovered(e)
		e.Logf("%s: the broker is back after %v", s.name, time.Since(began))
		p.ProgressAll(traffic.Topics, 200)
	}
	finish(e, p, traffic)
}

// Leaders move while all brokers live and groups commit, also to brokers that had
// nothing of the partition before.
func (k *three) leadersMove(e *contract.Env) {
	traffic := e.Traffic(partitions)
	flow := e.SyncGroups()
	p := e.Launch(flow)
	walkers := e.Walk(flow, walking, traffic.Topics...)
	p.ProgressAll(traffic.Topics, 200)
	for round := range int32(3) {
		var replicas [][]int32
		for n := range int32(partitions) {
			first := (n + round) % 3
			replicas = append(replicas, []int32{first + 1, (first+1)%3 + 1})
		}
		for _, s := range k.sides(e) {
			e.Assign(s.cluster, replicas, s.names(p, traffic.Topics)...)
			p.ProgressAll(traffic.Topics, 100)
		}
	}
	finishFollowed(e, p, traffic, walkers)
}
