package metrics

import (
	"maps"
	"slices"
	"strconv"

	"github.com/prometheus/client_golang/prometheus"

	"mirror/sidecar/status"
)

// The metrics of plugins, over all lanes of a flow, since the generation was
// loaded.
var (
	pluginInfo = pluginDesc("mirror_plugin_info",
		"Always 1; the labels say which file the plugin is.", "sha256")
	pluginGeneration = pluginDesc("mirror_plugin_generation",
		"The number of the plugin's generation: it rises with each reload that changes plugins.")
	pluginState = pluginDesc("mirror_plugin_state",
		"1 for what the plugin is doing: running, retrying, halted or off.", "state")
	pluginHalted = pluginDesc("mirror_plugin_halted_partitions",
		"Partitions that the plugin has halted one by one.")
	pluginWaiting = pluginDesc("mirror_plugin_waiting_ranges",
		"Ranges of offsets that the plugin has still to be told, or to flush.")
	pluginCalls = pluginDesc("mirror_plugin_calls_total",
		"Calls of the plugin's hooks.", "hook")
	pluginFailures = pluginDesc("mirror_plugin_failures_total",
		"Calls that failed, by status.", "status")
	pluginSeconds = pluginDesc("mirror_plugin_seconds_total",
		"Seconds spent in the plugin's hooks.", "hook")
	pluginEmits = pluginDesc("mirror_plugin_emits_total",
		"What the plugin emitted and was written.")
	pluginSkipped = pluginDesc("mirror_plugin_skipped_ranges_total",
		"Ranges that the plugin was not told because of its failure policy.")
	pluginMemory = pluginDesc("mirror_plugin_memory_bytes",
		"Memory of the plugin's instances.")
	pluginStateBytes = pluginDesc("mirror_plugin_state_bytes",
		"State that the plugin keeps of all partitions, as limits.state counts it.")
	pluginStateKeys = pluginDesc("mirror_plugin_state_keys",
		"Keys of the state that the plugin keeps.")
	pluginStateRefused = pluginDesc("mirror_plugin_state_refused_total",
		"Changes of state that were refused because a partition's is at its limit.")
	pluginCounter = pluginDesc("mirror_plugin_own_total",
		"Counters that the plugin has defined; series is the name, with its labels.", "series")
	pluginGauge = pluginDesc("mirror_plugin_own",
		"Gauges that the plugin has defined, by lane; series is the name, with its labels.", "lane", "series")

	pluginDescs = []*prometheus.Desc{pluginInfo, pluginGeneration, pluginState, pluginHalted, pluginWaiting, pluginCalls,
		pluginFailures, pluginSeconds, pluginEmits, pluginSkipped, pluginMemory, pluginStateBytes,
		pluginStateKeys, pluginStateRefused, pluginCounter, pluginGauge}
)

func pluginDesc(name, help string, labels ...string) *prometheus.Desc {
	return flowDesc(name, help, append([]string{"plugin"}, labels...)...)
}

func collectPlugins(to chan<- prometheus.Metric, f *status.Flow) {
	for i := range f.Plugins {
		p := &f.Plugins[i]
		gauge(to, pluginInfo, 1, f.Name, p.Name, p.SHA256)
		gauge(to, pluginGeneration, float64(p.Generation), f.Name, p.Name)
		for _, s := range status.PluginStates {
			gauge(to, pluginState, one(p.State == s), f.Name, p.Name, s)
		}
		gauge(to, pluginHalted, float64(p.Halted), f.Name, p.Name)
		gauge(to, pluginWaiting, float64(p.Waiting), f.Name, p.Name)
		for _, hook := range slices.Sorted(maps.Keys(p.Calls)) {
			counter(to, pluginCalls, p.Calls[hook], f.Name, p.Name, hook)
			to <- prometheus.MustNewConstMetric(pluginSeconds, prometheus.CounterValue, p.Seconds[hook], f.Name, p.Name, hook)
		}
		for _, s := range slices.Sorted(maps.Keys(p.Failures)) {
			counter(to, pluginFailures, p.Failures[s], f.Name, p.Name, s)
		}
		counter(to, pluginEmits, p.Emits, f.Name, p.Name)
		counter(to, pluginSkipped, p.Skipped, f.Name, p.Name)
		gauge(to, pluginMemory, float64(p.Memory), f.Name, p.Name)
		gauge(to, pluginStateBytes, float64(p.StateBytes), f.Name, p.Name)
		gauge(to, pluginStateKeys, float64(p.StateKeys), f.Name, p.Name)
		counter(to, pluginStateRefused, p.StateRefused, f.Name, p.Name)
		for _, s := range p.Series {
			if s.Counter {
				counter(to, pluginCounter, uint64(s.Value), f.Name, p.Name, s.Name)
			} else {
				gauge(to, pluginGauge, float64(s.Value), f.Name, p.Name, strconv.Itoa(s.Lane), s.Name)
			}
		}
	}
}
