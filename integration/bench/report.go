package main

import (
	"encoding/json"
	"fmt"
	"math"
	"time"
)

// Report is what -o json writes.
type Report struct {
	Started time.Time `json:"started"`
	Image   string    `json:"image"`
	CPUs    int       `json:"cpus"`
	Go      string    `json:"go"`
	Size    int64     `json:"size_bytes"` // of a case's payload, see Case for its own
	Cases   []Case    `json:"cases"`
}

// Case is a case and its runs, in the order they were made.
type Case struct {
	benchCase
	dataset
	Runs  []Run  `json:"runs"`
	Pairs []Pair `json:"pairs,omitempty"` // of the mirror's ways
}

// Run is one run of one subject.
type Run struct {
	Subject string `json:"subject"`
	Run     int    `json:"run"` // from 1
	figures
	Note  string `json:"note,omitempty"`  // what to know of the figures
	Error string `json:"error,omitempty"` // why there are not all
}

// figures of a run. A GB is 10^9 bytes of payload (record values). CPU and
// throughput leave out the first fifth of the records.
type figures struct {
	CPU        Figure `json:"cpu_s_per_gb"`
	Settled    Figure `json:"cpu_s_per_gb_until_settled"` // of the mirror: with what it does just after
	Throughput Figure `json:"mb_per_s"`
	SourceCPU  Figure `json:"source_broker_cpu_s_per_gb"`
	TargetCPU  Figure `json:"target_broker_cpu_s_per_gb"`
	Memory     Figure `json:"peak_rss_mb"`
	// How much later than at the source a consumer gets a record at the target,
	// at 100 records a second.
	P50      Figure `json:"latency_p50_ms"`
	P99      Figure `json:"latency_p99_ms"`
	First    Figure `json:"first_record_s"`     // from the start of the process
	FirstCPU Figure `json:"first_record_cpu_s"` // used until then
}

// Figure is a number, or NaN for none, which is null in JSON.
type Figure float64

func (f Figure) known() bool { return !math.IsNaN(float64(f)) }

// MarshalJSON writes null for NaN.
func (f Figure) MarshalJSON() ([]byte, error) {
	if !f.known() {
		return []byte("null"), nil
	}
	return json.Marshal(float64(f))
}

var noFigure = Figure(math.NaN())

func noFigures() figures {
	no := noFigure
	return figures{no, no, no, no, no, no, no, no, no, no}
}

// failed says that not all was measured.
func (r Report) failed() bool {
	for _, c := range r.Cases {
		for _, x := range c.Runs {
			if x.Error != "" {
				return true
			}
		}
	}
	return false
}

// String is the line of a run while others go on.
func (r Run) String() string {
	switch {
	case r.Error != "":
		return "FAILED: " + r.Error
	case r.Note != "":
		return r.Note
	}
	return fmt.Sprintf("%.2f CPU s/GB, %.0f MB/s", float64(r.CPU), float64(r.Throughput))
}
