package pipeline

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"mirror/sidecar/config"
)

// audit builds the example in Go, which writes a record for each range, and is a
// table that loads it.
func audit(t *testing.T, topic string, create bool) func(*config.Flow) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "audit.wasm")
	build := exec.Command("go", "build", "-buildmode=c-shared", "-o", path, "mirror/examples/plugins/go")
	build.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm", "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return func(f *config.Flow) {
		f.Plugins = []config.Plugin{{
			Name: "audit", Path: path, Failure: config.FailureHalt, Emit: config.Emit{Topics: []string{topic}, Create: create},
			Limits: config.Limits{Memory: 64 << 20, Call: time.Minute}, // the race detector's interpreter is slow
			Config: map[string]any{"topic": topic},
		}}
	}
}

func TestAPluginWritesRecords(t *testing.T) {
	l := newLab(t, audit(t, "audit-log", true))
	l.source.create("t", 1)
	l.source.write("t", 0, values("t", 0, 5)...)
	r := l.start()
	l.copied("t", 0, values("t", 0, 5)...)
	l.saved("t", 0, 4)
	r.stop()
	said := strings.Join(l.target.values("audit-log", 0), "")
	for _, part := range []string{`"topic":"t","target_topic":"A.t","partition":0,"first":0,`, `"last":4,`, `"target_last":4,`} {
		if !strings.Contains(said, part) {
			t.Errorf("the log has no %s: %s", part, said)
		}
	}
}

// What is mirrored nobody else may write to, and what cannot be written is asked for
// again: the position waits.
func TestAPluginMayNotWriteAmongMirroredRecords(t *testing.T) {
	l := newLab(t, audit(t, "A.t", false))
	l.source.create("t", 1)
	l.source.write("t", 0, values("t", 0, 5)...)
	r := l.start()
	l.copied("t", 0, values("t", 0, 5)...)
	eventually(t, "the refusal", func() string {
		if r.Status().Errors["plugin"] == 0 {
			return "nothing is counted"
		}
		return ""
	})
	if p := r.Status().Plugins[0]; !strings.Contains(p.Reason, `topic "A.t" holds mirrored records`) {
		t.Errorf("the plugin is %s: %s", p.State, p.Reason)
	}
	r.stop()
	if at := l.positionOf("t"); at != -1 {
		t.Errorf("the position is %d, want -1", at)
	}
	l.copied("t", 0, values("t", 0, 5)...)
}
