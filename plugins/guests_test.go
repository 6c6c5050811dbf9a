package plugins

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"mirror/abi"
)

// goGuest builds a plugin in Go with the SDK, once.
var goGuest = sync.OnceValues(func() ([]byte, error) {
	dir, err := os.MkdirTemp("", "guest")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	file := filepath.Join(dir, "guest.wasm")
	cmd := exec.Command("go", "build", "-buildmode=c-shared", "-ldflags=-s -w", "-trimpath", "-o", file, "./testdata/goguest")
	cmd.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm", "CGO_ENABLED=0", "GOFLAGS=")
	if out, err := cmd.CombinedOutput(); err != nil {
		return out, err
	}
	return os.ReadFile(file)
})

func goSpec(t testing.TB, mode string) Spec {
	t.Helper()
	b, err := goGuest()
	if err != nil {
		t.Fatalf("%v\n%s", err, b)
	}
	bin, err := Embedded("goguest", b)
	if err != nil {
		t.Fatal(err)
	}
	return Spec{Name: "p", Binary: bin, Config: map[string]any{"in": map[string]any{"key": "value"}, "mode": mode},
		Emit: Allow{Topics: []string{"frames"}, OffsetSyncs: true}, Limits: Limits{Call: 20 * time.Second}, Tick: time.Hour}
}

// A plugin that is written with the Go SDK hears and says what it should.
func TestGoGuest(t *testing.T) {
	b := newBench(t, goSpec(t, ""))
	b.assign(0)
	b.ack(0, copied(10, 19), empty(20, 20), copied(21, 22))
	b.round(true)
	var syncs []string
	for _, e := range b.emits["p"] {
		if e.Kind == abi.EmitOffsetSync {
			syncs = append(syncs, describeSync(e))
		}
	}
	if got := strings.Join(syncs, " "); got != "t/0:19→119 t/0:22→122" {
		t.Errorf("offset syncs %s", got)
	}
	b.told("p", "on_partitions t/0=1@9")
	b.soon(true)
	b.swap(goSpec(t, ""))
	for _, want := range []string{"msg=tick", "level=WARN msg=restored"} {
		if !strings.Contains(b.log(), want) {
			t.Errorf("no %q in\n%s", want, b.log())
		}
	}
	b.ack(0, copied(23, 25))
	b.frames(t, "p")
	b.Notify(Event{Key: key(0), Kind: abi.Revoked})
	b.round(true)
	if _, why := b.Halted(key(0)); why == nil || !strings.Contains(why.Error(), "fatal (-1): an unexpected partition: t") {
		t.Errorf("%v", why)
	}
	if m := b.gen.Metrics(); len(m) != 1 || m[0].Value != 3 || m[0].Labels[0] != (Label{"kind", "commit"}) {
		t.Errorf("%+v", m)
	}
}

// Its state is counted on, whether its values are small or large.
func TestGoGuestState(t *testing.T) {
	s := newLogStore()
	b := newStateBench(t, s, goSpec(t, "state"))
	b.assign(0)
	for i := range int64(3) {
		b.ack(0, copied(10+50*i, 59+50*i))
		b.round(true)
	}
	b.safe(0, 159)
	got := map[string]int{}
	for key, value := range s.reload().Take(key(0)).Pairs() {
		got[string(key)] = len(value)
	}
	if len(got) != 2 || got["records"] != 150 || got["times-3"] != 0 {
		t.Errorf("the state is %v\n%s", got, b.log())
	}
}

func TestGoGuestFails(t *testing.T) {
	for mode, want := range map[string]string{
		"panic": "fatal (-1): panic: at the disco", "index": "fatal (-1): panic: runtime error: index out of range", "error": "fatal (-1): out of luck",
	} {
		b := newBench(t, goSpec(t, mode))
		b.assign(0)
		b.ack(0, copied(10, 19))
		b.round(true)
		if _, why := b.Halted(key(0)); why == nil || !strings.Contains(why.Error(), want) {
			t.Errorf("%s: %v, want %q", mode, why, want)
		}
	}
	b := newBench(t, goSpec(t, "retry"))
	b.assign(0)
	b.ack(0, copied(10, 19))
	b.round(true)
	b.safe(0, 9)
	b.soon(true)
	b.soon(true)
	b.safe(0, 19)
	s := goSpec(t, "")
	s.Config = nil
	g := load(t, newRecord(), s)
	defer g.Close()
	if _, err := g.Instantiate(t.Context(), 0); err == nil || !strings.Contains(err.Error(), "bad input (-4): in.key is not value in a->b") {
		t.Errorf("%v", err)
	}
}

// What a Go guest drops is collected: its memory does not grow with the calls.
func TestGoGuestMemory(t *testing.T) {
	if interpreted {
		t.Skip("without the race detector this takes a second")
	}
	b := newBench(t, goSpec(t, "leak"))
	b.assign(0)
	sizes := map[uint32]bool{}
	const calls = 400 // a megabyte each
	for i := range int64(calls) {
		b.ack(0, copied(10+10*i, 19+10*i))
		b.round(true)
		if i > calls/2 {
			sizes[b.status("p").Memory] = true
		}
	}
	if s := b.status("p"); s.State != Running || s.Memory > 32<<20 || len(sizes) > 2 {
		t.Errorf("%+v, sizes of the second half %v", s, sizes)
	}
}

func describeSync(e Emit) string {
	return fmt.Sprintf("%s/%d:%d→%d", e.About.Topic, e.About.Partition, e.Upstream, e.Downstream)
}
