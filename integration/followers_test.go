package integration

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"mirror/integration/contract"
	"mirror/integration/kafkatest"
)

// followers is a target of three brokers that miss neither a follower nor a broker
// for minutes, so that records wait for one that stands still.
type followers struct{ *kafkatest.Cluster }

// TestFollowers has a target whose follower stands still while another topic of
// the same leader does not need it.
func TestFollowers(t *testing.T) {
	config := map[string]string{"replica.lag.time.max.ms": "600000", "broker.session.timeout.ms": "600000", "auto.leader.rebalance.enable": "false"}
	maps.Copy(config, forgetful)
	k := followers{kafkatest.Start(t, kafkatest.Network(t), kafkatest.Options{Name: "followers", Nodes: 3, Config: config})}
	source, err := kfake.NewCluster(kfake.NumBrokers(1))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(source.Close)
	pair := contract.Pair{
		Source: contract.NewCluster(t, source.ListenAddrs(), ""),
		Target: contract.NewCluster(t, k.Bootstrap(), ""),
	}
	contract.Play(t, func(testing.TB) contract.Pair { return pair }, []contract.Scenario{
		{Name: "slow", Alone: true, Limit: 3 * time.Minute, Run: func(e *contract.Env) { k.oneTopicWaits(e, 0) }},
		{Name: "moved", Alone: true, Run: k.refusedByANewLeader},
		{Name: "slow-old", Alone: true, Limit: 3 * time.Minute, Run: func(e *contract.Env) { k.oneTopicWaits(e, month) }},
	})
}

// place makes a topic of one partition with these replicas, the leader first.
func (k followers) place(e *contract.Env, topic string, replicas ...int32) {
	e.Helper()
	req := kmsg.NewPtrCreateTopicsRequest()
	t := kmsg.NewCreateTopicsRequestTopic()
	t.Topic, t.NumPartitions, t.ReplicationFactor = topic, -1, -1
	a := kmsg.NewCreateTopicsRequestTopicReplicaAssignment()
	a.Partition, a.Replicas = 0, replicas
	t.ReplicaAssignment = append(t.ReplicaAssignment, a)
	c := kmsg.NewCreateTopicsRequestTopicConfig()
	forever := "-1"
	c.Name, c.Value = "retention.ms", &forever
	t.Configs = append(t.Configs, c)
	req.Topics = append(req.Topics, t)
	resp, err := req.RequestWith(e.Context(), k.Client(e))
	if err != nil || resp.Topics[0].ErrorCode != 0 {
		e.Fatalf("create %s: %v, %+v", topic, err, resp)
	}
}

// The topic whose follower stands still waits, on a connection of its own; the
// other one goes on. Nothing of either is lost or there twice, and when the
// follower is back the connection is given up.
func (k followers) oneTopicWaits(e *contract.Env, age time.Duration) {
	slow, free := e.Topic("waiting"), e.Topic("free")
	leader, follower := k.Nodes[0], k.Nodes[1]
	for topic, replicas := range map[string][]int32{slow: {int32(leader.ID), int32(follower.ID)}, free: {int32(leader.ID)}} {
		e.Create(e.Source, topic, 1, "retention.ms", "-1")
		k.place(e, "src."+topic, replicas...)
	}
	loads := []*contract.Load{e.AgedLoad(e.Source, slow, 1, age), e.AgedLoad(e.Source, free, 1, age)}
	m := e.Start()
	both := []string{slow, free}
	for _, topic := range both {
		m.Progress(topic, 1000)
	}
	isolated := func() []string {
		var topics []string
		for _, p := range m.Status().Partitions {
			if p.Isolated {
				topics = append(topics, p.Topic)
			}
		}
		return topics
	}
	follower.Pause(e)
	paused := true
	e.Cleanup(func() {
		if paused {
			follower.Unpause(e)
		}
	})
	m.Wait("the waiting topic to be isolated", func() string {
		if got := isolated(); !slices.Equal(got, []string{slow}) {
			return fmt.Sprintf("%v are", got)
		}
		return ""
	})
	if age > 0 { // what waits for the follower is seen, though it cannot be read
		m.Wait("records above the high watermark to be waited for", func() string {
			p, _ := m.Partition(slow, 0)
			if !strings.Contains(p.Reason, "above its high watermark") {
				return fmt.Sprintf("it is %s: %s", p.State, p.Reason)
			}
			return ""
		})
	}
	before, _ := m.Partition(slow, 0)
	m.Progress(free, 3000)
	if now, _ := m.Partition(slow, 0); now.Position != before.Position {
		e.Errorf("the waiting topic went from %d to %d without its follower", before.Position, now.Position)
	}
	follower.Unpause(e)
	paused = false
	m.Progress(slow, 1000)
	m.Wait("the isolation to end", func() string {
		if got := isolated(); len(got) > 0 {
			return fmt.Sprintf("%v are isolated", got)
		}
		return ""
	})
	for _, l := range loads {
		l.Stop()
	}
	m.CaughtUp(both...)
	m.WantSame(both...)
}

// A leader that is new to a producer takes whatever it gets, for it has forgotten
// it. So it gets one batch alone: when that is refused nothing else is stored in its
// place.
func (k followers) refusedByANewLeader(e *contract.Env) {
	topic := e.Topic("t")
	e.Create(e.Source, topic, 1, "retention.ms", "-1", "max.message.bytes", "4000000")
	k.place(e, "src."+topic, 1, 3)
	for i := 0; i < len(contract.Smallest); i += 2 {
		e.SetConfig(e.Target, "src."+topic, contract.Smallest[i], contract.Smallest[i+1])
	}
	client := e.Source.Client(e, kgo.ProducerBatchCompression(kgo.Lz4Compression()), kgo.ProducerBatchMaxBytes(4_000_000), kgo.ProducerLinger(0))
	old := func(rs []*kgo.Record) {
		for _, r := range rs {
			r.Timestamp = time.Now().Add(-month)
		}
		e.PutWith(client, topic, rs...)
	}
	m := e.Start()
	old(contract.Numbered(0, "first", 10))
	m.CaughtUp(topic)
	for round, leader := range []int32{3, 1} {
		e.Assign(e.Target, [][]int32{{leader, 4 - leader}}, "src."+topic)
		link := k.Nodes[leader-1].Proxy
		e.Cleanup(func() { link.SetDelay(0) })
		link.SetDelay(150 * time.Millisecond) // so that all the rest is there before the answer
		old(contract.Oversize())
		for i := range 8 {
			old(contract.Numbered(0, fmt.Sprintf("behind-%d-%d", round, i), 2))
		}
		m.CaughtUp(topic)
		link.SetDelay(0)
		m.WantSame(topic)
	}
}
