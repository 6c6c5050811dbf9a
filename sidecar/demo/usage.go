package demo

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
)

// usage is what the process has taken so far; zero where the platform does not
// tell.
type usage struct {
	cpuSeconds float64
	memory     float64 // resident bytes now
}

// meter reads the usage of this process by Prometheus' process collector,
// which knows the platforms.
type meter struct{ registry *prometheus.Registry }

func newMeter() meter {
	r := prometheus.NewRegistry()
	r.MustRegister(collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return meter{r}
}

func (m meter) read() usage {
	var u usage
	families, err := m.registry.Gather()
	if err != nil {
		return u
	}
	for _, f := range families {
		switch metrics := f.GetMetric(); f.GetName() {
		case "process_cpu_seconds_total":
			u.cpuSeconds = metrics[0].GetCounter().GetValue()
		case "process_resident_memory_bytes":
			u.memory = metrics[0].GetGauge().GetValue()
		}
	}
	return u
}
