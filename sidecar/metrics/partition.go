package metrics

import (
	"strconv"

	"github.com/prometheus/client_golang/prometheus"

	"mirror/sidecar/config"
	"mirror/sidecar/status"
)

// family is a metric of partitions, by their source topics, or of what they come
// to.
type family struct {
	name, help string
	labels     []string // beside those that say of which partition
	single     bool     // says something of a partition only, not of several
	collect    func(p *status.Partition, e emitter)
}

var families = []family{
	{name: "mirror_records_total",
		help:   "Records by the path they took: acknowledged by the target (raw, merged, reencoded), or skipped, and why.",
		labels: []string{"path", "reason"}, collect: func(p *status.Partition, e emitter) {
			e.paths(p, func(c *status.Count) uint64 { return c.Records })
		}},
	{name: "mirror_bytes_total",
		help:   "Bytes of record batches, compressed as stored, by the path they took.",
		labels: []string{"path", "reason"}, collect: func(p *status.Partition, e emitter) {
			e.paths(p, func(c *status.Count) uint64 { return c.Bytes })
		}},
	{name: "mirror_batches_total",
		help:   "Source batches by the path they took.",
		labels: []string{"path", "reason"}, collect: func(p *status.Partition, e emitter) {
			e.paths(p, func(c *status.Count) uint64 { return c.Batches })
		}},
	{name: "mirror_lost_offsets_total",
		help:    "Source offsets that retention took before they were copied.",
		collect: func(p *status.Partition, e emitter) { e.counter(p.Lost) }},
	{name: "mirror_possibly_repeated_records_total",
		help:    "Records that the target held after the saved position and that could not be matched with the source: they may be there twice.",
		collect: func(p *status.Partition, e emitter) { e.counter(p.Repeats) }},
	{name: "mirror_lag_records",
		help:    "Source offsets that may be copied and are not yet safe on the target; absent while the source's end is not known.",
		collect: func(p *status.Partition, e emitter) { e.gaugeIf(p.SourceEnd >= 0, float64(p.Lag)) }},
	{name: "mirror_lag_seconds",
		help: "Age of the oldest record that may be copied and is not yet safe on the target, by its timestamp or, where that is later, " +
			"from when nothing was last seen to wait; 0 while nothing waits; absent while the source's end is not known.",
		collect: func(p *status.Partition, e emitter) { e.gaugeIf(p.SourceEnd >= 0, p.LagSeconds) }},
	{name: "mirror_last_record_timestamp_seconds",
		help: "Timestamp of the last record copied, as Unix time; absent before the first.",
		collect: func(p *status.Partition, e emitter) {
			e.gaugeIf(!p.LastRecord.IsZero(), float64(p.LastRecord.UnixMilli())/1000)
		}},
	{name: "mirror_position_offset", single: true,
		help:    "The last source offset that is safe on the target; absent when there is none.",
		collect: func(p *status.Partition, e emitter) { e.gaugeIf(p.Position >= 0, float64(p.Position)) }},
	{name: "mirror_source_end_offset", single: true,
		help:    "The end of what may be copied: the last stable offset when reading committed, else the high watermark; absent while not known.",
		collect: func(p *status.Partition, e emitter) { e.gaugeIf(p.SourceEnd >= 0, float64(p.SourceEnd)) }},
	{name: "mirror_partition_merging", single: true,
		help:    "1 while waiting batches are merged into larger ones, else 0.",
		collect: func(p *status.Partition, e emitter) { e.gaugeIf(true, one(p.Merging)) }},
	{name: "mirror_partition_isolated", single: true,
		help:    "1 while the partition has a connection other than most, because the target's followers are slow to store it, else 0.",
		collect: func(p *status.Partition, e emitter) { e.gaugeIf(true, one(p.Isolated)) }},
	{name: "mirror_partition_stalled", single: true,
		help:    "1 while the partition waits for somebody to act, else 0.",
		collect: func(p *status.Partition, e emitter) { e.gaugeIf(true, one(p.State == status.Stalled)) }},
	{name: "mirror_partition_stalled_offset", single: true,
		help:    "The source offset that a stalled partition cannot get past; absent otherwise.",
		collect: func(p *status.Partition, e emitter) { e.gaugeIf(p.StalledAt >= 0, float64(p.StalledAt)) }},
}

// partitions collects the families of a granularity.
type partitions struct {
	granularity string
	families    []family
	descs       []*prometheus.Desc // of each
}

func newPartitions(granularity string) *partitions {
	labels := []string{"flow", "topic", "partition"}
	switch granularity {
	case config.ByTopic:
		labels = labels[:2]
	case config.ByFlow:
		labels = labels[:1]
	}
	ps := &partitions{granularity: granularity}
	for _, f := range families {
		if f.single && len(labels) < 3 {
			continue
		}
		ps.families = append(ps.families, f)
		ps.descs = append(ps.descs, prometheus.NewDesc(f.name, f.help, append(labels[:len(labels):len(labels)], f.labels...), nil))
	}
	return ps
}

func (ps *partitions) collect(to chan<- prometheus.Metric, f *status.Flow) {
	switch ps.granularity {
	case config.ByTopic:
		for _, p := range sums(f.Partitions, func(p *status.Partition) string { return p.Topic }) {
			ps.one(to, p, f.Name, p.Topic)
		}
	case config.ByFlow:
		for _, p := range sums(f.Partitions, func(*status.Partition) string { return "" }) {
			ps.one(to, p, f.Name)
		}
	default:
		for i := range f.Partitions {
			p := &f.Partitions[i]
			ps.one(to, p, f.Name, p.Topic, strconv.Itoa(int(p.Partition)))
		}
	}
}

func (ps *partitions) one(to chan<- prometheus.Metric, p *status.Partition, labels ...string) {
	for i, f := range ps.families {
		f.collect(p, emitter{to, ps.descs[i], labels})
	}
}

// sums adds up the partitions that have the same key, in their order.
func sums(all []status.Partition, key func(*status.Partition) string) (list []*status.Partition) {
	byKey := map[string]*status.Partition{}
	for i := range all {
		p := &all[i]
		s, ok := byKey[key(p)]
		if !ok {
			s = &status.Partition{Topic: p.Topic, SourceEnd: -1}
			byKey[key(p)] = s
			list = append(list, s)
		}
		add(s, p)
	}
	return list
}

// add adds p to a sum: the times are those of the partition that is furthest
// behind, and of the youngest record.
func add(sum, p *status.Partition) {
	sum.SourceEnd = max(sum.SourceEnd, p.SourceEnd) // known where one is
	sum.Lag += p.Lag
	sum.LagSeconds = max(sum.LagSeconds, p.LagSeconds)
	if p.LastRecord.After(sum.LastRecord) {
		sum.LastRecord = p.LastRecord
	}
	sum.Lost += p.Lost
	sum.Repeats += p.Repeats
next:
	for _, c := range p.Paths {
		for i := range sum.Paths {
			if s := &sum.Paths[i]; s.Path == c.Path && s.Reason == c.Reason {
				s.Batches += c.Batches
				s.Records += c.Records
				s.Bytes += c.Bytes
				continue next
			}
		}
		sum.Paths = append(sum.Paths, c)
	}
}

// emitter sends metrics of one family and of one partition, or sum.
type emitter struct {
	to     chan<- prometheus.Metric
	desc   *prometheus.Desc
	labels []string
}

func (e emitter) counter(n uint64, labels ...string) {
	counter(e.to, e.desc, n, append(e.labels[:len(e.labels):len(e.labels)], labels...)...)
}

func (e emitter) gaugeIf(known bool, value float64) {
	if known {
		gauge(e.to, e.desc, value, e.labels...)
	}
}

// paths sends what was counted on each path. Those that need a reason are there
// once there was one: with all of them a partition would have forty series.
func (e emitter) paths(p *status.Partition, of func(*status.Count) uint64) {
	raw, merged := uint64(0), uint64(0)
	for i := range p.Paths {
		switch c := &p.Paths[i]; c.Path {
		case status.PathRaw:
			raw = of(c)
		case status.PathMerged:
			merged = of(c)
		default:
			e.counter(of(c), c.Path, c.Reason)
		}
	}
	e.counter(raw, status.PathRaw, "")
	e.counter(merged, status.PathMerged, "")
}
