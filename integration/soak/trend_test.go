package soak

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"strings"
	"testing"
)

// growing makes n samples around start that grow by so much a sample, after a
// warm-up that takes more, then less.
func growing(n int, start, by, noise float64) (all []sample) {
	random := rand.New(rand.NewPCG(1, 2))
	for i := range n {
		v := start + by*float64(i) + noise*(random.Float64()-0.5)
		if i < n/5 {
			v = start * 2 * random.Float64()
		}
		all = append(all, sample{RSS: int64(v), Heap: int64(v), Goroutines: int64(v / mib), Files: int64(v / mib)})
	}
	return all
}

func TestTrend(t *testing.T) {
	for _, test := range []struct {
		name    string
		samples []sample
		flat    bool
	}{
		{"flat", growing(360, 50*mib, 0, 0), true},
		{"noisy", growing(360, 50*mib, 0, 20*mib), true},
		{"shrinking", growing(360, 50*mib, -mib/20, 5*mib), true},
		{"growing", growing(360, 50*mib, mib/10, 20*mib), false}, // 36 MiB in all
		{"few, growing", growing(fewest, 50*mib, 5*mib, 0), false},
		{"few, flat", growing(fewest, 50*mib, 0, 0), true},
	} {
		for _, r := range resources {
			x, err := r.trend(test.samples)
			if err != nil || x.Flat != test.flat {
				t.Errorf("%s: %+v, %v, want flat: %v", test.name, x, err, test.flat)
			}
		}
	}
	if _, err := resources[0].trend(growing(fewest-1, mib, 0, 0)); err == nil {
		t.Error("a trend of next to no samples")
	}
	x, _ := resources[0].trend(growing(100, 50*mib, mib, 0))
	if x.Early != 80 || x.Late != 50+90 || x.Most < 92 || x.Most > 92.01 {
		t.Errorf("%+v, want the medians of samples 20 to 39 and 80 to 99: 80 (the 31st) and 140, of 92 allowed", x)
	}
}

func TestNumber(t *testing.T) {
	text := []byte("# HELP go_goroutines Number.\ngo_goroutines_total 7\ngo_goroutines 31\nbytes 1.5e+07\nVmRSS:\t  1234 kB\nnothing\n")
	for name, want := range map[string]float64{"go_goroutines": 31, "bytes": 1.5e7, "VmRSS:": 1234} {
		if got, err := number(text, name); err != nil || got != want {
			t.Errorf("%s: %v, %v, want %v", name, got, err, want)
		}
	}
	for _, name := range []string{"VmHWM:", "nothing"} {
		if got, err := number(text, name); err == nil {
			t.Errorf("%s: %v, want an error", name, got)
		}
	}
}

// A long run has a short table, and all samples in its JSON.
func TestReport(t *testing.T) {
	r := report{Samples: growing(360, 50*mib, 0, 0), Trends: []trend{{Resource: "rss MiB", Early: 50, Late: 51, Most: 59, Flat: true}}}
	for i := range r.Samples {
		r.Samples[i].Seconds = float64(10 * (i + 1))
	}
	var out bytes.Buffer
	if err := r.print(&out); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if len(lines) > rows+10 {
		t.Errorf("%d lines", len(lines))
	}
	shown := strings.Join(strings.Fields(out.String()), " ")
	for _, want := range []string{" 10 46.1 46.1 46 46 ", " 3600 50.0 50.0 50 50 ", "rss MiB 50.0 51.0 59.0 true"} {
		if !strings.Contains(shown, want) {
			t.Errorf("no %q in\n%s", want, strings.Join(lines[:len(lines)-1], "\n"))
		}
	}
	var again report
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), &again); err != nil || len(again.Samples) != 360 {
		t.Errorf("the last line: %v, %d samples", err, len(again.Samples))
	}
}
