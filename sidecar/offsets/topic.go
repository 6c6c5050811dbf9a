package offsets

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"

	"github.com/twmb/franz-go/pkg/kadm"
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
	o TopicOptions

	mu     sync.Mutex
	client *kgo.Client // nil before the first Write, and after one that failed
}

// NewTopic does no I/O.
func NewTopic(o TopicOptions) *Topic { return &Topic{o: o} }

// Write writes syncs and returns nil once all in-sync replicas have every one of
// them. What can be retried is retried until ctx ends. After an error some of them
// may be there; writing them again is safe. The topic is made when it is missing:
// one partition, compacted.
func (t *Topic) Write(ctx context.Context, syncs []Sync) error {
	if len(syncs) == 0 {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	err := t.write(ctx, syncs)
	if err != nil && t.client != nil {
		// The topic may have been deleted, or the producer be one that the cluster
		// will not take again.
		t.client.Close()
		t.client = nil
	}
	if err != nil {
		return fmt.Errorf("write %d offset syncs to topic %q on cluster %q: %w", len(syncs), t.o.Name, t.o.Cluster.Alias(), err)
	}
	return nil
}

func (t *Topic) write(ctx context.Context, syncs []Sync) error {
	if t.client == nil {
		if err := t.prepare(ctx); err != nil {
			return err
		}
		c, err := t.o.Cluster.NewClient(kgo.DefaultProduceTopic(t.o.Name), kgo.RequiredAcks(kgo.AllISRAcks()), kgo.ProducerLinger(0),
			kgo.RecordPartitioner(kgo.ManualPartitioner())) // MirrorMaker writes and reads partition 0
		if err != nil {
			return err
		}
		t.client = c
	}
	records := make([]*kgo.Record, len(syncs))
	for i, s := range syncs {
		records[i] = &kgo.Record{Key: s.AppendKey(nil), Value: s.AppendValue(nil)}
	}
	err := cluster.ProduceAll(ctx, t.client, records)
	if errors.Is(err, kerr.TopicAuthorizationFailed) {
		err = fmt.Errorf("%w: allow Write on it", err)
	}
	return t.o.Cluster.Explain(err)
}

// prepare makes the topic when it is missing. One that exists is taken as it is; a
// cleanup policy that loses syncs is said.
func (t *Topic) prepare(ctx context.Context) error {
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
	err = t.o.Cluster.CreateTopic(ctx, t.o.Name, 1, t.o.Create, map[string]string{"cleanup.policy": "compact"})
	if err == nil {
		t.o.Log.Info("created the topic of offset syncs", "topic", t.o.Name, "cluster", t.o.Cluster.Alias())
	} else if !errors.Is(err, kerr.TopicAlreadyExists) {
		return fmt.Errorf("create it: %w", err)
	}
	return nil
}

// checkPolicy warns of any cleanup policy but compact (KAFKA-9216).
func (t *Topic) checkPolicy(ctx context.Context) {
	described, err := kadm.NewClient(t.o.Cluster.Client()).DescribeTopicConfigs(ctx, t.o.Name)
	if err != nil {
		return // who may not look may write all the same
	}
	for _, r := range described {
		for _, c := range r.Configs {
			if policy := c.MaybeValue(); c.Key == "cleanup.policy" && policy != "compact" {
				t.o.Log.Error("the topic of offset syncs is not compacted, so syncs are lost in time: alter its cleanup.policy to compact",
					"topic", t.o.Name, "cluster", t.o.Cluster.Alias(), "policy", policy)
			}
		}
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
func (t *Topic) Close() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.client != nil {
		t.client.Close()
		t.client = nil
	}
}
