package main

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"testing"
	"testing/synctest"
	"time"
)

// A run of 1,000 records, 100 every 100 ms from 1 s on; the subject uses half a
// CPU, the source a quarter, the target all of one.
func steady(start time.Time) func(context.Context) (sample, error) {
	return func(context.Context) (sample, error) {
		used := time.Since(start)
		done := min(1000, max(0, int64(used-time.Second)/int64(time.Millisecond)/100*100))
		return sample{at: time.Now(), done: done, subject: used / 2, source: used / 4, target: used}, nil
	}
}

func TestFollow(t *testing.T) {
	for _, test := range []struct {
		name                  string
		total                 int64
		limit                 time.Duration
		err                   error
		first, mark, end      int64 // records at
		cpu, throughput, from Figure
	}{
		// 800 records, 0.8 GB, in 0.8 s.
		{"all", 1000, time.Hour, nil, 100, 200, 1000, 0.5, 1000, 1.1},
		// 600 records, 0.6 GB, in 0.65 s: the limit is between two arrivals.
		{"cut", 1000, 1850 * time.Millisecond, errLimit, 100, 200, 800, Figure(0.325 / 0.6), Figure(600 / 0.65), 1.1},
		// Less than a fifth: since the first record.
		{"cut early", 5000, 1350 * time.Millisecond, errLimit, 100, 100, 300, Figure(0.125 / 0.2), Figure(200 / 0.25), 1.1},
		{"nothing", 1000, 500 * time.Millisecond, errLimit, 0, 0, 0, noFigure, noFigure, noFigure},
	} {
		synctest.Test(t, func(t *testing.T) {
			start := time.Now()
			got, err := follow(t.Context(), start, test.total, test.limit, steady(start))
			if !errors.Is(err, test.err) {
				t.Fatalf("%s: %v", test.name, err)
			}
			if got.first.done != test.first || got.mark.done != test.mark || got.end.done != test.end {
				t.Errorf("%s: first at %d, mark at %d, end at %d", test.name, got.first.done, got.mark.done, got.end.done)
			}
			f := got.figures(test.total, test.total*1e6)
			near(t, test.name+", CPU", f.CPU, test.cpu)
			near(t, test.name+", source", f.SourceCPU, test.cpu/2)
			near(t, test.name+", target", f.TargetCPU, test.cpu*2)
			near(t, test.name+", throughput", f.Throughput, test.throughput)
			near(t, test.name+", first", f.First, test.from)
			near(t, test.name+", first CPU", f.FirstCPU, test.from/2)
		})
	}
}

func near(t *testing.T, what string, got, want Figure) {
	t.Helper()
	if got.known() != want.known() || math.Abs(float64(got-want)) > 1e-9*float64(want) {
		t.Errorf("%s: %v, want %v", what, got, want)
	}
}

func TestFollowFails(t *testing.T) {
	gone := errors.New("gone")
	if _, err := follow(t.Context(), time.Now(), 10, time.Hour, func(context.Context) (sample, error) {
		return sample{}, gone
	}); !errors.Is(err, gone) {
		t.Errorf("a look that fails: %v", err)
	}
	if _, err := follow(t.Context(), time.Now(), 10, time.Hour, func(context.Context) (sample, error) {
		return sample{at: time.Now(), done: 11}, nil
	}); err == nil {
		t.Error("more than all have arrived, and that is no error")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := follow(ctx, time.Now(), 10, time.Hour, func(context.Context) (sample, error) {
		return sample{at: time.Now(), done: 5}, nil
	}); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

func TestQuantile(t *testing.T) {
	var all []time.Duration
	for i := range 1000 {
		all = append(all, time.Duration(1000-i)*time.Millisecond)
	}
	for _, test := range []struct {
		of   []time.Duration
		q    float64
		want Figure
	}{{all, 0.5, 500}, {all, 0.99, 990}, {all, 1, 1000}, {all[:1], 0.5, 1000}, {all[:2], 0.5, 999}, {nil, 0.5, noFigure}} {
		near(t, "quantile", quantile(test.of, test.q), test.want)
	}
}

func TestFigureJSON(t *testing.T) {
	b, err := json.Marshal([]Figure{1.5, noFigure})
	if err != nil || string(b) != "[1.5,null]" {
		t.Errorf("%s, %v", b, err)
	}
}
