package cli

import (
	"context"
	"fmt"
	"math"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"mirror/sidecar/cluster"
)

// checkRights asks a cluster what the mirror may do with topics (KIP-430), and
// reports which of the operations it may not.
func (k *flowCheck) checkRights(ctx context.Context, c *cluster.Cluster, topics []string, operations ...kmsg.ACLOperation) {
	if len(topics) == 0 {
		return
	}
	req := kmsg.NewPtrMetadataRequest()
	req.IncludeTopicAuthorizedOperations = true
	for _, name := range topics {
		t := kmsg.NewMetadataRequestTopic()
		t.Topic = kmsg.StringPtr(name)
		req.Topics = append(req.Topics, t)
	}
	resp, err := req.RequestWith(ctx, c.Client())
	if err != nil {
		k.problem(c, fmt.Errorf("ask for rights on topics: %w", err))
		return
	}
	for _, t := range resp.Topics {
		if err := kerr.ErrorForCode(t.ErrorCode); err != nil || t.Topic == nil {
			continue // reported where topics are listed
		}
		if t.AuthorizedOperations == math.MinInt32 {
			continue // brokers before Kafka 2.3 do not say
		}
		for _, op := range operations {
			if t.AuthorizedOperations&(1<<op) == 0 {
				k.problem(c, fmt.Errorf("topic %s: the mirror's user may not %s: allow it with an ACL", *t.Topic, op))
			}
		}
	}
}
