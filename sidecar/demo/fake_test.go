package demo

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"mirror/sidecar/config"
	"mirror/sidecar/embedded"
	"mirror/sidecar/status"
)

// fakeMirror copies by consuming and producing. Its spoil may change what it
// copies, which is the point of it.
type fakeMirror struct {
	clusters map[string]*embedded.Cluster
	// spoil gives what to write in place of the records of one fetch of one
	// partition.
	spoil func(rs []*kgo.Record) []*kgo.Record
	// shift is by how much groups on the target are ahead of where they should be.
	shift int64

	copied map[partition][]int64 // the offsets of the source's records
	mu     sync.Mutex
	report status.Report
}

func openFake(spoil func(rs []*kgo.Record) []*kgo.Record) func(*config.Config, *slog.Logger) (Mirror, error) {
	return func(cfg *config.Config, _ *slog.Logger) (Mirror, error) {
		m := &fakeMirror{clusters: map[string]*embedded.Cluster{}, spoil: spoil, copied: map[partition][]int64{}}
		for alias := range cfg.Clusters {
			c, err := embedded.Start(alias)
			if err != nil {
				return nil, err
			}
			m.clusters[alias] = c
		}
		return m, nil
	}
}

func (m *fakeMirror) Bootstrap(alias string) []string { return m.clusters[alias].Bootstrap() }

func (m *fakeMirror) Status() status.Report {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.report
}

func (m *fakeMirror) Run(ctx context.Context) error {
	defer func() {
		for _, c := range m.clusters {
			c.Close()
		}
	}()
	source, err := kgo.NewClient(kgo.SeedBrokers(m.Bootstrap(from)...), kgo.ConsumeRegex(), kgo.ConsumeTopics(".*"),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.MetadataMinAge(50*time.Millisecond), kgo.MetadataMaxAge(200*time.Millisecond))
	if err != nil {
		return err
	}
	defer source.Close()
	target, err := kgo.NewClient(kgo.SeedBrokers(m.Bootstrap(to)...), kgo.RecordPartitioner(kgo.ManualPartitioner()))
	if err != nil {
		return err
	}
	defer target.Close()
	made := map[string]bool{}
	for ctx.Err() == nil {
		fetches := source.PollFetches(ctx)
		var out []*kgo.Record
		fetches.EachPartition(func(p kgo.FetchTopicPartition) {
			if !made[p.Topic] {
				made[p.Topic] = true
				partitions := int32(1)
				for _, t := range topics {
					if t.name == p.Topic {
						partitions = t.partitions
					}
				}
				_, err = kadm.NewClient(target).CreateTopic(ctx, partitions, 1, nil, from+"."+p.Topic)
			}
			var rs []*kgo.Record
			for _, r := range p.Records {
				at := partition{r.Topic, r.Partition}
				m.copied[at] = append(m.copied[at], r.Offset)
				rs = append(rs, &kgo.Record{Topic: from + "." + r.Topic, Partition: r.Partition, Timestamp: r.Timestamp,
					Key: r.Key, Value: r.Value, Headers: r.Headers})
			}
			if m.spoil != nil && len(rs) > 0 {
				rs = m.spoil(rs)
			}
			out = append(out, rs...)
		})
		if err == nil {
			err = target.ProduceSync(ctx, out...).FirstErr()
		}
		if err != nil && ctx.Err() == nil {
			return err
		}
		m.count(out)
		if err := m.syncGroup(ctx, kadm.NewClient(source), kadm.NewClient(target)); err != nil && ctx.Err() == nil {
			return err
		}
	}
	return nil
}

// syncGroup commits for the group on the target where it is on the source. While it has
// members there that is refused.
func (m *fakeMirror) syncGroup(ctx context.Context, source, target *kadm.Client) error {
	offsets, err := source.FetchOffsets(ctx, groupName)
	if err != nil || len(offsets) == 0 {
		return err
	}
	there := kadm.Offsets{}
	offsets.Each(func(o kadm.OffsetResponse) {
		n, _ := slices.BinarySearch(m.copied[partition{o.Topic, o.Partition}], o.At)
		there.AddOffset(from+"."+o.Topic, o.Partition, max(0, int64(n)+m.shift), -1)
	})
	_, err = target.CommitOffsets(ctx, groupName, there)
	return err
}

// count keeps a report as a mirror would.
func (m *fakeMirror) count(rs []*kgo.Record) {
	m.mu.Lock()
	defer m.mu.Unlock()
	flow := status.Flow{Name: from + "->" + to, State: status.Running}
	if len(m.report.Flows) > 0 {
		flow.Partitions = append(flow.Partitions, m.report.Flows[0].Partitions...)
	}
	for _, r := range rs {
		topic := strings.TrimPrefix(r.Topic, from+".")
		at := -1
		for i, p := range flow.Partitions {
			if p.Topic == topic && p.Partition == r.Partition {
				at = i
			}
		}
		if at < 0 {
			at = len(flow.Partitions)
			flow.Partitions = append(flow.Partitions, status.Partition{Topic: topic, Partition: r.Partition, State: status.Running,
				Batches: map[string]uint64{}})
		}
		flow.Partitions[at].Records++
		flow.Partitions[at].Bytes += uint64(len(r.Value))
	}
	m.report = status.Report{Flows: []status.Flow{flow}}
}
