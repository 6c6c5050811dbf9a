package contract

import (
	"fmt"
	"slices"

	"github.com/twmb/franz-go/pkg/kadm"
)

// Assign gives each partition of a topic the brokers that hold it, of which the
// first is made its leader, and waits until it is.
func (e *Env) Assign(c *Cluster, topic string, replicas [][]int32) {
	e.Helper()
	var req kadm.AlterPartitionAssignmentsReq
	set := kadm.TopicsSet{}
	for p, brokers := range replicas {
		req.Assign(topic, int32(p), brokers)
		set.Add(topic, int32(p))
	}
	rs, err := c.admin.AlterPartitionAssignments(e.ctx, req)
	if err == nil {
		err = rs.Error()
	}
	if err != nil {
		e.Fatalf("assign %s: %v", topic, err)
	}
	e.Eventually("the replicas of "+topic+" to have moved", func() string {
		for p, d := range e.Describe(c, topic).Partitions {
			if !slices.Equal(d.Replicas, replicas[p]) || len(d.ISR) < len(d.Replicas) {
				return fmt.Sprintf("partition %d: %v in sync of %v, want %v", p, d.ISR, d.Replicas, replicas[p])
			}
		}
		return ""
	})
	// A partition that its first broker leads already is an error to Kafka.
	if _, err := c.admin.ElectLeaders(e.ctx, kadm.ElectPreferredReplica, set); err != nil {
		e.Fatalf("elect leaders of %s: %v", topic, err)
	}
	e.Eventually("the leaders of "+topic+" to have moved", func() string {
		for p, d := range e.Describe(c, topic).Partitions {
			if d.Leader != replicas[p][0] {
				return fmt.Sprintf("partition %d is led by %d, want %d", p, d.Leader, replicas[p][0])
			}
		}
		return ""
	})
}
