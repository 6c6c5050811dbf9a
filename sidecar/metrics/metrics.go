// Package metrics shows a running mirror to Prometheus. It keeps no counters:
// each scrape takes one status report and says what is in it, so the metrics,
// /status and the demo's table can never disagree.
package metrics

import (
	"runtime"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"mirror/sidecar/status"
)

// Collector is a prometheus.Collector over status reports.
type Collector struct {
	source     func() status.Report
	partitions *partitions
}

// New makes a collector that calls source once a scrape, from any goroutine.
// What tells of partitions has the config's granularity; "" is by partition.
func New(source func() status.Report, granularity string) *Collector {
	return &Collector{source, newPartitions(granularity)}
}

// NewRegistry makes a registry with a collector over source, and those of the
// Go runtime and of the process.
func NewRegistry(source func() status.Report, granularity string) *prometheus.Registry {
	r := prometheus.NewRegistry()
	r.MustRegister(New(source, granularity), collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return r
}

// Describe implements prometheus.Collector.
func (c *Collector) Describe(to chan<- *prometheus.Desc) {
	for _, d := range [][]*prometheus.Desc{processDescs, configDescs, flowDescs, failoverDescs, pluginDescs, c.partitions.descs} {
		for _, desc := range d {
			to <- desc
		}
	}
}

// Collect implements prometheus.Collector.
func (c *Collector) Collect(to chan<- prometheus.Metric) {
	report := c.source()
	collectProcess(to, &report)
	collectConfig(to, &report.Config)
	for i := range report.Flows {
		f := &report.Flows[i]
		collectFlow(to, f)
		collectFailover(to, f)
		collectPlugins(to, f)
		c.partitions.collect(to, f)
	}
}

var (
	buildInfo = prometheus.NewDesc("mirror_build_info",
		"Always 1; the labels say which build of the mirror this is.", []string{"version", "goversion"}, nil)
	ready = prometheus.NewDesc("mirror_ready",
		"1 when the mirror is ready, as /readyz says, else 0.", nil, nil)

	processDescs = []*prometheus.Desc{buildInfo, ready}
)

func collectProcess(to chan<- prometheus.Metric, r *status.Report) {
	gauge(to, buildInfo, 1, r.Version, strings.TrimPrefix(runtime.Version(), "go"))
	gauge(to, ready, one(r.Ready))
}

func gauge(to chan<- prometheus.Metric, d *prometheus.Desc, value float64, labels ...string) {
	to <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value, labels...)
}

func counter(to chan<- prometheus.Metric, d *prometheus.Desc, value uint64, labels ...string) {
	to <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(value), labels...)
}

// one is 1 for true.
func one(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
