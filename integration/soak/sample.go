package soak

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"time"

	"mirror/integration/contract"
	"mirror/sidecar/status"
)

// sample is what the process holds, and how far it is, at one moment.
type sample struct {
	Seconds    float64 `json:"seconds"` // since the load began
	RSS        int64   `json:"rss_bytes"`
	Heap       int64   `json:"heap_bytes"`
	Goroutines int64   `json:"goroutines"`
	Files      int64   `json:"open_files"`
	CPU        float64 `json:"cpu_seconds"`
	Records    uint64  `json:"records"`
	Bytes      uint64  `json:"bytes"`
	Lag        int64   `json:"lag"`
	Partitions int     `json:"partitions"`
	Stalled    int     `json:"stalled"`
	Errors     uint64  `json:"errors"`
}

// look samples a mirror by /proc (see proc(5)), its metrics and its status.
func look(p *contract.Process, since time.Time) (s sample, err error) {
	s.Seconds = time.Since(since).Seconds()
	proc := fmt.Sprintf("/proc/%d/", p.PID())
	text, err := os.ReadFile(proc + "status")
	if err != nil {
		return s, err
	}
	if s.RSS, err = field(text, "VmRSS:"); err != nil {
		return s, err
	}
	s.RSS <<= 10
	files, err := os.ReadDir(proc + "fd")
	if err != nil {
		return s, err
	}
	s.Files = int64(len(files))
	_, metrics, err := p.Get("/metrics")
	if err != nil {
		return s, err
	}
	if s.Goroutines, err = field(metrics, "go_goroutines"); err != nil {
		return s, err
	}
	if s.Heap, err = field(metrics, "go_memstats_heap_alloc_bytes"); err != nil {
		return s, err
	}
	cpu, err := number(metrics, "process_cpu_seconds_total")
	s.CPU = cpu
	s.add(p.Status())
	return s, err
}

func (s *sample) add(f status.Flow) {
	for _, p := range f.Partitions {
		s.Records += p.Records
		s.Bytes += p.Bytes
		s.Lag += p.Lag
		if p.State == status.Stalled {
			s.Stalled++
		}
	}
	s.Partitions = len(f.Partitions)
	for _, n := range f.Errors {
		s.Errors += n
	}
}

func field(text []byte, name string) (int64, error) {
	v, err := number(text, name)
	return int64(v), err
}

// number finds the line that begins with a name and a blank, and reads the number
// that follows.
func number(text []byte, name string) (float64, error) {
	for line := range bytes.Lines(text) {
		words := bytes.Fields(line)
		if len(words) >= 2 && string(words[0]) == name {
			return strconv.ParseFloat(string(words[1]), 64)
		}
	}
	return 0, fmt.Errorf("no %s", name)
}
