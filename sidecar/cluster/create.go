package cluster

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"

	"mirror/sidecar/config"
)

// CreateTopic makes a topic of the mirror's own; -1 partitions are the cluster's
// default. The fixed configs win over those of create, and where the cluster refuses
// the latter, as some that suit a mirrored topic do not go with compaction, the
// topic is made without them; without says why. The error wraps
// kerr.TopicAlreadyExists where somebody was faster.
func (c *Cluster) CreateTopic(ctx context.Context, name string, partitions int32, create config.Create, fixed map[string]string) (without, err error) {
	factor := create.ReplicationFactor
	if factor == 0 {
		factor = -1
	}
	configs := map[string]string{}
	maps.Copy(configs, create.Configs)
	maps.Copy(configs, fixed)
	admin := kadm.NewClient(c.client)
	resp, err := admin.CreateTopic(ctx, partitions, factor, pointers(configs), name)
	if errors.Is(err, kerr.InvalidConfig) && len(configs) > len(fixed) {
		without = fmt.Errorf("%w (%s)", err, resp.ErrMessage)
		resp, err = admin.CreateTopic(ctx, partitions, factor, pointers(fixed), name)
	}
	switch {
	case err == nil, errors.Is(err, kerr.TopicAlreadyExists):
		return without, err
	case errors.Is(err, kerr.TopicAuthorizationFailed), errors.Is(err, kerr.ClusterAuthorizationFailed):
		return without, fmt.Errorf("create it: %w: allow Create on it, or make it by hand%s", err, with(fixed))
	case errors.Is(err, kerr.InvalidReplicationFactor):
		return without, fmt.Errorf("create it: %w (%s): set replication_factor in [flows.create] to what the cluster has brokers for; "+
			"brokers before Kafka 2.4 have no default of their own", err, resp.ErrMessage)
	case resp.ErrMessage != "":
		return without, fmt.Errorf("create it: %w (%s): check [flows.create]", err, resp.ErrMessage)
	}
	return without, fmt.Errorf("create it: %w", err)
}

// MakeTopic is CreateTopic for a topic that has something, "offset syncs", with what came of
// it in a log: made is false where somebody was faster.
func (c *Cluster) MakeTopic(ctx context.Context, name, something string, partitions int32, create config.Create, fixed map[string]string, log *slog.Logger) (made bool, err error) {
	without, err := c.CreateTopic(ctx, name, partitions, create, fixed)
	if without != nil {
		log.Warn("the topic of "+something+" cannot have the configs of [flows.create], trying without them", "topic", name, "err", without)
	}
	switch {
	case errors.Is(err, kerr.TopicAlreadyExists):
		return false, nil
	case err != nil:
		return false, err
	}
	log.Info("created the topic of "+something, "topic", name, "cluster", c.Alias())
	return true, nil
}

// with lists configs, as part of an advice.
func with(configs map[string]string) string {
	if len(configs) == 0 {
		return ""
	}
	var all []string
	for _, name := range slices.Sorted(maps.Keys(configs)) {
		all = append(all, name+"="+configs[name])
	}
	return ", with " + strings.Join(all, ", ")
}

func pointers(configs map[string]string) map[string]*string {
	out := make(map[string]*string, len(configs))
	for k, v := range configs {
		out[k] = kadm.StringPtr(v)
	}
	return out
}

// ForgetfulPolicy is the cleanup.policy of a topic by whose keys the mirror remembers,
// if that is any other than compact, which loses them in time (KAFKA-9216); "" else, and
// where the cluster does not tell.
func (c *Cluster) ForgetfulPolicy(ctx context.Context, topic string) (string, error) {
	described, err := kadm.NewClient(c.client).DescribeTopicConfigs(ctx, topic)
	var resource kadm.ResourceConfig
	if err == nil {
		resource, err = described.On(topic, nil)
	}
	if err == nil {
		err = resource.Err
	}
	if err != nil {
		return "", err
	}
	for _, k := range resource.Configs {
		if k.Key == "cleanup.policy" && k.MaybeValue() != "compact" {
			return k.MaybeValue(), nil
		}
	}
	return "", nil
}
