package positions

import (
	"context"
	"errors"
	"fmt"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

// Save writes positions and returns nil once all in-sync replicas have every
// one of them. What can be retried is retried until ctx ends. After an error
// some of them may be there; saving again, the same or later ones, is safe.
//
// One call saves at a time, others wait for it.
func (s *Store) Save(ctx context.Context, ps map[Key]Position) error {
	if len(ps) == 0 {
		return nil
	}
	err := s.save(ctx, ps)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, kerr.UnknownTopicOrPartition), errors.Is(err, kerr.UnknownTopicID):
		err = fmt.Errorf("%w: was it deleted? it is made again when mirror starts", err)
	case errors.Is(err, kerr.TopicAuthorizationFailed):
		err = fmt.Errorf("%w: allow Write on it", err)
	}
	return fmt.Errorf("save %d positions to topic %q on cluster %q: %w", len(ps), s.topic, s.cluster.Alias(), err)
}

func (s *Store) save(ctx context.Context, ps map[Key]Position) error {
	select {
	case <-s.turn:
		defer func() { s.turn <- struct{}{} }()
	case <-ctx.Done():
		return ctx.Err()
	}
	if s.producer == nil {
		p, err := s.cluster.NewClient(
			kgo.DefaultProduceTopic(s.topic),
			kgo.RequiredAcks(kgo.AllISRAcks()),
			// Java's default partitioner, so that MirrorMaker's records of a key
			// and ours are in one partition.
			kgo.RecordPartitioner(kgo.StickyKeyPartitioner(nil)),
			kgo.ProducerLinger(0),
			// A position that is written twice does no harm, so a save need not
			// wait for the fate of a request when its time is over.
			kgo.AllowIdempotentProduceCancellation(),
		)
		if err != nil {
			return err
		}
		s.producer = p
	}

	acks := make(chan error, len(ps)) // holds them all: nobody may be left to read
	for k, p := range ps {
		s.producer.Produce(ctx, &kgo.Record{
			Key:   appendKey(nil, s.connector, s.source, k),
			Value: appendValue(nil, p),
		}, func(_ *kgo.Record, err error) { acks <- err })
	}
	var failed error
	for range len(ps) {
		select {
		case err := <-acks:
			if failed == nil {
				failed = err
			}
		case <-ctx.Done():
			// The producer is kept: what it has still in flight stays in order
			// before what the next save writes.
			return ctx.Err()
		}
	}
	if failed != nil && ctx.Err() == nil {
		// The producer may be one that the cluster will not take again.
		s.producer.Close()
		s.producer = nil
	}
	return failed
}
