package positions

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"maps"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"mirror/sidecar/cluster"
	"mirror/sidecar/config"
)

// partitions is the size of Connect's offsets topic unless it is told otherwise
// (offset.storage.partitions).
const partitions = 25

// ErrCleanupPolicy is what Open's error wraps when the topic exists and is not
// compacted: with any other policy positions would vanish in time, silently
// (KAFKA-9216).
var ErrCleanupPolicy = errors.New("cleanup.policy is not compact")

// Options say where the positions of a flow are.
type Options struct {
	Cluster   *cluster.Cluster // the target
	Source    string           // alias of the source, the "cluster" of the keys
	Positions config.Positions // topic and connector, both set
	Create    config.Create    // for the topic, when it is missing
	Log       *slog.Logger
}

// Store is the positions of one flow. Its methods may be called by several
// goroutines, Close once all others have returned.
type Store struct {
	cluster   *cluster.Cluster
	source    string
	topic     string
	connector string
	run       string          // what Claim writes, as only this store does
	loaded    map[int32]int64 // where the last Load ended, by partition
	log       *slog.Logger

	turn chan struct{} // holds one token: whoever took it may save, and use what follows

	producer   *kgo.Client // nil before the first Save and after one that failed
	acks       chan error  // one for each record of the last save
	unanswered int         // how many are still to come
}

// Open makes the positions topic when it is missing: 25 partitions, compacted,
// replicated and configured as the flow's create table says. One that exists is
// taken as it is, with any number of partitions, but has to be compacted (see
// [ErrCleanupPolicy]).
func Open(ctx context.Context, o Options) (*Store, error) {
	s := &Store{
		cluster:   o.Cluster,
		source:    o.Source,
		topic:     o.Positions.Topic,
		connector: o.Positions.Connector,
		run:       rand.Text(),
		log:       o.Log.With("topic", o.Positions.Topic, "cluster", o.Cluster.Alias()),
		turn:      make(chan struct{}, 1),
	}
	s.turn <- struct{}{}
	if err := s.prepare(ctx, o.Create); err != nil {
		return nil, fmt.Errorf("positions topic %q on cluster %q: %w", s.topic, o.Cluster.Alias(), err)
	}
	return s, nil
}

func (s *Store) prepare(ctx context.Context, c config.Create) error {
	found, err := s.cluster.Topics(ctx, []string{s.topic})
	if err != nil {
		return err
	}
	if t, ok := found[s.topic]; t.Err != nil {
		return s.cluster.Explain(t.Err)
	} else if !ok {
		created, err := s.create(ctx, c)
		if created || err != nil {
			return err
		}
	}
	return s.checkPolicy(ctx)
}

// create reports false when somebody else was faster.
func (s *Store) create(ctx context.Context, c config.Create) (created bool, err error) {
	factor := c.ReplicationFactor
	if factor == 0 {
		factor = -1
	}
	compact := map[string]*string{"cleanup.policy": kadm.StringPtr("compact")}
	configs := maps.Clone(compact)
	for name, value := range c.Configs {
		if name != "cleanup.policy" {
			configs[name] = kadm.StringPtr(value)
		}
	}
	admin := kadm.NewClient(s.cluster.Client())
	resp, err := admin.CreateTopic(ctx, partitions, factor, configs, s.topic)
	if errors.Is(err, kerr.InvalidConfig) && len(configs) > len(compact) {
		// Some that suit a mirrored topic do not go with compaction, such as
		// tiered storage.
		s.log.Warn("the positions topic cannot have the configs of [flows.create], trying without them",
			"err", fmt.Errorf("%w (%s)", err, resp.ErrMessage))
		resp, err = admin.CreateTopic(ctx, partitions, factor, compact, s.topic)
	}
	switch {
	case err == nil:
		s.log.Info("created the positions topic", "partitions", partitions)
		return true, nil
	case errors.Is(err, kerr.TopicAlreadyExists):
		return false, nil
	case errors.Is(err, kerr.TopicAuthorizationFailed), errors.Is(err, kerr.ClusterAuthorizationFailed):
		return false, fmt.Errorf("create it: %w: allow Create on it, or make it by hand, with cleanup.policy=compact", err)
	case errors.Is(err, kerr.InvalidReplicationFactor):
		return false, fmt.Errorf("create it: %w (%s): set replication_factor in [flows.create] to what the cluster has brokers for; "+
			"brokers before Kafka 2.4 have no default of their own", err, resp.ErrMessage)
	case resp.ErrMessage != "":
		return false, fmt.Errorf("create it: %w (%s): check [flows.create]", err, resp.ErrMessage)
	default:
		return false, fmt.Errorf("create it: %w", err)
	}
}

func (s *Store) checkPolicy(ctx context.Context) error {
	described, err := kadm.NewClient(s.cluster.Client()).DescribeTopicConfigs(ctx, s.topic)
	var resource kadm.ResourceConfig
	if err == nil {
		resource, err = described.On(s.topic, nil)
	}
	if err == nil {
		err = resource.Err
	}
	if errors.Is(err, kerr.TopicAuthorizationFailed) || errors.Is(err, kerr.ClusterAuthorizationFailed) {
		s.log.Warn("the cleanup policy of the positions topic cannot be checked: "+
			"allow DescribeConfigs on it, or make sure that it is compact", "err", err)
		return nil
	}
	if err != nil {
		return fmt.Errorf("describe its configs: %w", err)
	}
	for _, c := range resource.Configs {
		if policy := c.MaybeValue(); c.Key == "cleanup.policy" && policy != "compact" {
			return fmt.Errorf("%w but %q, so positions would be lost in time: alter it to compact, "+
				"or name another topic in [flows.positions]", ErrCleanupPolicy, policy)
		}
	}
	return nil
}

// Close ends the connections of the store.
func (s *Store) Close() {
	<-s.turn
	if s.producer != nil {
		s.producer.Close()
		s.producer = nil
	}
	s.turn <- struct{}{}
}
