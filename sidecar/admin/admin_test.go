package admin

import (
	"context"
	"errors"
	"flag"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"mirror/sidecar/config"
	"mirror/sidecar/status"
)

var update = flag.Bool("update", false, "write the golden file anew")

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func report() status.Report {
	return status.Report{
		Version: "v1.2.3", Started: time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC), Ready: false,
		Reasons: []string{"primary->backup: orders/1 is stalled at offset 41"}, Warnings: []string{"look here"},
		Config: status.Config{
			File: "mirror.toml", Generation: 3, Loaded: time.Date(2026, 1, 31, 12, 0, 2, 0, time.UTC),
			NeedsRestart: []config.Change{{Key: "log.format", Line: 3, Old: `"auto"`, New: `"json"`}},
			Reloads:      map[string]uint64{status.ReloadApplied: 2, status.ReloadRefused: 1},
			Last: &status.Reload{
				At: time.Date(2026, 1, 31, 12, 0, 4, 0, time.UTC), Trigger: status.TriggerFile, Result: status.ReloadRefused, Generation: 3,
				Problems: []string{"mirror.toml:9: flows[0].lane: unknown key"},
			},
		},
		Flows: []status.Flow{{
			Name: "primary->backup", From: "primary", To: "backup", State: status.Running, Lanes: 2,
			MemoryInUse: 4096, MemoryLimit: 16 << 20, PositionsSave: time.Date(2026, 1, 31, 12, 0, 5, 0, time.UTC),
			Topics: []status.Topic{{Source: "audit", Target: "primary.audit", Reason: "not authorized"}},
			Errors: map[string]uint64{status.ErrorProduce: 3},
			Partitions: []status.Partition{{
				Topic: "orders", Target: "primary.orders", Partition: 1, Lane: 1, State: status.Stalled, Reason: "the target refuses a record",
				StalledAt: 41, Position: 40, Lost: 12, SourceEnd: 60, Lag: 19, Records: 41, Bytes: 900, Merging: true, Isolated: true,
				LagSeconds: 4.5, LastRecord: time.Date(2026, 1, 31, 12, 0, 1, 0, time.UTC), Repeats: 3,
				Batches: map[string]uint64{status.PathRaw: 7, status.PathMerged: 0, status.PathReencoded: 0, status.PathSkipped: 2},
				Paths: []status.Count{
					{Path: status.PathRaw, Batches: 7, Records: 41, Bytes: 900},
					{Path: status.PathSkipped, Reason: "control", Batches: 2, Records: 2, Bytes: 156},
				},
			}},
			Plugins: []status.Plugin{{
				Name: "offset-sync", Path: "offset-sync (built in)", SHA256: "9f86", Hooks: []string{"init", "on_commit"}, Generation: 2,
				State: "halted", Reason: "on_commit: trap (-100): unreachable", Halted: 1, Waiting: 5, Calls: map[string]uint64{"on_commit": 9},
				Seconds: map[string]float64{"on_commit": 0.25}, Failures: map[string]uint64{"trap": 1}, Emits: 4, Skipped: 3, Memory: 1 << 20,
				StateBytes: 5000, StateKeys: 12, StateRefused: 2, Series: []status.Series{{Name: "records", Counter: true, Value: 12}},
			}},
			Failover: status.Failover{
				Enabled: true, SyncGroups: true, Topic: "primary.checkpoints.internal", Problem: "group g cannot be read", Updated: time.Date(2026, 1, 31, 12, 0, 6, 0, time.UTC),
				Groups: map[string]int{status.OutcomeExact: 3, status.OutcomeBound: 1, status.OutcomeNone: 0}, Unreadable: 1,
				Offsets: map[string]int{status.OutcomeExact: 30, status.OutcomeBound: 2}, Inexact: map[string]int{status.InexactAhead: 2},
				Checkpoints: 32, Held: map[string]int{status.HeldActive: 4}, Written: 100, Deleted: 2, Committed: 50, Expired: 1, Crossed: 1,
				Refused: map[string]uint64{status.HeldJoined: 1},
			},
			Latency: status.Histogram{Count: 7, Sum: 0.25, Buckets: []status.Bucket{{Most: 0.001, Count: 0}, {Most: 0.002, Count: 7}}},
		}},
	}
}

// unasked is the reload of a server that nobody asks for one.
func unasked(context.Context) (status.Reload, error) { panic("a reload") }

// serve runs a server over source until the test ends.
func serve(t *testing.T, source func() status.Report) (url string) {
	t.Helper()
	return serveWith(t, source, unasked)
}

func serveWith(t *testing.T, source func() status.Report, reload Reload) (url string) {
	t.Helper()
	return serveAnswers(t, Answers{Status: source, Reload: reload, Translate: untranslated, Lag: unlagged})
}

func serveAnswers(t *testing.T, answers Answers) (url string) {
	t.Helper()
	s, err := Listen(config.Admin{Listen: "127.0.0.1:0"}, answers, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	t.Cleanup(func() {
		http.DefaultClient.CloseIdleConnections()
		stop()
		if err := <-done; err != nil {
			t.Errorf("Run: %v", err)
		}
	})
	return "http://" + s.Addr()
}

func get(t *testing.T, url string) (code int, body string) {
	t.Helper()
	resp, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(b)
}

func TestEndpoints(t *testing.T) {
	url := serve(t, report)
	for _, c := range []struct {
		path string
		code int
		want string
	}{
		{"/", 200, endpoints},
		{"/healthz", 200, "ok\n"},
		{"/readyz", 503, "{\n  \"ready\": false,\n  \"reasons\": [\n    \"primary->backup: orders/1 is stalled at offset 41\"\n  ],\n  \"warnings\": [\n    \"look here\"\n  ]\n}\n"},
		{"/stats", 404, "there is no /stats here; what there is:\n\n" + endpoints},
	} {
		if code, body := get(t, url+c.path); code != c.code || body != c.want {
			t.Errorf("%s: %d %q, want %d %q", c.path, code, body, c.code, c.want)
		}
	}
	code, body := get(t, url+"/metrics")
	for _, want := range []string{"mirror_partition_stalled_offset{", "process_cpu_seconds_total ", "go_goroutines "} {
		if code != 200 || !strings.Contains(body, "\n"+want) {
			t.Errorf("/metrics: %d, no %s", code, want)
		}
	}
}

func TestReady(t *testing.T) {
	url := serve(t, func() status.Report { return status.Report{Ready: true} })
	if code, body := get(t, url+"/readyz"); code != 200 || body != "{\n  \"ready\": true,\n  \"reasons\": [],\n  \"warnings\": []\n}\n" {
		t.Errorf("%d %q", code, body)
	}
}

// The JSON of /status is a contract.
func TestStatusGolden(t *testing.T) {
	golden(t, serve(t, report)+"/status", "status.json")
}

// golden compares an answer in JSON with a file of testdata.
func golden(t *testing.T, url, name string) {
	t.Helper()
	req, err := http.NewRequest(http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Accept", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	code, got := resp.StatusCode, string(body)
	file := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if code != 200 || got != string(want) {
		t.Errorf("%d, got\n%s\nwant (go test -update rewrites it)\n%s", code, got, want)
	}
}

func TestStatusHasNoNullLists(t *testing.T) {
	_, body := get(t, serve(t, func() status.Report { return status.Report{Flows: []status.Flow{{}}} })+"/status")
	for _, list := range []string{"reasons", "warnings", "needs_restart", "topics", "partitions"} {
		if !strings.Contains(body, `"`+list+`": []`) {
			t.Errorf("%s is not an empty list in %s", list, body)
		}
	}
	_, body = get(t, serve(t, func() status.Report { return status.Report{} })+"/status")
	if !strings.Contains(body, `"flows": []`) {
		t.Errorf("flows is not an empty list in %s", body)
	}
}

func TestOnlyAReloadCanBeAskedFor(t *testing.T) {
	url := serve(t, report)
	for _, path := range []string{"/", "/healthz", "/status", "/metrics", "/other", "/-/other"} {
		resp, err := http.Post(url+path, "", nil)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != http.StatusMethodNotAllowed {
			t.Errorf("POST %s: %d", path, resp.StatusCode)
		}
	}
}

func TestAddressInUse(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	address := taken.Addr().String()
	_, err = Listen(config.Admin{Listen: address}, Answers{Status: report, Reload: unasked}, slog.New(slog.DiscardHandler))
	if err == nil || !strings.HasPrefix(err.Error(), "admin.listen: ") || !strings.Contains(err.Error(), address) ||
		!strings.Contains(err.Error(), "Choose another port") {
		t.Error(err)
	}
	if _, err = Listen(config.Admin{Listen: "127.0.0.1:http-alt-x"}, Answers{Status: report, Reload: unasked}, slog.New(slog.DiscardHandler)); err == nil ||
		!strings.HasPrefix(err.Error(), `admin.listen = "127.0.0.1:http-alt-x": `) {
		t.Error(err)
	}
}

// A request that is being answered when the server is told to stop is answered.
func TestStopFinishesRequests(t *testing.T) {
	asked, answer := make(chan struct{}), make(chan struct{})
	s, err := Listen(config.Admin{Listen: "127.0.0.1:0"}, Answers{Status: func() status.Report {
		close(asked)
		<-answer
		return status.Report{Ready: true}
	}}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	code := make(chan int, 1)
	go func() {
		resp, err := http.Get("http://" + s.Addr() + "/readyz")
		if err != nil {
			code <- 0
			return
		}
		resp.Body.Close()
		code <- resp.StatusCode
	}()
	<-asked
	stop()
	waitClosed(t, s.Addr())
	close(answer)
	if c := <-code; c != 200 {
		t.Errorf("answered %d", c)
	}
	http.DefaultClient.CloseIdleConnections()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func waitClosed(t *testing.T, address string) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); ; {
		conn, err := net.Dial("tcp", address)
		if err != nil {
			return
		}
		conn.Close()
		if time.Now().After(deadline) {
			t.Fatal("still listening")
		}
	}
}

func TestRunTellsWhyItEnded(t *testing.T) {
	s, err := Listen(config.Admin{Listen: "127.0.0.1:0"}, Answers{Status: report, Reload: unasked}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	s.Close()
	if err := s.Run(t.Context()); !errors.Is(err, net.ErrClosed) {
		t.Error(err)
	}
}
