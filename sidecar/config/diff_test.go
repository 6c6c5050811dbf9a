package config

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func parsed(t testing.TB, text string) *Config {
	t.Helper()
	c, err := Parse("mirror.toml", []byte(text), environment)
	if err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	return c
}

const oneFlow = `
[clusters.a]
bootstrap = ["a:1"]
[clusters.b]
bootstrap = ["b:1"]
[[flows]]
from = "a"
to = "b"
`

const twoFlows = oneFlow + `[[flows]]
from = "b"
to = "a"
`

// twoFlowsWith puts lines at the end of the second flow.
func twoFlowsWith(lines ...string) string { return twoFlows + strings.Join(lines, "\n") + "\n" }

func TestDiff(t *testing.T) {
	mechanism := func(more string) string {
		return strings.Replace(twoFlows, "bootstrap = [\"b:1\"]", "bootstrap = [\"b:1\"]\nsasl = { "+more+" }", 1)
	}
	for name, c := range map[string]struct {
		old, new string
		want     []string // live or restart, line, change
	}{
		"nothing":           {twoFlows, twoFlows, nil},
		"a default, stated": {twoFlows, twoFlowsWith(`refresh = "30s"`, `lanes = 0`), nil},
		"white space":       {twoFlows, "# a comment\n\n" + twoFlows, nil},
		"the other order": {
			twoFlowsWith(`grace = "1m"`),
			strings.Replace(twoFlows, "from = \"a\"\nto = \"b\"\n[[flows]]\nfrom = \"b\"\nto = \"a\"\n", "from = \"b\"\nto = \"a\"\ngrace = \"60s\"\n[[flows]]\nfrom = \"a\"\nto = \"b\"\n", 1), nil,
		},
		"live ones": {
			twoFlows, twoFlowsWith(`topics = ['x\.y', "z'"]`, `exclude_topics = []`, `refresh = "90s"`, `commit_interval = "500ms"`, `grace = "1h"`,
				`create = { replication_factor = 3, configs = { "min.insync.replicas" = "2", a = "b" } }`),
			[]string{
				`live 12 flows[1].topics (b->a): [".*"] → ['x\.y', "z'"]`,
				`live 13 flows[1].exclude_topics (b->a): ['mm2.*\.internal', '.*\.replica', "__.*"] → []`,
				`live 14 flows[1].refresh (b->a): "30s" → "1m30s"`,
				`live 15 flows[1].commit_interval (b->a): "1s" → "500ms"`,
				`live 16 flows[1].grace (b->a): "30s" → "1h"`,
				`live 17 flows[1].create.replication_factor (b->a): 0 → 3`,
				`live 17 flows[1].create.configs (b->a): {} → { a = "b", "min.insync.replicas" = "2" }`,
			},
		},
		"those of a flow that need a restart": {
			twoFlows, twoFlowsWith(`start = "2026-01-31T00:00:00Z"`, `isolation = "read-uncommitted"`, `lanes = 2`,
				`memory = "64MiB"`, `resume = false`, `positions = { topic = "p", connector = "c" }`),
			[]string{
				`restart 12 flows[1].start (b->a): "earliest" → "2026-01-31T00:00:00Z"`,
				`restart 13 flows[1].isolation (b->a): "read-committed" → "read-uncommitted"`,
				`restart 14 flows[1].lanes (b->a): 0 → 2`,
				`restart 15 flows[1].memory (b->a): "16MiB" → "64MiB"`,
				`restart 16 flows[1].resume (b->a): true → false`,
				`restart 17 flows[1].positions.topic (b->a): "mm2-offsets.b.internal" → "p"`,
				`restart 17 flows[1].positions.connector (b->a): "MirrorSourceConnector" → "c"`,
			},
		},
		"naming": {
			oneFlow, oneFlow + "naming = { policy = 'identity', separator = '-' }\n",
			[]string{
				`restart 9 flows[0].naming.policy (a->b): "default" → "identity"`,
				`restart 9 flows[0].naming.separator (a->b): "." → "-"`,
			},
		},
		"log and admin": {
			twoFlows, twoFlowsWith("[log]", `level = "debug"`, `format = "json"`, "[admin]", `listen = ""`),
			[]string{
				`restart 16 admin.listen: "127.0.0.1:9464" → ""`,
				`live 13 log.level: "info" → "debug"`,
				`restart 14 log.format: "auto" → "json"`,
			},
		},
		"tables that come and go": {
			twoFlows,
			"[clusters.a]\nbootstrap = ['a:1']\n[clusters.\"b.c\"]\nbootstrap = ['b:1']\n[[flows]]\nfrom = 'a'\nto = 'b.c'\n",
			[]string{
				`restart 0 clusters.b: removed`, `restart 3 clusters."b.c": added`,
				`restart 0 flows[0] (a->b): removed`, `restart 0 flows[1] (b->a): removed`, `restart 5 flows[0] (a->b.c): added`,
			},
		},
		"secrets": {
			mechanism(`mechanism = "plain", username = "u", password = "one"`), mechanism(`mechanism = "plain", username = "u", password = "two"`),
			[]string{`restart 6 clusters.b.sasl.password: "********" → "********"`},
		},
		"a secret that is new": {
			mechanism(`mechanism = "plain", username = "u", password_file = "/p"`), mechanism(`mechanism = "plain", username = "u", password = "two"`),
			[]string{`restart 6 clusters.b.sasl.password: "" → "********"`, `restart 6 clusters.b.sasl.password_file: "/p" → ""`},
		},
		"what the environment holds": {
			mechanism(`mechanism = "plain", username = "u", password_file = "/p"`), mechanism(`mechanism = "plain", username = "${PASSWORD}", password_file = "/p"`),
			[]string{`restart 6 clusters.b.sasl.username: "u" → "${PASSWORD}"`},
		},
		"a password in a URL": {
			mechanism(`mechanism = "oauthbearer", oauthbearer = { token_url = "https://h/", client_id = "i", client_secret = "s" }`),
			mechanism(`mechanism = "oauthbearer", oauthbearer = { token_url = "https://u:hunter3@h/", client_id = "i", client_secret = "s" }`),
			[]string{`restart 6 clusters.b.sasl.oauthbearer.token_url: "https://h/" → "https://u:xxxxx@h/"`},
		},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, c := range Diff(parsed(t, c.old), parsed(t, c.new)) {
				class := "restart"
				if c.Live {
					class = "live"
				}
				got = append(got, fmt.Sprintf("%s %d %s", class, c.Line, c))
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(c.want, "\n"))
			}
		})
	}
}

// variants are lines of a flow, each with two valid values; the first three are live.
var variants = [][2]string{
	{`refresh = "1s"`, `refresh = "2s"`}, {`topics = ["x"]`, `topics = ["y", "x"]`}, {`create = { configs = { a = "1" } }`, `create = { configs = { a = "2" } }`},
	{`lanes = 1`, `lanes = 2`}, {`memory = "1MiB"`, `memory = "2MiB"`}, {`start = "latest"`, `start = "earliest"`},
}

// Merging takes over what is live and nothing else: afterwards nothing live
// differs from the new file, and nothing else from the old one.
func TestMergeTakesWhatIsLive(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		draw := func(name string) *Config {
			lines := []string{}
			for _, v := range variants {
				if n := rapid.IntRange(0, 2).Draw(t, name); n > 0 {
					lines = append(lines, v[n-1])
				}
			}
			c, err := Parse("mirror.toml", []byte(twoFlowsWith(lines...)), environment)
			if err != nil {
				t.Fatal(err)
			}
			return c
		}
		running, next := draw("running"), draw("next")
		before := Diff(running, next)
		merged, err := Merge(running, next)
		if err != nil {
			t.Fatal(err)
		}
		byLife := func(cs []Change, live bool) (some []string) {
			for _, c := range cs {
				if c.Live == live {
					some = append(some, c.String())
				}
			}
			return some
		}
		if d := Diff(merged, next); len(byLife(d, true)) > 0 || !slices.Equal(byLife(d, false), byLife(before, false)) {
			t.Errorf("merged and next differ by %v, running and next by %v", d, before)
		}
		if d := Diff(running, merged); len(byLife(d, false)) > 0 || !slices.Equal(byLife(d, true), byLife(before, true)) {
			t.Errorf("running and merged differ by %v, running and next by %v", d, before)
		}
	})
}

// Flows that the new file lacks run on as they are, and those it adds wait.
func TestMergeKeepsTheFlows(t *testing.T) {
	running := parsed(t, twoFlowsWith(`grace = "5s"`))
	next := parsed(t, "[clusters.a]\nbootstrap = ['a:1']\n[clusters.b]\nbootstrap = ['b:1']\n[clusters.c]\nbootstrap = ['c:1']\n"+
		"[[flows]]\nfrom = 'a'\nto = 'c'\n[[flows]]\nfrom = 'a'\nto = 'b'\ngrace = '6s'\n")
	merged, err := Merge(running, next)
	if err != nil {
		t.Fatal(err)
	}
	got := fmt.Sprint(len(merged.Clusters))
	for _, f := range merged.Flows {
		got += fmt.Sprintf(" %s %v", f.Name(), f.Grace)
	}
	if want := "2 a->b 6s b->a 5s"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if running.Flows[0].Grace.String() != "30s" {
		t.Error("the running config has changed")
	}
}

// Two right files can come to a wrong mixture.
func TestMergeIsCheckedAsAWhole(t *testing.T) {
	flows := func(naming, topics string) string {
		return fmt.Sprintf("[clusters.a]\nbootstrap = ['a:1']\n[clusters.b]\nbootstrap = ['b:1']\n"+
			"[[flows]]\nfrom = 'a'\nto = 'b'\nnaming = { policy = '%[1]s' }\ntopics = ['%[2]s']\n"+
			"[[flows]]\nfrom = 'b'\nto = 'a'\nnaming = { policy = '%[1]s' }\ntopics = ['other']\n", naming, topics)
	}
	running, next := parsed(t, flows("identity", "one")), parsed(t, flows("default", ".*"))
	_, err := Merge(running, next)
	problems := Problems(err)
	if len(problems) != 1 || !strings.HasPrefix(problems[0], "mirror.toml:13: flows[1].naming: a->b, b->a are a ring") || !strings.Contains(problems[0], "restart to have all of the file") {
		t.Errorf("got %q", problems)
	}
}

func TestProblems(t *testing.T) {
	_, err := Parse("m.toml", []byte(twoFlowsWith("lane = 1", "lanes = 'x'")), environment)
	want := []string{
		`m.toml:12: flows[1].lane: unknown key, did you mean "lanes"?`,
		`m.toml:13: flows[1].lanes: must be an integer, not a string`,
	}
	if got := Problems(fmt.Errorf("wrapped: %w", err)); !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
	if got := Problems(fmt.Errorf("no file")); !slices.Equal(got, []string{"no file"}) {
		t.Errorf("got %q", got)
	}
}
