package pipeline

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"mirror/abi"
	"mirror/plugins"
	"mirror/sidecar/cluster"
	"mirror/sidecar/config"
	"mirror/sidecar/offsets"
	"mirror/sidecar/state"
	"mirror/sidecar/status"
)

// sink writes what a flow's plugins emit: offset syncs to their topic, records to
// the topics that they may write to.
type sink struct {
	flow    *Flow
	syncs   *offsets.Syncs
	records *cluster.Writer
}

func newSink(f *Flow) *sink {
	c := f.cfg()
	home := f.target
	if c.OffsetSyncs.Location == config.OnSource {
		home = f.source
	}
	return &sink{
		flow: f,
		syncs: offsets.NewSyncs(offsets.TopicOptions{
			Cluster: home, Name: offsets.SyncsTopic(home == f.target, c.From, c.To, c.Naming.Separator), Create: c.Create, Log: f.log,
		}),
		records: cluster.NewWriter(f.target, kgo.RecordPartitioner(partitioner{})),
	}
}

func (s *sink) close() {
	s.syncs.Close()
	s.records.Close()
}

// emitTime is how long writing what a plugin emitted may take. Then the plugin is
// asked for it again, after a pause.
const emitTime = 10 * time.Second

// Produce returns nil once all is acknowledged.
func (s *sink) Produce(ctx context.Context, plugin string, emits []plugins.Emit) error {
	writing, cancel := context.WithTimeout(ctx, emitTime)
	defer cancel()
	err := s.write(writing, plugin, emits)
	if err != nil && ctx.Err() == nil {
		s.flow.count(status.ErrorPlugin)
	}
	return err
}

func (s *sink) write(ctx context.Context, plugin string, emits []plugins.Emit) error {
	var syncs []offsets.Sync
	var records []*kgo.Record
	for _, e := range emits {
		switch e.Kind {
		case abi.EmitOffsetSync:
			syncs = append(syncs, offsets.Sync{Topic: e.About.Topic, Partition: e.About.Partition, Upstream: e.Upstream, Downstream: e.Downstream})
		case abi.EmitRecord:
			if state.IsTopic(e.Record.Topic, s.flow.cfg().Naming.Separator) {
				return fmt.Errorf("plugin %s: topic %q is for plugins' state, nobody else may write to it: change the plugin's emit.topics", plugin, e.Record.Topic)
			}
			if s.flow.writes(e.Record.Topic) {
				return fmt.Errorf("plugin %s: topic %q holds mirrored records, nobody else may write to it: change the plugin's emit.topics", plugin, e.Record.Topic)
			}
			records = append(records, record(e.Record))
		}
	}
	if err := s.syncs.Write(ctx, syncs); err != nil {
		return err
	}
	err := s.records.Write(ctx, records, func(ctx context.Context, topic string) error { return s.make(ctx, plugin, topic) })
	if errors.Is(err, kerr.UnknownTopicOrPartition) {
		err = fmt.Errorf("%w: make the topic, or set emit.create in the plugin's table", err)
	}
	if err != nil {
		return fmt.Errorf("write %d records of plugin %s to cluster %q: %w", len(records), plugin, s.flow.target.Alias(), err)
	}
	return nil
}

// make makes a topic that a plugin writes to, if its table says so.
func (s *sink) make(ctx context.Context, plugin, topic string) error {
	c := s.flow.cfg()
	if !slices.ContainsFunc(c.Plugins, func(p config.Plugin) bool { return p.Name == plugin && p.Emit.Create }) {
		return nil
	}
	without, err := s.flow.target.CreateTopic(ctx, topic, -1, c.Create, nil)
	if without != nil {
		s.flow.log.Warn("a topic of a plugin cannot have the configs of [flows.create], trying without them", "topic", topic, "plugin", plugin, "err", without)
	}
	if err == nil || errors.Is(err, kerr.TopicAlreadyExists) {
		return nil
	}
	return fmt.Errorf("topic %q: %w", topic, err)
}

// writes says whether records are mirrored into a topic of the target.
func (f *Flow) writes(topic string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, p := range f.partitions {
		if p.target == topic {
			return true
		}
	}
	return topic == f.cfg().Positions.Topic || topic == f.cfg().CheckpointsTopic()
}

func record(r abi.Record) *kgo.Record {
	// Copies: the client may read them after the call that they are valid for.
	out := &kgo.Record{Topic: r.Topic, Partition: r.Partition, Key: bytes.Clone(r.Key), Value: bytes.Clone(r.Value)}
	if r.Timestamp >= 0 {
		out.Timestamp = time.UnixMilli(r.Timestamp)
	}
	for _, h := range r.Headers {
		out.Headers = append(out.Headers, kgo.RecordHeader{Key: h.Key, Value: bytes.Clone(h.Value)})
	}
	return out
}

// partitioner keeps the partition that a record asks for; -1 asks for the one that
// Java's default partitioner would take.
type partitioner struct{}

func (partitioner) ForTopic(topic string) kgo.TopicPartitioner {
	return &topicPartitioner{kgo.StickyKeyPartitioner(nil).ForTopic(topic)}
}

type topicPartitioner struct{ kgo.TopicPartitioner }

func (p *topicPartitioner) RequiresConsistency(r *kgo.Record) bool {
	return r.Partition >= 0 || p.TopicPartitioner.RequiresConsistency(r)
}

func (p *topicPartitioner) Partition(r *kgo.Record, n int) int {
	if r.Partition >= 0 {
		return int(r.Partition) // one that does not exist fails the record
	}
	return p.TopicPartitioner.Partition(r, n)
}
