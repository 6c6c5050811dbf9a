// Package soak runs a mirror under a mixed load for a long time, on real Kafka,
// and says whether what it holds stays the same: memory, heap, goroutines, open
// files. All that it copies is compared with the source meanwhile.
//
// trend.go judges, sample.go looks at the process, load.go writes, report.go
// shows; the test puts them together. `just soak 1h` is the long run, go test the
// short one.
package soak

import (
	"fmt"
	"slices"
)

// resource is something that a mirror must not take more and more of.
type resource struct {
	name string
	unit float64 // what it is shown in
	of   func(sample) float64
	// It may grow by this part of itself, and by so much beside: the garbage
	// collector's and the load's ups and downs, not a trend.
	part, beside float64
}

const mib = 1 << 20

var resources = []resource{
	{"rss MiB", mib, func(s sample) float64 { return float64(s.RSS) }, 0.10, 4 * mib},
	{"heap MiB", mib, func(s sample) float64 { return float64(s.Heap) }, 0.15, 4 * mib},
	{"goroutines", 1, func(s sample) float64 { return float64(s.Goroutines) }, 0.05, 3},
	{"open files", 1, func(s sample) float64 { return float64(s.Files) }, 0.05, 3},
}

// trend is how a resource went.
type trend struct {
	Resource string  `json:"resource"`
	Early    float64 `json:"early"` // median of the second fifth of the samples; the first is warm-up
	Late     float64 `json:"late"`  // of the last
	Most     float64 `json:"most"`  // that Late may be
	Flat     bool    `json:"flat"`
}

// fewest samples say anything of a trend.
const fewest = 10

func (r resource) trend(all []sample) (trend, error) {
	n := len(all)
	if n < fewest {
		return trend{}, fmt.Errorf("%d samples of %s, want %d at least", n, r.name, fewest)
	}
	median := func(part []sample) float64 {
		var values []float64
		for _, s := range part {
			values = append(values, r.of(s)/r.unit)
		}
		slices.Sort(values)
		return values[len(values)/2]
	}
	t := trend{Resource: r.name, Early: median(all[n/5 : 2*n/5]), Late: median(all[n-n/5:])}
	t.Most = t.Early*(1+r.part) + r.beside/r.unit
	t.Flat = t.Late <= t.Most
	return t, nil
}
