package reload

import (
	"context"
	"crypto/sha256"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"mirror/sidecar/status"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// lab is a reloader whose reloads are kept, with what they read.
type lab struct {
	*testing.T
	*Reloader
	signals chan os.Signal
	done    chan reloaded
	stop    func()

	mu    sync.Mutex
	files map[string][sha256.Size]byte
}

type reloaded struct{ trigger, text string }

// start runs a reloader of a file, which was read with its content of now, and
// waits until it watches.
func start(t *testing.T, change func(*Reloader), file string) *lab {
	t.Helper()
	l := launch(t, change, file)
	if _, err := l.Request(t.Context()); err != nil {
		t.Fatal(err)
	}
	<-l.done
	return l
}

// launch is start that does not wait.
func launch(t *testing.T, change func(*Reloader), file string) *lab {
	t.Helper()
	l := &lab{T: t, signals: make(chan os.Signal, 1), done: make(chan reloaded, 100)}
	digest, _ := Digest(file)
	l.watches(map[string][sha256.Size]byte{file: digest})
	l.Reloader = New(Options{
		Do: func(_ context.Context, trigger string) status.Reload {
			text, _ := os.ReadFile(file)
			l.done <- reloaded{trigger, string(text)}
			return status.Reload{Trigger: trigger, Problems: []string{string(text)}}
		},
		Files: func() map[string][sha256.Size]byte {
			l.mu.Lock()
			defer l.mu.Unlock()
			return l.files
		},
		Signals: l.signals,
		Log:     slog.New(slog.DiscardHandler),
	})
	l.settle, l.poll = 20*time.Millisecond, time.Hour
	if change != nil {
		change(l.Reloader)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ran := make(chan struct{})
	go func() { l.Reloader.Run(ctx); close(ran) }()
	l.stop = func() { cancel(); <-ran }
	t.Cleanup(l.stop)
	return l
}

// watches sets the files, from the next reload on.
func (l *lab) watches(files map[string][sha256.Size]byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.files = files
}

// reloads waits for a reload and checks it.
func (l *lab) reloads(trigger, text string) {
	l.Helper()
	select {
	case got := <-l.done:
		if got != (reloaded{trigger, text}) {
			l.Errorf("got %+v, want %q by %s", got, text, trigger)
		}
	case <-time.After(30 * time.Second):
		l.Fatalf("no reload of %q", text)
	}
}

// quiet checks that nothing is reloaded but by a request, which comes after
// whatever has been noticed: it is answered by the loop that reloads.
func (l *lab) quiet(text string) {
	l.Helper()
	for range 3 { // the loop is alive, and looks have had their time
		timer := time.NewTimer(2 * l.settle)
		select {
		case got := <-l.done:
			l.Fatalf("%+v is reloaded, though nothing has changed", got)
		case <-timer.C:
		}
	}
	if got, err := l.Request(l.Context()); err != nil || got.Problems[0] != text {
		l.Errorf("a request reads %q, %v, want %q", got.Problems, err, text)
	}
	l.reloads(status.TriggerRequest, text)
}

func write(t testing.TB, file, text string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// configFile is a file with the text in a folder of its own.
func configFile(t testing.TB, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "mirror.toml")
	write(t, file, text)
	return file
}
