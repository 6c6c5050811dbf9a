package cli

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// mirrorWith runs a command line.
func mirrorWith(args ...string) (code int, stdout, stderr string) {
	var out, errs bytes.Buffer
	code = Main(append([]string{"mirror"}, args...), &out, &errs)
	return code, out.String(), errs.String()
}

// file writes a file of the test's own and gives its path.
func file(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "mirror.toml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

const twoClusters = `
[clusters.primary]
bootstrap = ["127.0.0.1:1"]
[clusters.backup]
bootstrap = ["127.0.0.1:2"]
[[flows]]
from = "primary"
to = "backup"
`

func TestCommandLines(t *testing.T) {
	good, bad := file(t, twoClusters), file(t, twoClusters+"lane = 2\n")
	for _, c := range []struct {
		args           string
		code           int
		stdout, stderr string // parts of them; "": nothing at all
	}{
		{"", 64, "", "which verb? There is run, reload, "},
		{"vadilate", 64, "", `no verb "vadilate", did you mean "validate"?`},
		{"-c x run", 64, "", "flag -c before a verb"},
		{"--help", 0, "Exit codes: 0 ok, 1 failed, 64 wrong usage, 130", ""},
		{"help", 0, "COMMANDS:", ""},
		{"help run", 0, "mirror run -c mirror.toml", ""},
		{"help nothing", 64, "", `no verb "nothing"`},
		{"run --help", 0, "SIGTERM", ""},
		{"run help", 64, "", `takes no argument "help"`},
		{"validate -h", 0, "mirror validate -c mirror.toml --connect", ""},
		{"demo --for -1s", 64, "", "--for -1s is negative"},
		{"version --help", 0, "mirror version -o json", ""},
		{"run --confg x", 64, "", `mirror run has no flag --confg, did you mean "config"?`},
		{"run -c", 64, "", "the flag -c needs a value"},
		{"run x", 64, "", `mirror run takes no argument "x"`},
		{"run -c /nowhere/mirror.toml", 1, "", "/nowhere/mirror.toml: no such file"},
		{"run -c BAD", 1, "", `mirror.toml:9: flows[0].lane: unknown key, did you mean "lanes"?`},
		{"validate -c GOOD", 0, "flow primary->backup: ok\n", ""},
		{"validate --config=GOOD", 0, "flow primary->backup: ok\n", ""},
		{"validate --config GOOD --", 0, "flow primary->backup: ok\n", ""},
		{"validate x -c GOOD", 64, "", `takes no argument "x"`},
		{"validate -- -c GOOD", 64, "", `takes no argument "-c"`},
		{"validate - -c GOOD", 64, "", `takes no argument "-"`},
		{"validate -c GOOD --connect=maybe", 64, "", "maybe"},
		{"validate -c GOOD --timeout soon", 64, "", "soon"},
		{"validate -c GOOD --timeout 0s", 64, "", "more than 0"},
		{"validate -c BAD", 1, "", `mirror.toml:9: flows[0].lane: unknown key`},
		{"translate -c GOOD", 64, "", "want one GROUP"},
		{"translate a b -c GOOD", 64, "", "want one GROUP"},
		{"translate --help", 0, "mirror translate orders-service --topic orders", ""},
		{"translate g --tpoic x -c GOOD", 64, "", `mirror translate has no flag --tpoic, did you mean "topic"?`},
		{"translate g -c GOOD -o jsn", 64, "", `no output "jsn", did you mean "json"?`},
		{"lag x -c GOOD", 64, "", `mirror lag takes no argument "x"`},
		{"lag --help", 0, "mirror lag --flow 'primary->backup'", ""},
		{"plugin inspect offset-sync", 0, "mirror_on_commit", ""},
		{"plugin inspect", 64, "", "want one FILE"},
		{"plugin inspect --outptu json x", 64, "", `mirror plugin inspect has no flag --outptu, did you mean "output"?`},
		{"plugin inspect GOOD", 1, "", "mirror.toml"},
		{"plugin inpsect x", 64, "", "there is inspect"},
		{"version", 0, "mirror ", ""},
		{"version -o jsn", 64, "", `no output "jsn", did you mean "json"?`},
	} {
		t.Run(c.args, func(t *testing.T) {
			args := strings.Fields(strings.NewReplacer("GOOD", good, "BAD", bad).Replace(c.args))
			code, stdout, stderr := mirrorWith(args...)
			if code != c.code || !strings.Contains(stdout, c.stdout) || !strings.Contains(stderr, c.stderr) {
				t.Errorf("exit code %d, want %d\nstdout:\n%s\nstderr:\n%s", code, c.code, stdout, stderr)
			}
			if c.stdout == "" && stdout != "" || c.stderr == "" && stderr != "" {
				t.Errorf("wrote to the wrong side\nstdout:\n%s\nstderr:\n%s", stdout, stderr)
			}
		})
	}
}

// Every verb's help has examples of that verb.
func TestHelpHasExamples(t *testing.T) {
	for _, verb := range commands() {
		code, stdout, _ := mirrorWith(verb.Name, "--help")
		if code != 0 || !strings.Contains(stdout, "Examples:\n") || !strings.Contains(stdout, "   mirror "+verb.Name) {
			t.Errorf("help of %s:\n%s", verb.Name, stdout)
		}
	}
}

func TestVersionInJSON(t *testing.T) {
	code, stdout, stderr := mirrorWith("version", "-o", "json")
	var got map[string]any
	if err := json.Unmarshal([]byte(stdout), &got); err != nil || code != 0 {
		t.Fatalf("%d: %v\n%s%s", code, err, stdout, stderr)
	}
	for _, key := range []string{"version", "go", "platform"} {
		if s, _ := got[key].(string); s == "" {
			t.Errorf("no %s in %s", key, stdout)
		}
	}
}

func TestValidateDescribesFlows(t *testing.T) {
	path := file(t, twoClusters+`topics = ['orders\..*', 'x']
exclude_topics = ['orders\.tmp']
naming = { policy = "identity" }
start = "2026-01-31T00:00:00Z"
isolation = "read-uncommitted"
`)
	code, stdout, stderr := mirrorWith("validate", "-c", path)
	want := `flow primary->backup: ok
  topics     orders\..*, x but not orders\.tmp
  written    as <topic> on backup
  copies     all records, aborted ones too, from 2026-01-31T00:00:00Z
  positions  in mm2-offsets.primary.internal on backup
  groups     .* but not console-consumer-.*, connect-.*, __.*, checkpoints in primary.checkpoints.internal on backup
`
	if code != 0 || stdout != want || stderr != "" {
		t.Errorf("exit code %d, stderr %q, stdout:\n%s\nwant:\n%s", code, stderr, stdout, want)
	}
}

// Files that the config names are read without --connect, and each one that is
// wrong is reported.
func TestValidateReadsFiles(t *testing.T) {
	path := file(t, `
[clusters.primary]
bootstrap = ["127.0.0.1:1"]
tls = { enabled = true, ca_file = "missing-ca.pem" }
[clusters.backup]
bootstrap = ["127.0.0.1:2"]
sasl = { mechanism = "plain", username = "u", password_file = "missing-password" }
[[flows]]
from = "primary"
to = "backup"
`)
	code, stdout, stderr := mirrorWith("validate", "-c", path)
	if code != 1 || stdout != "" || !strings.Contains(stderr, "clusters.primary") || !strings.Contains(stderr, "missing-ca.pem") ||
		!strings.Contains(stderr, "clusters.backup") || !strings.Contains(stderr, "missing-password") {
		t.Errorf("exit code %d\n%s%s", code, stdout, stderr)
	}
}
