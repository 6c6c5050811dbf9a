package integration

import (
	"bytes"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"mirror/sidecar/cli"
	"mirror/sidecar/config"
)

// snippet is a fenced block of a Markdown file.
type snippet struct {
	line     int // of its first line
	language string
	text     string
}

func snippets(markdown []byte) (all []snippet) {
	var in *snippet
	for i, line := range strings.Split(string(markdown), "\n") {
		switch language, fence := strings.CutPrefix(strings.TrimSpace(line), "```"); {
		case fence && in == nil:
			in = &snippet{line: i + 2, language: language}
		case fence:
			all = append(all, *in)
			in = nil
		case in != nil:
			in.text += line + "\n"
		}
	}
	return all
}

// What the README shows can be done: its config files are valid, its commands exist.
func TestReadme(t *testing.T) {
	kinds := map[string]int{}
	for _, s := range snippets(read(t, "README.md")) {
		kinds[s.language]++
		switch s.language {
		case "toml":
			noEnv := func(string) (string, bool) { return "", false }
			if _, err := config.Parse("README.md", []byte(s.text), noEnv); err != nil {
				t.Errorf("the config at line %d: %v", s.line, err)
			}
		case "sh":
			for i, line := range strings.Split(s.text, "\n") {
				if err := checkCommand(t, line); err != nil {
					t.Errorf("README.md:%d: %s: %v", s.line+i, line, err)
				}
			}
		}
	}
	if kinds["toml"] == 0 || kinds["sh"] == 0 {
		t.Errorf("the README has snippets %v, want configs and commands", kinds)
	}
	for _, line := range inlineCommands(read(t, "README.md")) {
		if err := checkCommand(t, line); err != nil {
			t.Errorf("README.md: %s: %v", line, err)
		}
	}
}

// inlineCommands are the mirror's commands between backticks.
func inlineCommands(markdown []byte) (all []string) {
	for _, m := range regexp.MustCompile("`((?:go run \\. |mirror )[a-z][^`]*|just [^`]+)`").FindAllSubmatch(markdown, -1) {
		all = append(all, string(m[1]))
	}
	return all
}

// checkCommand looks whether a command line's verb and flags, or recipes, exist.
// Other programs' commands are not its business.
func checkCommand(t *testing.T, line string) error {
	t.Helper()
	line, _, _ = strings.Cut(line, " #")
	if recipes, ok := strings.CutPrefix(line, "just "); ok {
		for _, r := range strings.Fields(recipes) {
			if !regexp.MustCompile(`(?m)^` + regexp.QuoteMeta(r) + `\b[^\n]*:`).Match(read(t, "Justfile")) {
				return fmt.Errorf("no recipe %s", r)
			}
		}
		return nil
	}
	args, ok := strings.CutPrefix(line, "go run . ")
	if !ok {
		if args, ok = strings.CutPrefix(line, "mirror "); !ok {
			return nil
		}
	}
	words := strings.Fields(args)
	var stdout, stderr bytes.Buffer
	if code := cli.Main([]string{"mirror", words[0], "--help"}, &stdout, &stderr); code != 0 {
		return fmt.Errorf("no verb %s: %s", words[0], stderr.String())
	}
	for _, w := range words[1:] {
		flag, _, _ := strings.Cut(w, "=")
		if strings.HasPrefix(flag, "-") && !regexp.MustCompile(regexp.QuoteMeta(flag)+`\b`).Match(stdout.Bytes()) {
			return fmt.Errorf("no flag %s among\n%s", flag, stdout.String())
		}
	}
	return nil
}

// The reference config is a valid one.
func TestReferenceConfig(t *testing.T) {
	if _, err := config.Load("../mirror.toml"); err != nil {
		t.Error(err)
	}
}
