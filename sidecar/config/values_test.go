package config

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestSizes(t *testing.T) {
	for _, c := range []struct {
		text string
		want int64 // -1: not a size
	}{
		{"0", 0}, {"512", 512}, {"512B", 512}, {"64KiB", 65536}, {"16MiB", 16777216}, {"16 MiB", 16777216}, {"1GiB", 1 << 30}, {"2TiB", 2 << 40},
		{"1KB", 1000}, {"1kB", 1000}, {"3MB", 3000000}, {"1GB", 1000000000}, {"1TB", 1000000000000}, {"9223372036854775807", 1<<63 - 1},
		{"", -1}, {"B", -1}, {"MiB", -1}, {"-1", -1}, {"+1", -1}, {"1.5MiB", -1}, {"1mib", -1}, {"1M", -1}, {"0x10", -1}, {"1_000", -1},
		{"9223372036854775808", -1}, {"9007199254740992KiB", -1}, {"8388608TiB", -1},
	} {
		n, ok := parseSize(c.text)
		if !ok {
			n = -1
		}
		if n != c.want {
			t.Errorf("%q: got %d, want %d", c.text, n, c.want)
		}
	}
}

func TestExpand(t *testing.T) {
	for _, c := range []struct{ text, want, problem string }{
		{"plain", "plain", ""},
		{"${HOST}", "k3", ""},
		{"a${HOST}b${PORT}", "ak3b9094", ""},
		{"$HOST $ {HOST} a$", "$HOST $ {HOST} a$", ""},
		{"$${HOST}", "${HOST}", ""},
		{"$$${HOST}", "$${HOST}", ""},
		{"$${${HOST}}", "${k3}", ""},
		{"${UNSET}", "", "environment variable UNSET is not set"},
		{"${HOST", "", "without a }"},
		{"${A B}", "", "not a variable's name"},
		{"${1}", "", "not a variable's name"},
		{"${}", "", "not a variable's name"},
	} {
		got, err := expand(c.text, environment)
		if got != c.want || (err == nil) != (c.problem == "") || err != nil && !strings.Contains(err.Error(), c.problem) {
			t.Errorf("%q: got %q, %v", c.text, got, err)
		}
	}
}

// What the environment holds is not expanded again, and a text without ${ stays
// as it is.
func TestExpandOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		value := rapid.String().Draw(t, "value")
		text := rapid.StringMatching(`[a-z$}]{0,6}`).Draw(t, "text")
		got, err := expand(text+" ${X}", func(string) (string, bool) { return value, true })
		if err != nil || got != text+" "+value {
			t.Fatalf("got %q, %v", got, err)
		}
	})
}

func TestSecretsHide(t *testing.T) {
	type holder struct {
		Password Secret
		Deep     map[string]Secret
	}
	const clear = "hunter2"
	h := holder{clear, map[string]Secret{"x": clear}}
	var shown bytes.Buffer
	for _, verb := range []string{"v", "+v", "#v", "s", "q", "x", "X", "d", "T", "U", "10s"} {
		fmt.Fprintf(&shown, "%"+verb+" %"+verb+"\n", h, h.Password)
	}
	if err := json.NewEncoder(&shown).Encode(h); err != nil {
		t.Fatal(err)
	}
	for _, handler := range []slog.Handler{slog.NewTextHandler(&shown, nil), slog.NewJSONHandler(&shown, nil)} {
		slog.New(handler).Info("x", "password", h.Password, "holder", h)
	}
	fmt.Fprintln(&shown, h.Password, fmt.Errorf("with %w and %s", error(nil), h.Password))
	hex := fmt.Sprintf("%x", clear)
	if s := shown.String(); strings.Contains(s, clear) || strings.Contains(strings.ToLower(s), hex) || !strings.Contains(s, redacted) {
		t.Errorf("shown:\n%s", s)
	}
	if h.Password.Reveal() != clear {
		t.Errorf("revealed %q", h.Password.Reveal())
	}
}

func TestSuggestions(t *testing.T) {
	known := []string{"commit_interval", "from", "lanes", "to", "topics"}
	for name, want := range map[string]string{
		"lane": `did you mean "lanes"?`, "Lanes": `case counts: "lanes"`, "form": `did you mean "from"?`, "commit-intreval": `did you mean "commit_interval"?`,
		"topic": `did you mean "topics"?`, "zzz": "there is commit_interval, from, lanes, to, topics",
	} {
		if got := Suggest(name, known); got != want {
			t.Errorf("%s: got %s, want %s", name, got, want)
		}
	}
	if got := Suggest("x", nil); got != "there is none" {
		t.Errorf("with nothing known: %s", got)
	}
}
