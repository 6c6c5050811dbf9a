package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"mirror/sidecar/status"
)

// The metrics of a flow.
var (
	flowReady = flowDesc("mirror_flow_ready",
		"1 when the flow is running, 0 when it is starting, stalled or stopping.")
	flowPartitions = flowDesc("mirror_flow_partitions",
		"Partitions by what they are doing: starting, running or stalled.", "state")
	flowBlockedTopics = flowDesc("mirror_flow_blocked_topics",
		"Selected source topics that cannot be mirrored at the moment.")
	inFlight = flowDesc("mirror_in_flight_bytes",
		"Bytes fetched and not yet acknowledged by the target.")
	inFlightLimit = flowDesc("mirror_in_flight_limit_bytes",
		"What mirror_in_flight_bytes may grow to; a larger batch passes alone.")
	positionsSaved = flowDesc("mirror_positions_saved_timestamp_seconds",
		"Unix time at which all positions were on the target; absent before the first time.")
	positionsReady = flowDesc("mirror_positions_ready",
		"1 when positions can be saved, and are kept by a topic that is compacted, else 0.")
	errorsTotal = flowDesc("mirror_errors_total",
		"What went wrong and was retried, by kind.", "kind")
	latency = flowDesc("mirror_replication_latency_seconds",
		"Seconds from a record's timestamp to its acknowledgement by the target, of the youngest record of each batch; 0 for a timestamp that is ahead.")

	flowDescs = []*prometheus.Desc{flowReady, flowPartitions, flowBlockedTopics, inFlight, inFlightLimit, positionsSaved, positionsReady, errorsTotal, latency}
)

func flowDesc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc(name, help, append([]string{"flow"}, labels...), nil)
}

func collectFlow(to chan<- prometheus.Metric, f *status.Flow) {
	gauge(to, flowReady, one(f.State == status.Running), f.Name)
	gauge(to, flowBlockedTopics, float64(len(f.Topics)), f.Name)
	gauge(to, inFlight, float64(f.MemoryInUse), f.Name)
	gauge(to, inFlightLimit, float64(f.MemoryLimit), f.Name)
	if !f.PositionsSave.IsZero() {
		gauge(to, positionsSaved, float64(f.PositionsSave.UnixMilli())/1000, f.Name)
	}
	gauge(to, positionsReady, one(f.PositionsProblem == ""), f.Name)
	states := map[status.State]int{}
	for i := range f.Partitions {
		states[f.Partitions[i].State]++
	}
	for _, s := range []status.State{status.Starting, status.Running, status.Stalled} {
		gauge(to, flowPartitions, float64(states[s]), f.Name, string(s))
	}
	for _, kind := range status.ErrorKinds { // 0 too, so that a first error is an increase
		counter(to, errorsTotal, f.Errors[kind], f.Name, kind)
	}
	buckets := make(map[float64]uint64, len(f.Latency.Buckets))
	for _, b := range f.Latency.Buckets {
		buckets[b.Most] = b.Count
	}
	to <- prometheus.MustNewConstHistogram(latency, f.Latency.Count, f.Latency.Sum, buckets, f.Name)
}
