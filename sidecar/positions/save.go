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
	records := make([]*kgo.Record, 0, len(ps))
	for k, p := range ps {
		records = append(records, &kgo.Record{
			Key:   appendKey(nil, s.connector, s.source, k),
			Value: appendValue(nil, p),
		})
	}
	err := s.write(ctx, records)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, kerr.UnknownTopicOrPartition), errors.Is(err, kerr.UnknownTopicID):
		err = fmt.Errorf("%w: was it deleted? it is made again", err)
	case errors.Is(err, kerr.TopicAuthorizationFailed):
		err = fmt.Errorf("%w: allow Write on it", err)
	}
	return fmt.Errorf("save positions of %d partitions to topic %q on cluster %q: %w", len(ps), s.topic, s.cluster.Alias(), err)
}

// write writes records and waits for their acknowledgements.
func (s *Store) write(ctx context.Context, records []*kgo.Record) error {
	select {
	case <-s.turn:
		defer func() { s.turn <- struct{}{} }()
	case <-ctx.Done():
		return ctx.Err()
	}
	if s.unanswered > 0 {
		// Of a save that was given up, and has said so.
		if s.answered(ctx); ctx.Err() != nil {
			return ctx.Err()
		}
	}
	if s.producer == nil {
		p, err := s.cluster.NewClient(
			kgo.DefaultProduceTopic(s.topic),
			kgo.RequiredAcks(kgo.AllISRAcks()),
			// Java's default partitioner, so that MirrorMaker's records of a key
			// and ours are in one partition.
			kgo.RecordPartitioner(kgo.StickyKeyPartitioner(nil)),
			kgo.ProducerLinger(0),
		)
		if err != nil {
			return err
		}
		s.producer = p
	}

	s.acks = make(chan error, len(records)) // holds them all: nobody may be left to read
	s.unanswered = len(records)
	for _, r := range records {
		acks := s.acks
		s.producer.Produce(ctx, r, func(_ *kgo.Record, err error) { acks <- err })
	}
	err := s.answered(ctx)
	if err != nil && ctx.Err() == nil {
		// The producer may be one that the cluster will not take again.
		s.producer.Close()
		s.producer = nil
	}
	return err
}

// answered waits until the fate of every record is known, and returns the first
// error. When ctx ends before that, the next save goes on waiting before it
// writes: an old position must not land on a newer one, and the producer fails
// what is queued behind a record that was given up.
func (s *Store) answered(ctx context.Context) error {
	var failed error
	for s.unanswered > 0 {
		select {
		case err := <-s.acks:
			s.unanswered--
			if failed == nil {
				failed = err
			}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return failed
}
