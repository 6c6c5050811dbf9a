package metrics

import (
	"strconv"

	"github.com/prometheus/client_golang/prometheus"

	"mirror/sidecar/status"
)

// The metrics of a partition, by its source topic.
var (
	records = partitionDesc("mirror_records_total",
		"Records acknowledged by the target.")
	bytesTotal = partitionDesc("mirror_bytes_total",
		"Bytes of record batches, compressed as stored, acknowledged by the target.")
	batches = partitionDesc("mirror_batches_total",
		"Source batches by the path they took: raw, merged, reencoded or skipped.", "path")
	lost = partitionDesc("mirror_lost_offsets_total",
		"Source offsets that retention took before they were copied.")
	merging = partitionDesc("mirror_partition_merging",
		"1 while waiting batches are merged into larger ones, else 0.")
	lag = partitionDesc("mirror_lag_records",
		"Source offsets that may be copied and are not yet safe on the target; absent while the source's end is not known.")
	position = partitionDesc("mirror_position_offset",
		"The last source offset that is safe on the target; absent when there is none.")
	sourceEnd = partitionDesc("mirror_source_end_offset",
		"The end of what may be copied: the last stable offset when reading committed, else the high watermark; absent while not known.")
	stalled = partitionDesc("mirror_partition_stalled",
		"1 while the partition waits for somebody to act, else 0.")
	stalledOffset = partitionDesc("mirror_partition_stalled_offset",
		"The source offset that a stalled partition cannot get past; absent otherwise.")

	partitionDescs = []*prometheus.Desc{records, bytesTotal, batches, lost, merging, lag, position, sourceEnd, stalled, stalledOffset}
)

func partitionDesc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc(name, help, append([]string{"flow", "topic", "partition"}, labels...), nil)
}

func collectPartition(to chan<- prometheus.Metric, flow string, p *status.Partition) {
	number := strconv.Itoa(int(p.Partition))
	counter(to, records, p.Records, flow, p.Topic, number)
	counter(to, bytesTotal, p.Bytes, flow, p.Topic, number)
	for _, path := range status.Paths {
		counter(to, batches, p.Batches[path], flow, p.Topic, number, path)
	}
	counter(to, lost, p.Lost, flow, p.Topic, number)
	gauge(to, merging, one(p.Merging), flow, p.Topic, number)
	if p.SourceEnd >= 0 {
		gauge(to, lag, float64(p.Lag), flow, p.Topic, number)
		gauge(to, sourceEnd, float64(p.SourceEnd), flow, p.Topic, number)
	}
	if p.Position >= 0 {
		gauge(to, position, float64(p.Position), flow, p.Topic, number)
	}
	gauge(to, stalled, one(p.State == status.Stalled), flow, p.Topic, number)
	if p.StalledAt >= 0 {
		gauge(to, stalledOffset, float64(p.StalledAt), flow, p.Topic, number)
	}
}
