package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// logs is stderr of a running mirror, line by line.
type logs struct {
	mu    sync.Mutex
	text  bytes.Buffer
	wrote chan struct{} // holds one token after a write
}

func newLogs() *logs { return &logs{wrote: make(chan struct{}, 1)} }

func (l *logs) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	select {
	case l.wrote <- struct{}{}:
	default:
	}
	return l.text.Write(p)
}

func (l *logs) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// await gives the first record with a message, as soon as there is one.
func (l *logs) await(t *testing.T, message string) map[string]any {
	t.Helper()
	deadline := time.After(30 * time.Second)
	for {
		for line := range strings.Lines(l.String()) {
			var record map[string]any
			if err := json.Unmarshal([]byte(line), &record); err != nil {
				t.Fatalf("not a JSON log: %s", line)
			}
			if record["msg"] == message {
				return record
			}
		}
		select {
		case <-l.wrote:
		case <-deadline:
			t.Fatalf("no %q in\n%s", message, l)
		}
	}
}

const embeddedFlow = `
[admin]
listen = "127.0.0.1:0"
[clusters.primary]
bootstrap = ["embedded"]
[clusters.backup]
bootstrap = ["embedded"]
[[flows]]
from = "primary"
to = "backup"
`

func TestRunUntilSignal(t *testing.T) {
	for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT} {
		t.Run(sig.String(), func(t *testing.T) {
			// Should run have returned, the signal must not end the test.
			spare := make(chan os.Signal, 1)
			signal.Notify(spare, sig)
			defer signal.Stop(spare)

			var stdout bytes.Buffer
			stderr := newLogs()
			code := make(chan int, 1)
			go func() { code <- Main([]string{"mirror", "run", "-c", file(t, embeddedFlow)}, &stdout, stderr) }()
			address, _ := stderr.await(t, "admin server listens")["address"].(string)
			resp, err := http.Get("http://" + address + "/status")
			if err != nil {
				t.Fatal(err)
			}
			body, _ := io.ReadAll(resp.Body)
			resp.Body.Close()
			http.DefaultClient.CloseIdleConnections()
			if !strings.Contains(string(body), `"primary->backup"`) {
				t.Errorf("status: %s", body)
			}
			if err := syscall.Kill(os.Getpid(), sig); err != nil {
				t.Fatal(err)
			}
			if got := <-code; got != 0 || stdout.Len() > 0 {
				t.Errorf("exit code %d, stdout %q, stderr:\n%s", got, &stdout, stderr)
			}
			stderr.await(t, "mirror stopped")
		})
	}
}

// Without the admin server, until the context ends.
func TestRunUntilContextEnds(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	stderr := newLogs()
	code := make(chan int, 1)
	path := file(t, strings.Replace(embeddedFlow, "127.0.0.1:0", "", 1))
	go func() { code <- mainWith(ctx, []string{"mirror", "run", "-c", path}, io.Discard, stderr) }()
	stderr.await(t, "mirror starts")
	cancel()
	if got := <-code; got != 0 || strings.Contains(stderr.String(), "admin server") {
		t.Errorf("exit code %d, stderr:\n%s", got, stderr)
	}
}

func TestRunNeedsItsAdminAddress(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	path := file(t, strings.Replace(embeddedFlow, "127.0.0.1:0", taken.Addr().String(), 1))
	code, _, stderr := mirrorWith("run", "-c", path)
	if code != 1 || !strings.Contains(stderr, "admin.listen") {
		t.Errorf("exit code %d, stderr:\n%s", code, stderr)
	}
}

func TestSignals(t *testing.T) {
	quiet := slog.New(slog.DiscardHandler)
	failed := errors.New("failed")
	t.Run("none", func(t *testing.T) {
		err := untilSecond(t.Context(), nil, quiet, func(context.Context) error { return failed })
		if err != failed {
			t.Errorf("got %v", err)
		}
	})
	t.Run("first drains", func(t *testing.T) {
		signals := make(chan os.Signal, 1)
		signals <- syscall.SIGTERM
		err := untilSecond(t.Context(), signals, quiet, func(ctx context.Context) error {
			<-ctx.Done()
			return failed
		})
		if err != failed {
			t.Errorf("got %v", err)
		}
	})
	t.Run("second does not wait", func(t *testing.T) {
		signals := make(chan os.Signal, 2)
		signals <- syscall.SIGTERM
		signals <- syscall.SIGINT
		draining, ended := make(chan struct{}), make(chan struct{})
		err := untilSecond(t.Context(), signals, quiet, func(ctx context.Context) error {
			defer close(ended)
			<-draining
			return nil
		})
		if err != errInterrupted || report(err, io.Discard) != 130 {
			t.Errorf("got %v", err)
		}
		close(draining)
		<-ended
	})
}
