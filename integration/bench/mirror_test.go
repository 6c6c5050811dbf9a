package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"mirror/sidecar/config"
)

// What is measured as the mirror has the plugin on, because it is the default; and
// what is measured without it has none.
func TestMirrorConfig(t *testing.T) {
	j := job{benchCase: benchCase{Name: "few"}, alias: "run01", light: "light01", from: "127.0.0.1:1", to: "127.0.0.1:2"}
	for plugins, want := range map[string]int{"": 1, switchedOff: 0} {
		c, err := config.Parse("mirror.toml", []byte(mirrorConfig(j, 9464, plugins)), os.LookupEnv)
		if err != nil {
			t.Fatal(err)
		}
		if got := c.Flows[0].Plugins; len(got) != want || want > 0 && (got[0].Name != "offset-sync" || !got[0].BuiltIn()) {
			t.Errorf("plugins %+v, want %d", got, want)
		}
	}
}

// The mirror with the plugin and without, of transactions of ten, on brokers in the
// process: each run does what its name says.
func TestMirrorRuns(t *testing.T) {
	program := filepath.Join(t.TempDir(), "mirror")
	if out, err := exec.Command("go", "build", "-o", program, "mirror").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	l := &lab{options: options{limit: time.Minute, fake: true, absent: program}, mirror: program, source: fakeBroker(t), target: fakeBroker(t),
		dir: t.TempDir(), progress: t.Output()}
	c := benchCase{Name: "tens", Codec: "lz4", BatchBytes: 16 << 10, Partitions: 2, Busy: 2, Transaction: 10, Share: 1}
	data, err := l.fill(t.Context(), c, 105<<10)
	if err != nil {
		t.Fatal(err)
	}
	// 53 and 52 records: six transactions each, of a batch and a marker.
	if n, err := l.source.ends(t.Context(), c.Name, []int32{0, 1}); err != nil || n != 105+12 || data.Batches != 12 {
		t.Errorf("the partitions end at %d, %v, in %d batches, want 105 records and 12 markers in 12", n, err, data.Batches)
	}
	var runs []Run
	for _, s := range allSubjects {
		if strings.HasPrefix(s.name, mirrorName) {
			runs = append(runs, l.measure(t.Context(), c, data, s, 1))
		}
	}
	if len(runs) != 3 || runs[0].Error+runs[1].Error != "" || runs[0].SourceCPU.known() || runs[0].CPU.known() && !(runs[0].Settled >= runs[0].CPU) {
		t.Errorf("%+v", runs)
	}
	// This program has plugins, so it is not one without.
	if want := "something has written offset syncs"; len(runs) == 3 && !strings.Contains(runs[2].Error, want) {
		t.Errorf("%q, want %q", runs[2].Error, want)
	}
}
