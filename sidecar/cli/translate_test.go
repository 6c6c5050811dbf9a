package cli

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"mirror/sidecar/status"
)

// translator is the table of a plugin that translates: the guest of the plugins' own
// tests.
func translator(t *testing.T) string {
	t.Helper()
	guest, err := filepath.Abs("../../plugins/testdata/groups.wasm")
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("[[flows.plugins]]\nname = 'offset-sync'\nenabled = false\n[[flows.plugins]]\nname = 'translator'\npath = '%s'\n"+
		"emit = { topics = ['frames'], create = true, offset_syncs = true, groups = true }\nlimits = { call = '1m' }\n", guest)
}

// A mirror between clusters in this process, whose plugin says that a group which is
// ahead goes on at the end of what is copied.
func TestGroupsOfARunningMirror(t *testing.T) {
	source, primary := fake(t, "primary", "")
	_, backup := fake(t, "backup", "")
	if err := source.CreateTopic("orders", 1, nil); err != nil {
		t.Fatal(err)
	}
	producer, err := kgo.NewClient(kgo.SeedBrokers(source.ListenAddrs()...))
	if err != nil {
		t.Fatal(err)
	}
	defer producer.Close()
	if err := producer.ProduceSync(t.Context(), &kgo.Record{Topic: "orders", Value: []byte("a")}, &kgo.Record{Topic: "orders", Value: []byte("b")}).FirstErr(); err != nil {
		t.Fatal(err)
	}
	var all kadm.Offsets
	all.Add(kadm.Offset{Topic: "orders", At: 10, LeaderEpoch: -1})
	if err := administrator(t, source).CommitAllOffsets(t.Context(), "orders-service", all); err != nil {
		t.Fatal(err)
	}
	path := file(t, "[admin]\nlisten = '"+freeAddress(t)+"'\n"+primary+backup+flow+"[flows.checkpoints]\ninterval = '10ms'\n"+translator(t))
	runMirror(t, path)

	var answer status.Translations
	ask := func() string {
		code, stdout, stderr := mirrorWith("translate", "orders-service", "-c", path, "-o", "json")
		answer = status.Translations{}
		if code != 0 {
			return stderr
		}
		if err := json.Unmarshal([]byte(stdout), &answer); err != nil {
			t.Fatal(err)
		}
		if p := answer.Groups[0].Partitions; len(p) != 1 || p[0].Offset != 2 || p[0].Checkpoint == nil || p[0].Checkpoint.Downstream != 2 {
			return stdout
		}
		return ""
	}
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.After(30 * time.Second); ; {
		said := ask()
		if said == "" {
			break
		}
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatal(said)
		}
	}
	p := answer.Groups[0].Partitions[0]
	if p.Topic != "orders" || p.Source != 10 || p.Outcome != status.OutcomeBound || p.Reason != status.InexactAhead || p.Committed != -1 || p.Would != status.SyncCommit || p.Run != nil { // this plugin does not say by which run
		t.Errorf("%+v", p)
	}
	for _, c := range []struct {
		args           []string
		code           int
		stdout, stderr string
	}{
		{[]string{"translate", "orders-service"}, 0, "group orders-service, flow primary->backup: 1 bound\n", ""},
		{[]string{"translate", "orders-service"}, 0, "ahead of what is copied  -    ", ""},
		{[]string{"translate", "orders-service", "--topic", "other"}, 0, "no offsets of mirrored partitions", ""},
		{[]string{"translate", "orders-service", "--flow", "primary->bakcup"}, 1, "", `there is no flow "primary->bakcup", did you mean "primary->backup"?`},
		{[]string{"translate", "nobody", "-o", "json"}, 1, "", `has no group "nobody"`},
		{[]string{"lag"}, 0, "groups: 1 bound; failing over now they would lose 0 and repeat 0 records\n", ""},
		{[]string{"lag", "-o", "json"}, 0, `"by": "checkpoint"`, ""},
	} {
		code, stdout, stderr := mirrorWith(append(c.args, "-c", path)...)
		if code != c.code || !strings.Contains(stdout, c.stdout) || !strings.Contains(stderr, c.stderr) || (c.stderr == "") != (stderr == "") {
			t.Errorf("%v: exit code %d\n%s%s", c.args, code, stdout, stderr)
		}
	}
}

// A mirror that follows no groups, or none that runs, is an error that says so.
func TestGroupsThatNobodyFollows(t *testing.T) {
	path := file(t, strings.Replace(embeddedFlow, "127.0.0.1:0", freeAddress(t), 1)+"[flows.checkpoints]\nenabled = false\n")
	for _, verb := range [][]string{{"translate", "g"}, {"lag"}} {
		if code, stdout, stderr := mirrorWith(append(verb, "-c", path)...); code != 1 || stdout != "" || !strings.Contains(stderr, "no mirror answers at 127.0.0.1:") {
			t.Errorf("%v: exit code %d\n%s%s", verb, code, stdout, stderr)
		}
	}
	runMirror(t, path)
	for _, verb := range [][]string{{"translate", "g"}, {"lag"}} {
		if code, stdout, stderr := mirrorWith(append(verb, "-c", path)...); code != 1 || stdout != "" || stderr != "mirror: flow primary->backup: checkpoints are off: switched off\n" {
			t.Errorf("%v: exit code %d\n%s%s", verb, code, stdout, stderr)
		}
	}
	another := httptest.NewServer(http.NotFoundHandler())
	defer another.Close()
	if code, _, stderr := mirrorWith("lag", "--address", strings.TrimPrefix(another.URL, "http://")); code != 1 || !strings.Contains(stderr, "404") {
		t.Errorf("exit code %d\n%s", code, stderr)
	}
}
