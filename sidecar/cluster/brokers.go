package cluster

import (
	"context"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// Brokers are the ids of the cluster's brokers, as the metadata had them that was last
// read, for whatever reason; nobody is asked unless there was none yet.
func (c *Cluster) Brokers(ctx context.Context) ([]int32, error) {
	if known := c.brokers.Load(); known != nil {
		return *known, nil
	}
	if _, err := c.metadata(ctx, []string{}); err != nil {
		return nil, err
	}
	return *c.brokers.Load(), nil
}

// learn keeps who the brokers are.
func (c *Cluster) learn(resp *kmsg.MetadataResponse) {
	ids := make([]int32, 0, len(resp.Brokers))
	for _, b := range resp.Brokers {
		ids = append(ids, b.NodeID)
	}
	if len(ids) > 0 || c.brokers.Load() == nil {
		c.brokers.Store(&ids)
	}
}
