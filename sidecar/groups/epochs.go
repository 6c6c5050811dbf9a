package groups

import (
	"context"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// Epochs are the group epochs of KIP-848 groups, which rise with each member that
// comes or goes. Those that cannot be had are not there.
func (c *Client) Epochs(ctx context.Context, names []string) map[string]int32 {
	if len(names) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	req := kmsg.NewPtrConsumerGroupDescribeRequest()
	req.Groups = names
	epochs := map[string]int32{}
	for _, shard := range c.cluster.Client().RequestSharded(ctx, req) {
		if shard.Err != nil {
			continue
		}
		for _, g := range shard.Resp.(*kmsg.ConsumerGroupDescribeResponse).Groups {
			if kerr.ErrorForCode(g.ErrorCode) == nil {
				epochs[g.Group] = g.Epoch
			}
		}
	}
	return epochs
}
