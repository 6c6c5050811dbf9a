package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"mirror/sidecar/status"
)

// The metrics of the config and its reloads.
var (
	reloadOK = prometheus.NewDesc("mirror_config_last_reload_successful",
		"1 unless the config was refused when it was last read, else 0.", nil, nil)
	reloadAt = prometheus.NewDesc("mirror_config_last_reload_success_timestamp_seconds",
		"Unix time at which the config was last read and found good; the start counts.", nil, nil)
	reloads = prometheus.NewDesc("mirror_config_reloads_total",
		"Reloads of the config by result: applied or refused.", []string{"result"}, nil)
	generation = prometheus.NewDesc("mirror_config_generation",
		"The number of the config that is in force: 1 at the start, one more with each reload that changed something.", nil, nil)
	needsRestart = prometheus.NewDesc("mirror_config_restart_pending_keys",
		"Keys of the config file that differ from what runs until a restart.", nil, nil)

	configDescs = []*prometheus.Desc{reloadOK, reloadAt, reloads, generation, needsRestart}
)

func collectConfig(to chan<- prometheus.Metric, c *status.Config) {
	gauge(to, reloadOK, one(c.Last == nil || c.Last.Result == status.ReloadApplied))
	gauge(to, reloadAt, float64(c.Loaded.UnixMilli())/1000)
	for _, result := range status.ReloadResults {
		counter(to, reloads, c.Reloads[result], result)
	}
	gauge(to, generation, float64(c.Generation))
	gauge(to, needsRestart, float64(len(c.NeedsRestart)))
}
