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

	"mirror/sidecar/status"
)

var update = flag.Bool("update", false, "write the golden file anew")

// report has one flow in every situation that changes which metrics there are.
func report() status.Report {
	return status.Report{
		Version: "v1.2.3", Ready: false, Reasons: []string{"primary->backup: orders/1 is stalled"},
		Flows: []status.Flow{{
			Name: "primary->backup", From: "primary", To: "backup", State: status.Running, Lanes: 2,
			MemoryInUse: 4096, MemoryLimit: 16 << 20, PositionsSave: time.UnixMilli(1_700_000_000_500),
			Topics: []status.Topic{{Source: "audit", Target: "primary.audit", Reason: "not authorized"}},
			Errors: map[string]uint64{status.ErrorProduce: 3},
			Partitions: []status.Partition{
				{Topic: "orders", Target: "primary.orders", Partition: 0, State: status.Running, StalledAt: -1,
					Position: 99, SourceEnd: 110, Lag: 10, Merging: true, Records: 100, Bytes: 5000,
					Batches: map[string]uint64{status.PathRaw: 7, status.PathMerged: 2}},
				{Topic: "orders", Target: "primary.orders", Partition: 1, State: status.Stalled, Reason: "refused",
					StalledAt: 41, Position: 40, Lost: 12, SourceEnd: 60, Lag: 19, Records: 41, Bytes: 900},
				{Topic: "orders", Target: "primary.orders", Partition: 2, State: status.Starting,
					StalledAt: -1, Position: -1, SourceEnd: -1},
			},
		}, {
			Name: "backup->primary", From: "backup", To: "primary", State: status.Starting, MemoryLimit: 16 << 20,
		}},
	}
}

// exposition is what a scrape of the collector sees, without the help texts
// and without the version of Go.
func exposition(t *testing.T) string {
	t.Helper()
	r := prometheus.NewPedanticRegistry()
	r.MustRegister(New(report))
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

func TestGolden(t *testing.T) {
	file := filepath.Join("testdata", "metrics.txt")
	got := exposition(t)
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
		t.Errorf("got\n%s\nwant (go test -update rewrites it)\n%s", got, want)
	}
}

func TestNamesFollowTheGuide(t *testing.T) {
	problems, err := testutil.CollectAndLint(New(report))
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		t.Errorf("%s: %s", p.Metric, p.Text)
	}
}

func TestRegistry(t *testing.T) {
	families, err := NewRegistry(report).Gather()
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
	c := New(func() status.Report { calls++; return report() })
	if testutil.CollectAndCount(c) == 0 || calls != 1 {
		t.Errorf("%d reports for one scrape", calls)
	}
}
