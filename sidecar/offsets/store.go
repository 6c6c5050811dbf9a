package offsets

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"mirror/sidecar/cluster"
	"mirror/sidecar/config"
)

// TopicOptions say where offset syncs or checkpoints are kept.
type TopicOptions struct {
	Cluster *cluster.Cluster
	Name    string        // see [SyncsTopic] and [config.Flow.CheckpointsTopic]
	Create  config.Create // for the topic, when it is missing
	Log     *slog.Logger
}

// store is a compacted topic, of which MirrorMaker writes and reads partition 0
// alone. It is connected to with the first write or read. Its methods may be called
// by several goroutines.
type store struct {
	o      TopicOptions
	what   string // it has, for messages: "offset syncs"
	writer *cluster.Writer

	mu      sync.Mutex
	problem error // with its cleanup policy
}

// newStore does no I/O.
func newStore(o TopicOptions, what string) *store {
	w := cluster.NewWriter(o.Cluster, kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.ProducerBatchCompression(kgo.NoCompression())) // as MirrorMaker writes them
	return &store{o: o, what: what, writer: w}
}

// write writes records and returns nil once all in-sync replicas have every one of
// them. What can be retried is retried until ctx ends. After an error some of them
// may be there; writing them again is safe. The topic is made when it is missing:
// one partition, compacted.
func (s *store) write(ctx context.Context, records []*kgo.Record) error {
	err := s.writer.Write(ctx, records, s.prepare)
	if errors.Is(err, kerr.TopicAuthorizationFailed) {
		err = fmt.Errorf("%w: allow Write on it", err)
	}
	if err != nil {
		return fmt.Errorf("write %d %s to topic %q on cluster %q: %w", len(records), s.what, s.o.Name, s.o.Cluster.Alias(), err)
	}
	return nil
}

// prepare makes the topic when it is missing. One that exists is taken as it is; a
// cleanup policy that loses records is said.
func (s *store) prepare(ctx context.Context, _ string) error {
	found, err := s.o.Cluster.Topics(ctx, []string{s.o.Name})
	if err != nil {
		return err
	}
	switch topic, ok := found[s.o.Name]; {
	case topic.Err != nil:
		return s.o.Cluster.Explain(topic.Err)
	case ok:
		s.checkPolicy(ctx)
		return nil
	}
	_, err = s.o.Cluster.MakeTopic(ctx, s.o.Name, s.what, 1, s.o.Create, map[string]string{"cleanup.policy": "compact"}, s.o.Log)
	return err
}

// checkPolicy says, once, of any cleanup policy but compact (KAFKA-9216). Who may not
// look may write all the same.
func (s *store) checkPolicy(ctx context.Context) {
	policy, err := s.o.Cluster.ForgetfulPolicy(ctx, s.o.Name)
	if err != nil {
		return
	}
	var problem error
	if policy != "" {
		problem = fmt.Errorf("topic %q on cluster %q is not compacted (cleanup.policy is %q), so %s are lost in time: alter it to compact, with "+
			"kafka-configs.sh --bootstrap-server HOST:PORT --alter --entity-type topics --entity-name %s --add-config cleanup.policy=compact",
			s.o.Name, s.o.Cluster.Alias(), policy, s.what, s.o.Name)
	}
	s.mu.Lock()
	said := s.problem != nil
	s.problem = problem
	s.mu.Unlock()
	if problem != nil && !said {
		s.o.Log.Error("the topic of "+s.what+" forgets", "topic", s.o.Name, "cluster", s.o.Cluster.Alias(), "err", problem)
	}
}

// read has each see all records that the topic has now, in order; none where it
// does not exist.
func (s *store) read(ctx context.Context, each func(*kgo.Record)) error {
	found, err := s.o.Cluster.Topics(ctx, []string{s.o.Name})
	if err == nil {
		topic, ok := found[s.o.Name]
		if !ok {
			return nil
		}
		err = topic.Err
	}
	if err == nil {
		_, err = s.o.Cluster.Read(ctx, s.o.Name, nil, func(r *kgo.Record) {
			if r.Partition == 0 {
				each(r)
			}
		})
	}
	if err != nil {
		return fmt.Errorf("read %s from topic %q on cluster %q: %w", s.what, s.o.Name, s.o.Cluster.Alias(), s.o.Cluster.Explain(err))
	}
	return nil
}

// Problem is what is wrong with the topic's cleanup policy, as it was when it was
// last connected to for writing; nil: nothing that is known.
func (s *store) Problem() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.problem
}

// Close ends the connection.
func (s *store) Close() { s.writer.Close() }
