package metrics

import (
	"flag"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"mirror/sidecar/config"
	"mirror/sidecar/status"
)

var update = flag.Bool("update", false, "write the golden file anew")

// report has one flow in every situation that changes which metrics there are.
func report() status.Report {
	return status.Report{
		Version: "v1.2.3", Ready: false, Reasons: []string{"primary->backup: orders/1 is stalled"},
		Config: status.Config{
			Generation: 4, Loaded: time.UnixMilli(1_700_000_000_250), Reloads: map[string]uint64{status.ReloadApplied: 3, status.ReloadRefused: 2},
			NeedsRestart: []config.Change{{Key: "admin.listen"}}, Last: &status.Reload{Result: status.ReloadRefused},
		},
		Flows: []status.Flow{{
			Name: "primary->backup", From: "primary", To: "backup", State: status.Running, Lanes: 2,
			MemoryInUse: 4096, MemoryLimit: 16 << 20, PositionsSave: time.UnixMilli(1_700_000_000_500),
			Topics: []status.Topic{{Source: "audit", Target: "primary.audit", Reason: "not authorized"}},
			Errors: map[string]uint64{status.ErrorProduce: 3},
			Plugins: []status.Plugin{{
				Name: "offset-sync", SHA256: "9f86", Generation: 2, State: "retrying", Halted: 1, Waiting: 5, Calls: map[string]uint64{"on_commit": 9},
				Seconds: map[string]float64{"on_commit": 0.25}, Failures: map[string]uint64{"trap": 1}, Emits: 4, Skipped: 3, Memory: 1 << 20, StateBytes: 5000, StateKeys: 12, StateRefused: 2,
				Series: []status.Series{{Name: "records", Counter: true, Value: 12}, {Name: `depth{of="it"}`, Lane: 1, Value: -3}},
			}},
			Failover: status.Failover{
				Enabled: true, Updated: time.UnixMilli(1_700_000_000_750), Groups: map[string]int{status.OutcomeExact: 3, status.OutcomeBound: 1}, Unreadable: 1,
				Offsets: map[string]int{status.OutcomeExact: 30, status.OutcomeBound: 2}, Inexact: map[string]int{status.InexactAhead: 2},
				Checkpoints: 32, Held: map[string]int{status.HeldActive: 4}, Written: 100, Deleted: 2, Committed: 50, Expired: 5, Crossed: 1,
				Refused: map[string]uint64{status.HeldJoined: 6},
			},
			Latency: status.Histogram{Count: 9, Sum: 4.5,
				Buckets: []status.Bucket{{Most: 0.001, Count: 1}, {Most: 0.5, Count: 8}}},
			Partitions: []status.Partition{
				{Topic: "orders", Target: "primary.orders", Partition: 0, State: status.Running, StalledAt: -1,
					Position: 99, SourceEnd: 110, Lag: 10, LagSeconds: 1.5, LastRecord: time.UnixMilli(1_700_000_000_250),
					Merging: true, Isolated: true, Paths: []status.Count{
						{Path: status.PathRaw, Batches: 7, Records: 70, Bytes: 4000},
						{Path: status.PathMerged, Batches: 2, Records: 30, Bytes: 1000},
						{Path: status.PathSkipped, Reason: "control", Batches: 4, Records: 4, Bytes: 312},
					}},
				{Topic: "orders", Target: "primary.orders", Partition: 1, State: status.Stalled, Reason: "refused",
					StalledAt: 41, Position: 40, Lost: 12, Repeats: 3, SourceEnd: 60, Lag: 19, LagSeconds: 30,
					LastRecord: time.UnixMilli(1_700_000_000_125), Paths: []status.Count{
						{Path: status.PathReencoded, Reason: "holes", Batches: 5, Records: 41, Bytes: 900},
						{Path: status.PathSkipped, Reason: "control", Batches: 1, Records: 1, Bytes: 78},
						{Path: status.PathSkipped, Reason: status.ReasonStored, Records: 9},
					}},
				{Topic: "payments", Target: "primary.payments", Partition: 0, State: status.Starting,
					StalledAt: -1, Position: -1, SourceEnd: -1},
			},
		}, {
			Name: "backup->primary", From: "backup", To: "primary", State: status.Starting, MemoryLimit: 16 << 20,
		}},
	}
}

// exposition is what a scrape of the collector sees, without the help texts
// and without the version of Go.
func exposition(t *testing.T, granularity string) string {
	t.Helper()
	r := prometheus.NewPedanticRegistry()
	r.MustRegister(New(report, granularity))
	w := httptest.NewRecorder()
	promhttp.HandlerFor(r, promhttp.HandlerOpts{}).ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	if w.Code != http.StatusOK {
		t.Fatal(w.Body)
	}
	lines := slices.DeleteFunc(strings.SplitAfter(w.Body.String(), "\n"), func(line string) bool {
		return strings.HasPrefix(line, "# HELP") || strings.Contains(line, "goversion")
	})
	return strings.Join(lines, "")
}

var granularities = []string{config.ByPartition, config.ByTopic, config.ByFlow}

func TestGolden(t *testing.T) {
	for _, granularity := range granularities {
		file := filepath.Join("testdata", granularity+".txt")
		got := exposition(t, granularity)
		if *update {
			if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if got != string(want) {
			t.Errorf("by %s: got\n%s\nwant (go test -update rewrites it)\n%s", granularity, got, want)
		}
	}
}

func TestNamesFollowTheGuide(t *testing.T) {
	for _, granularity := range granularities {
		problems, err := testutil.CollectAndLint(New(report, granularity))
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range problems {
			t.Errorf("%s: %s", p.Metric, p.Text)
		}
	}
}

func TestRegistry(t *testing.T) {
	families, err := NewRegistry(report, "").Gather()
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, f := range families {
		names = append(names, f.GetName())
	}
	for _, want := range []string{"mirror_build_info", "mirror_records_total", "go_goroutines", "process_cpu_seconds_total"} {
		if !slices.Contains(names, want) {
			t.Errorf("no %s", want)
		}
	}
}

// One report a scrape: numbers of two moments must not be mixed.
func TestOneReportAScrape(t *testing.T) {
	calls := 0
	c := New(func() status.Report { calls++; return report() }, "")
	if testutil.CollectAndCount(c) == 0 || calls != 1 {
		t.Errorf("%d reports for one scrape", calls)
	}
}
