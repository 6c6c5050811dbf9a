package config

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write what is expected of the files in testdata")

// environment is what the files of testdata are expanded from.
func environment(name string) (string, bool) {
	v, ok := map[string]string{"HOST": "k3", "PORT": "9094", "CODEC": "zstd", "PASSWORD": "hunter2"}[name]
	return v, ok
}

func corpus(t testing.TB, folder string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("testdata", folder, "*.toml"))
	if err != nil || len(files) < 5 {
		t.Fatalf("found %v, %v", files, err)
	}
	return files
}

// Each good file has its meaning beside it, in JSON.
func TestGoodFiles(t *testing.T) {
	for _, file := range corpus(t, "good") {
		t.Run(filepath.Base(file), func(t *testing.T) {
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			c, err := Parse("conf/"+filepath.Base(file), data, environment)
			if err != nil {
				t.Fatal(err)
			}
			got, err := json.MarshalIndent(c, "", "\t")
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, '\n')
			golden := strings.TrimSuffix(file, "toml") + "json"
			if *update {
				if err := os.WriteFile(golden, got, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(got, want) {
				t.Errorf("got\n%s\nwant\n%s", got, want)
			}
		})
	}
}

// Each bad file ends in comments with all that is wrong with it.
func TestBadFiles(t *testing.T) {
	const mark = "#! "
	for _, file := range corpus(t, "bad") {
		t.Run(filepath.Base(file), func(t *testing.T) {
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			var text, want strings.Builder
			for line := range strings.Lines(string(data)) {
				if problem, ok := strings.CutPrefix(line, mark); ok {
					want.WriteString(problem)
				} else {
					text.WriteString(line)
				}
			}
			c, err := Parse(filepath.Base(file), data, environment)
			var bad *Error
			if !errors.As(err, &bad) || c != nil {
				t.Fatalf("got %v, %v, want an *Error", c, err)
			}
			got := err.Error() + "\n"
			if strings.Contains(got, "hunter2") {
				t.Errorf("shows a secret:\n%s", got)
			}
			if *update {
				text.WriteString(mark + strings.ReplaceAll(strings.TrimSuffix(got, "\n"), "\n", "\n"+mark) + "\n")
				if err := os.WriteFile(file, []byte(text.String()), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if got != want.String() {
				t.Errorf("got\n%s\nwant\n%s", got, want.String())
			}
		})
	}
}
