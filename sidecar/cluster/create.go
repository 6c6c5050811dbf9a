package cluster

import (
	"context"
	"errors"
	"fmt"
	"maps"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"

	"mirror/sidecar/config"
)

// CreateTopic makes a topic; -1 partitions are the cluster's default. The fixed
// configs win over those of c, and where the cluster refuses the latter the topic
// is made without them. The error wraps kerr.TopicAlreadyExists where somebody was
// faster.
func (c *Cluster) CreateTopic(ctx context.Context, name string, partitions int32, create config.Create, fixed map[string]string) error {
	factor := create.ReplicationFactor
	if factor == 0 {
		factor = -1
	}
	configs := maps.Clone(create.Configs)
	if configs == nil {
		configs = map[string]string{}
	}
	maps.Copy(configs, fixed)
	admin := kadm.NewClient(c.client)
	resp, err := admin.CreateTopic(ctx, partitions, factor, pointers(configs), name)
	if errors.Is(err, kerr.InvalidConfig) && len(configs) > len(fixed) {
		resp, err = admin.CreateTopic(ctx, partitions, factor, pointers(fixed), name)
	}
	switch {
	case err == nil:
		return nil
	case errors.Is(err, kerr.TopicAuthorizationFailed), errors.Is(err, kerr.ClusterAuthorizationFailed):
		return fmt.Errorf("%w: allow Create on it, or make it by hand", err)
	case resp.ErrMessage != "":
		return fmt.Errorf("%w (%s)", err, resp.ErrMessage)
	}
	return c.Explain(err)
}

func pointers(configs map[string]string) map[string]*string {
	out := make(map[string]*string, len(configs))
	for k, v := range configs {
		out[k] = kadm.StringPtr(v)
	}
	return out
}
