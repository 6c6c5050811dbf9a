package offsets

import (
	"context"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// Checkpoints is a flow's topic of checkpoints, on the target. It is connected to with
// the first Write or Read. Its methods may be called by several goroutines.
type Checkpoints struct{ *store }

// NewCheckpoints does no I/O.
func NewCheckpoints(o TopicOptions) *Checkpoints {
	return &Checkpoints{newStore(o, "checkpoints")}
}

// Write writes checkpoints, stamped with a time, and returns nil once all in-sync
// replicas have every one of them. What can be retried is retried until ctx ends.
// After an error some of them may be there; writing them again is safe. The topic is
// made when it is missing: one partition, compacted. There is no way to write a
// tombstone: MirrorMaker's reader fails on one.
func (t *Checkpoints) Write(ctx context.Context, all []Checkpoint, at time.Time) error {
	records := make([]*kgo.Record, len(all))
	for i, c := range all {
		records[i] = &kgo.Record{Topic: t.o.Name, Key: c.AppendKey(nil), Value: c.AppendValue(nil), Timestamp: at}
	}
	return t.write(ctx, records)
}

// Read has each see all checkpoints that the topic has now, in order, with the time
// at which each was written; none where it does not exist. Records that are no
// checkpoints are passed over.
func (t *Checkpoints) Read(ctx context.Context, each func(Checkpoint, time.Time)) error {
	return t.read(ctx, func(r *kgo.Record) {
		if c, err := ParseCheckpoint(r.Key, r.Value); err == nil {
			each(c, r.Timestamp)
		}
	})
}

// ID asks for the topic's id, which changes when it is made again; zero where there
// is no such topic, or before Kafka 2.8.
func (t *Checkpoints) ID(ctx context.Context) (id [16]byte, exists bool, err error) {
	found, err := t.o.Cluster.Topics(ctx, []string{t.o.Name})
	if err != nil {
		return id, false, err
	}
	topic, ok := found[t.o.Name]
	if ok && topic.Err != nil {
		return id, false, t.o.Cluster.Explain(topic.Err)
	}
	return topic.ID, ok, nil
}

// Name is the topic's.
func (t *Checkpoints) Name() string { return t.o.Name }
