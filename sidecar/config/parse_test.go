package config

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestLoad(t *testing.T) {
	path := filepath.Join(t.TempDir(), "mirror.toml")
	if _, err := Load(path); !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), path) {
		t.Errorf("without a file: %v", err)
	}
	t.Setenv("TEST_RACK", "r1")
	text := "[clusters.a]\nbootstrap = ['a:1']\nrack = '${TEST_RACK}'\ntls = { enabled = true, ca_file = 'ca.pem' }\n" +
		"[clusters.b]\nbootstrap = ['b:1']\n[[flows]]\nfrom = 'a'\nto = 'b'\n"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := Load(path)
	if err != nil {
		t.Fatal(err)
	}
	a := c.Clusters["a"]
	if a.Rack != "r1" || a.TLS.CAFile != filepath.Join(filepath.Dir(path), "ca.pem") || c.File != path {
		t.Errorf("got %+v of %s", a, c.File)
	}
}

func TestSecretsComeThrough(t *testing.T) {
	file := filepath.Join("testdata", "good", "mechanisms.toml")
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	c, err := Parse(file, data, environment)
	if err != nil {
		t.Fatal(err)
	}
	if got := c.Clusters["plain"].SASL.Password.Reveal(); got != "hunter2" {
		t.Errorf("password %q", got)
	}
	if got := c.Clusters["scram"].SASL.Password.Reveal(); got != "p${x}" {
		t.Errorf("password %q", got)
	}
}

func FuzzParse(f *testing.F) {
	for _, folder := range []string{"good", "bad"} {
		for _, file := range corpus(f, folder) {
			data, err := os.ReadFile(file)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(data)
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := Parse("fuzz.toml", data, environment)
		if err != nil {
			var bad *Error
			if !errors.As(err, &bad) || len(bad.Problems) == 0 || c != nil {
				t.Fatalf("%v, %#v", c, err)
			}
			last := 0
			for _, p := range bad.Problems {
				if p.Line < 1 || p.Line < last || p.Line > strings.Count(string(data), "\n")+1 || p.Text == "" || p.File != "fuzz.toml" {
					t.Errorf("problem %+v after line %d", p, last)
				}
				last = p.Line
			}
			return
		}
		names := map[string]bool{}
		for _, flow := range c.Flows {
			from, to := c.Clusters[flow.From], c.Clusters[flow.To]
			if len(from.Bootstrap) == 0 || len(to.Bootstrap) == 0 || flow.From == flow.To || names[flow.Name()] {
				t.Errorf("clusters of flow %s: %+v, %+v", flow.Name(), from, to)
			}
			names[flow.Name()] = true
			if len(flow.Topics) == 0 || flow.Refresh < time.Millisecond || flow.CommitInterval < time.Millisecond || flow.Grace < time.Millisecond ||
				flow.Lanes < 0 || flow.Lanes > 1024 || flow.Memory < 1<<20 || flow.Naming.Separator == "" ||
				flow.Create.ReplicationFactor < 0 || flow.Positions.Topic == "" || flow.Positions.Connector == "" {
				t.Errorf("flow %+v", flow)
			}
		}
		if len(names) == 0 {
			t.Error("no flows")
		}
	})
}
