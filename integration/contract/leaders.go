package contract

import (
	"fmt"
	"slices"

	"github.com/twmb/franz-go/pkg/kadm"
)

// Assign gives each partition of the topics the brokers that hold it, of which the
// first is made its leader, and waits until it is.
func (e *Env) Assign(c *Cluster, replicas [][]int32, topics ...string) {
	e.Helper()
	var req kadm.AlterPartitionAssignmentsReq
	set := kadm.TopicsSet{}
	for _, topic := range topics {
		for p, brokers := range replicas {
			req.Assign(topic, int32(p), brokers)
			set.Add(topic, int32(p))
		}
	}
	rs, err := c.admin.AlterPartitionAssignments(e.ctx, req)
	if err == nil {
		err = rs.Error()
	}
	if err != nil {
		e.Fatalf("assign %v: %v", topics, err)
	}
	each := func(what string, missing func(p kadm.PartitionDetail, want []int32) string) {
		e.Eventually(what, func() string {
			m, err := c.admin.Metadata(e.ctx, topics...)
			if err != nil {
				return err.Error()
			}
			for _, t := range topics {
				for p, want := range replicas {
					if s := missing(m.Topics[t].Partitions[int32(p)], want); s != "" {
						return fmt.Sprintf("%s/%d %s, want %v", t, p, s, want)
					}
				}
			}
			return ""
		})
	}
	each("replicas to have moved", func(p kadm.PartitionDetail, want []int32) string {
		if !slices.Equal(p.Replicas, want) || len(p.ISR) < len(want) {
			return fmt.Sprintf("has %v in sync of %v", p.ISR, p.Replicas)
		}
		return ""
	})
	// Of one that its first broker leads already Kafka says so, as an error.
	if _, err := c.admin.ElectLeaders(e.ctx, kadm.ElectPreferredReplica, set); err != nil {
		e.Fatalf("elect leaders of %v: %v", topics, err)
	}
	each("leaders to have moved", func(p kadm.PartitionDetail, want []int32) string {
		if p.Leader != want[0] {
			return fmt.Sprintf("is led by %d", p.Leader)
		}
		return ""
	})
}
