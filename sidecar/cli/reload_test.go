package cli

import (
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"mirror/sidecar/status"
)

// runMirror runs the config file until the test ends, and gives its admin address.
func runMirror(t *testing.T, path string) (address string, stderr *logs) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	stderr = newLogs()
	code := make(chan int, 1)
	go func() { code <- mainWith(ctx, []string{"mirror", "run", "-c", path}, io.Discard, stderr) }()
	t.Cleanup(func() {
		cancel()
		if got := <-code; got != 0 {
			t.Errorf("run: exit code %d\n%s", got, stderr)
		}
		http.DefaultClient.CloseIdleConnections()
	})
	address, _ = stderr.await(t, "admin server listens")["address"].(string)
	stderr.await(t, "mirror starts")
	return address, stderr
}

func change(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// freeAddress is a loopback address that nobody listens on.
func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

func TestReloadOfARunningMirror(t *testing.T) {
	text := strings.Replace(embeddedFlow, "127.0.0.1:0", freeAddress(t), 1)
	path := file(t, text)
	address, _ := runMirror(t, path)

	code, stdout, stderr := mirrorWith("reload", "-c", path)
	if code != 0 || stdout != "nothing to do: what runs is what the file says\nconfig generation 1\n" || stderr != "" {
		t.Errorf("unchanged: exit code %d, stdout %q, stderr %q", code, stdout, stderr)
	}
	change(t, path, text+"grace = '5s'\nlanes = 3\n")
	code, stdout, stderr = mirrorWith("reload", "-c", path)
	want := "applied:\n  flows[0].grace (primary->backup): \"30s\" → \"5s\"\nneeds a restart, not in force:\n  flows[0].lanes (primary->backup): 0 → 3\nconfig generation 2\n"
	if code != 0 || stdout != want || stderr != "" {
		t.Errorf("exit code %d, stdout\n%s\nwant\n%s\nstderr %q", code, stdout, want, stderr)
	}

	change(t, path, text+"grace = 5\nlane = 3\n")
	code, stdout, stderr = mirrorWith("reload", "-c", path) // the address can be read all the same
	for _, want := range []string{"mirror: refused, nothing has changed:\n", "mirror.toml:11: flows[0].grace: must be", "mirror.toml:12: flows[0].lane: unknown key", "config generation 2\n"} {
		if code != 1 || stdout != "" || !strings.Contains(stderr, want) {
			t.Errorf("exit code %d, stdout %q, no %q in stderr:\n%s", code, stdout, want, stderr)
		}
	}
	code, stdout, stderr = mirrorWith("reload", "--address", address, "-o", "json")
	var answer status.Reload
	if err := json.Unmarshal([]byte(stdout), &answer); err != nil || code != 1 || len(answer.Problems) != 2 || answer.Result != status.ReloadRefused ||
		answer.Trigger != status.TriggerRequest || !strings.Contains(stderr, "refused") {
		t.Errorf("exit code %d, %v, stdout\n%s\nstderr %q", code, err, stdout, stderr)
	}
	change(t, path, text)
	code, stdout, _ = mirrorWith("reload", "--address", address, "-o", "json")
	if err := json.Unmarshal([]byte(stdout), &answer); err != nil || code != 0 || answer.Result != status.ReloadApplied {
		t.Errorf("exit code %d, %v, stdout\n%s", code, err, stdout)
	}
}

func TestTheFileAndSIGHUPReload(t *testing.T) {
	path := file(t, embeddedFlow)
	_, stderr := runMirror(t, path)
	change(t, path, embeddedFlow+"grace = 'x'\n")
	if r := stderr.await(t, "the config is refused, nothing has changed"); r["trigger"] != "file" || !strings.Contains(r["err"].(string), "flows[0].grace") {
		t.Errorf("%v", r)
	}
	change(t, path, embeddedFlow+"grace = '5s'\n[log]\nlevel = 'debug'\n")
	if r := stderr.await(t, "the config is reloaded"); r["trigger"] != "file" || r["applied"] != 2.0 {
		t.Errorf("%v", r)
	}
	if err := os.Remove(path); err != nil { // which is no change, but cannot be read
		t.Fatal(err)
	}
	if err := syscall.Kill(os.Getpid(), syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	deadline := time.After(30 * time.Second)
	for !strings.Contains(stderr.String(), `"trigger":"signal"`) {
		select {
		case <-stderr.wrote:
		case <-deadline:
			t.Fatalf("nothing by a signal in\n%s", stderr)
		}
	}
	change(t, path, embeddedFlow)
	for !strings.Contains(stderr.String(), `"generation":3`) {
		select {
		case <-stderr.wrote:
		case <-deadline:
			t.Fatalf("no third config in\n%s", stderr)
		}
	}
}

func TestReloadFindsNoMirror(t *testing.T) {
	nobody := freeAddress(t)
	with := func(listen string) string { return file(t, strings.Replace(embeddedFlow, "127.0.0.1:0", listen, 1)) }
	stopping := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "the mirror is stopping", http.StatusServiceUnavailable)
	}))
	defer stopping.Close()
	for _, c := range []struct {
		args   []string
		code   int
		stderr string
	}{
		{[]string{"-c", with(nobody)}, 1, "no mirror answers at " + nobody},
		{[]string{"--address", nobody}, 1, "connection refused"},
		{[]string{"-c", with("")}, 1, "switches the admin server off: send SIGHUP"},
		{[]string{"-c", with("127.0.0.1:0")}, 1, "give --address"},
		{[]string{"-c", with("nonsense")}, 1, "admin.listen: must be host:port"},
		{[]string{"-c", file(t, "[admin\n")}, 1, "not TOML"},
		{[]string{"-c", "/nowhere/mirror.toml"}, 1, "/nowhere/mirror.toml: no such file"},
		{[]string{"--address", strings.TrimPrefix(stopping.URL, "http://")}, 1, "503 Service Unavailable: the mirror is stopping"},
		{[]string{"--address", "9464"}, 64, "is not host:port"},
		{[]string{"--address", ":9464"}, 64, "is not host:port"},
		{[]string{"--address", "h:0"}, 64, "is not host:port"},
		{[]string{"--address", ""}, 64, "is not host:port"},
		{[]string{"-o", "xml"}, 64, `no output "xml"`},
		{[]string{"now"}, 64, `takes no argument "now"`},
	} {
		code, stdout, stderr := mirrorWith(append([]string{"reload"}, c.args...)...)
		if code != c.code || stdout != "" || !strings.Contains(stderr, c.stderr) {
			t.Errorf("%v: exit code %d, want %d, stdout %q, stderr:\n%s", c.args, code, c.code, stdout, stderr)
		}
	}
}
