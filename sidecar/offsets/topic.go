package offsets

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"mirror/sidecar/cluster"
	"mirror/sidecar/config"
)

// TopicOptions say where offset syncs are kept.
type TopicOptions struct {
	Cluster *cluster.Cluster
	Name    string        // see [SyncsTopic]
	Create  config.Create // for the topic, when it is missing
	Log     *slog.Logger
}

// Topic is a flow's topic of offset syncs. It is connected to with the first
// Write or Read. Its methods may be called by several goroutines.
type Topic struct {
	o      TopicOptions
	writer *cluster.Writer
}

// NewTopic does no I/O.
func NewTopic(o TopicOptions) *Topic {
	// MirrorMaker writes and reads partition 0.
	return &Topic{o: o, writer: cluster.NewWriter(o.Cluster, kgo.RecordPartitioner(kgo.ManualPartitioner()))}
}

// Write writes syncs and returns nil once all in-sync replicas have every one of
// them. What can be retried is retried until ctx ends. After an error some of them
// may be there; writing them again is safe. The topic is made when it is missing:
// one partition, compacted.
func (t *Topic) Write(ctx context.Context, syncs []Sync) error {
	records := make([]*kgo.Record, len(syncs))
	for i, s := range syncs {
		records[i] = &kgo.Record{Topic: t.o.Name, Key: s.AppendKey(nil), Value: s.AppendValue(nil)}
	}
	err := t.writer.Write(ctx, records, t.prepare)
	if errors.Is(err, kerr.TopicAuthorizationFailed) {
		err = fmt.Errorf("%w: allow Write on it", err)
	}
	if err != nil {
		return fmt.Errorf("write %d offset syncs to topic %q on cluster %q: %w", len(syncs), t.o.Name, t.o.Cluster.Alias(), err)
	}
	return nil
}

// prepare makes the topic when it is missing. One that exists is taken as it is; a
// cleanup policy that loses syncs is said.
func (t *Topic) prepare(ctx context.Context, _ string) error {
	found, err := t.o.Cluster.Topics(ctx, []string{t.o.Name})
	if err != nil {
		return err
	}
	switch topic, ok := found[t.o.Name]; {
	case topic.Err != nil:
		return t.o.Cluster.Explain(topic.Err)
	case ok:
		t.checkPolicy(ctx)
		return nil
	}
	without, err := t.o.Cluster.CreateTopic(ctx, t.o.Name, 1, t.o.Create, map[string]string{"cleanup.policy": "compact"})
	if without != nil {
		t.o.Log.Warn("the topic of offset syncs cannot have the configs of [flows.create], trying without them", "topic", t.o.Name, "err", without)
	}
	if errors.Is(err, kerr.TopicAlreadyExists) {
		return nil
	}
	if err == nil {
		t.o.Log.Info("created the topic of offset syncs", "topic", t.o.Name, "cluster", t.o.Cluster.Alias())
	}
	return err
}

// checkPolicy warns of any cleanup policy but compact (KAFKA-9216). Who may not look
// may write all the same.
func (t *Topic) checkPolicy(ctx context.Context) {
	if policy, err := t.o.Cluster.CleanupPolicy(ctx, t.o.Name); err == nil && policy != "" && policy != "compact" {
		t.o.Log.Error("the topic of offset syncs is not compacted, so syncs are lost in time: alter its cleanup.policy to compact",
			"topic", t.o.Name, "cluster", t.o.Cluster.Alias(), "policy", policy)
	}
}

// Read reads all syncs that the topic has now, in order; none where it does not
// exist. Records that are no syncs are passed over.
func (t *Topic) Read(ctx context.Context) (syncs []Sync, err error) {
	found, err := t.o.Cluster.Topics(ctx, []string{t.o.Name})
	if err == nil {
		topic, ok := found[t.o.Name]
		if !ok {
			return nil, nil
		}
		err = topic.Err
	}
	if err == nil {
		syncs, err = t.read(ctx)
	}
	if err != nil {
		return nil, fmt.Errorf("read offset syncs from topic %q on cluster %q: %w", t.o.Name, t.o.Cluster.Alias(), t.o.Cluster.Explain(err))
	}
	return syncs, nil
}

func (t *Topic) read(ctx context.Context) ([]Sync, error) {
	at := cluster.TopicPartition{Topic: t.o.Name}
	end := t.o.Cluster.ListOffsets(ctx, []cluster.TopicPartition{at}, cluster.LatestOffset, config.ReadCommitted)[at]
	start := t.o.Cluster.ListOffsets(ctx, []cluster.TopicPartition{at}, cluster.EarliestOffset, config.ReadCommitted)[at]
	if err := errors.Join(end.Err, start.Err); err != nil || start.Offset >= end.Offset {
		return nil, err
	}
	// Control records are kept, so that a log which ends in one is read to its end.
	c, err := t.o.Cluster.NewClient(kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{t.o.Name: {0: kgo.NewOffset().At(start.Offset)}}),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.KeepControlRecords())
	if err != nil {
		return nil, err
	}
	defer c.Close()
	var syncs []Sync
	for next := start.Offset; next < end.Offset; {
		fetches := c.PollFetches(ctx)
		if err := fetches.Err0(); err != nil {
			return nil, err
		}
		for _, e := range fetches.Errors() {
			return nil, e.Err
		}
		fetches.EachRecord(func(r *kgo.Record) {
			next = r.Offset + 1
			if s, err := ParseSync(r.Key, r.Value); err == nil && !r.Attrs.IsControl() && r.Offset < end.Offset {
				syncs = append(syncs, s)
			}
		})
	}
	return syncs, nil
}

// Close ends the connection.
func (t *Topic) Close() { t.writer.Close() }
