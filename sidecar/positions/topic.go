package positions

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"mirror/sidecar/cluster"
	"mirror/sidecar/config"
)

// partitions is the size of Connect's offsets topic unless it is told otherwise
// (offset.storage.partitions).
const partitions = 25

// ErrCleanupPolicy is what Check's error wraps when the topic is not compacted: with
// any other policy positions vanish in time, silently (KAFKA-9216).
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
// goroutines, but where they say otherwise; Close once all others have returned.
type Store struct {
	cluster   *cluster.Cluster
	source    string
	topic     string
	connector string
	create    config.Create
	run       string // what Claim writes, as only this store does
	opened    time.Time
	log       *slog.Logger
	id        [16]byte // the topic's, zero where it is not known
	unchecked bool     // it has been said that the policy cannot be looked at

	mu      sync.Mutex
	loaded  map[int32]int64 // where the last Load ended, by partition
	rewatch func()          // has Watch begin again

	turn chan struct{} // holds one token: whoever took it may save, and use what follows

	producer   *kgo.Client // nil before the first Save and after one that failed
	acks       chan error  // one for each record of the last save
	unanswered int         // how many are still to come
}

// Open makes the positions topic when it is missing: 25 partitions, compacted,
// replicated and configured as the flow's create table says. One that exists is
// taken as it is, with any number of partitions; Check says whether it is in order.
func Open(ctx context.Context, o Options) (*Store, error) {
	s := &Store{
		cluster:   o.Cluster,
		source:    o.Source,
		topic:     o.Positions.Topic,
		connector: o.Positions.Connector,
		create:    o.Create,
		run:       rand.Text(),
		opened:    time.Now(),
		log:       o.Log.With("topic", o.Positions.Topic, "cluster", o.Cluster.Alias()),
		turn:      make(chan struct{}, 1),
	}
	s.turn <- struct{}{}
	if _, err := s.ensure(ctx); err != nil {
		return nil, s.explain(err)
	}
	return s, nil
}

func (s *Store) explain(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("positions topic %q on cluster %q: %w", s.topic, s.cluster.Alias(), err)
}

// Check looks after the topic. One that is gone it makes again. renewed says that
// it is another one than before, so that nothing that was saved is in it; also
// beside an error, which says what is wrong with it. It is for one goroutine.
func (s *Store) Check(ctx context.Context) (renewed bool, err error) {
	before := s.id
	made, err := s.ensure(ctx)
	if err != nil {
		return false, s.explain(err)
	}
	if renewed = made || before != [16]byte{} && s.id != [16]byte{} && s.id != before; renewed {
		s.renew(ctx)
	}
	return renewed, s.explain(s.checkPolicy(ctx))
}

// ensure finds the topic, or makes it.
func (s *Store) ensure(ctx context.Context) (made bool, err error) {
	found, err := s.cluster.Topics(ctx, []string{s.topic})
	if err != nil {
		return false, err
	}
	switch t, ok := found[s.topic]; {
	case t.Err != nil:
		return false, s.cluster.Explain(t.Err)
	case ok:
		s.id = t.ID
		return false, nil
	}
	// Who was faster, or a broker that did not know yet what it has, shows with
	// the next look.
	if made, err = s.make(ctx, s.create); made {
		s.id = [16]byte{}
	}
	return made, err
}

// renew forgets what is known of the topic that was: clients stay with its id.
func (s *Store) renew(ctx context.Context) {
	s.mu.Lock()
	s.loaded = map[int32]int64{}
	for n := range int32(partitions) {
		s.loaded[n] = 0
	}
	if s.rewatch != nil {
		s.rewatch()
	}
	s.mu.Unlock()
	select {
	case <-s.turn:
	case <-ctx.Done():
		return // whoever has the turn finds out by himself
	}
	if s.producer != nil && s.unanswered == 0 {
		s.producer.Close()
		s.producer = nil
	}
	s.turn <- struct{}{}
}

// make reports false when somebody else was faster.
func (s *Store) make(ctx context.Context, c config.Create) (made bool, err error) {
	without, err := s.cluster.CreateTopic(ctx, s.topic, partitions, c, map[string]string{"cleanup.policy": "compact"})
	if without != nil {
		s.log.Warn("the positions topic cannot have the configs of [flows.create], trying without them", "err", without)
	}
	if errors.Is(err, kerr.TopicAlreadyExists) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	s.log.Info("created the positions topic", "partitions", partitions)
	return true, nil
}

func (s *Store) checkPolicy(ctx context.Context) error {
	policy, err := s.cluster.ForgetfulPolicy(ctx, s.topic)
	if errors.Is(err, kerr.TopicAuthorizationFailed) || errors.Is(err, kerr.ClusterAuthorizationFailed) {
		if !s.unchecked {
			s.log.Warn("the cleanup policy of the positions topic cannot be checked: "+
				"allow DescribeConfigs on it, or make sure that it is compact", "err", err)
		}
		s.unchecked = true
		return nil
	}
	if err != nil {
		return fmt.Errorf("describe its configs: %w", err)
	}
	if policy != "" {
		return fmt.Errorf("%w but %q, so positions are lost in time: alter it to compact, with "+
			"kafka-configs.sh --bootstrap-server HOST:PORT --alter --entity-type topics --entity-name %s --add-config cleanup.policy=compact, "+
			"or name another topic in [flows.positions]", ErrCleanupPolicy, policy, s.topic)
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
