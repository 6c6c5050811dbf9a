package config

import (
	"encoding/json"
	"os"
	"regexp"
	"strings"
	"testing"
)

const reference = "../../mirror.toml"

// uncommented is the reference with every default in place.
func uncommented(t *testing.T) (as, full string) {
	t.Helper()
	data, err := os.ReadFile(reference)
	if err != nil {
		t.Fatal(err)
	}
	return string(data), regexp.MustCompile(`(?m)^#([a-z\[])`).ReplaceAllString(string(data), "$1")
}

// What the reference says the defaults are is what they are.
func TestReferenceHasTheDefaults(t *testing.T) {
	shortest := "[clusters.primary]\nbootstrap = ['embedded']\n[clusters.backup]\nbootstrap = ['embedded']\n[[flows]]\nfrom = 'primary'\nto = 'backup'\n"
	want := meaning(t, shortest)
	as, full := uncommented(t)
	if got := meaning(t, as); got != want {
		t.Errorf("as it stands:\n%s\nwant the defaults:\n%s", got, want)
	}
	if got := meaning(t, full); got != want {
		t.Errorf("uncommented:\n%s\nwant the defaults:\n%s", got, want)
	}
}

func meaning(t *testing.T, text string) string {
	t.Helper()
	c, err := Parse("mirror.toml", []byte(text), environment)
	if err != nil {
		t.Fatal(err)
	}
	for alias, cluster := range c.Clusters {
		// Empty secrets would look like full ones.
		if cluster.SASL.Password != "" || cluster.SASL.OAuthBearer.ClientSecret != "" {
			t.Errorf("cluster %s has a password", alias)
		}
		if cluster.SASL.OAuthBearer.Scopes == nil {
			cluster.SASL.OAuthBearer.Scopes = []string{}
			c.Clusters[alias] = cluster
		}
	}
	out, err := json.MarshalIndent(c, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

// Every key that is read is in the reference.
func TestReferenceHasEveryKey(t *testing.T) {
	_, full := uncommented(t)
	_, r := read("mirror.toml", []byte(full), environment)
	index := indexLines(full)
	keys := 0
	for _, table := range r.tables {
		if strings.HasPrefix(table.path, "clusters.backup") {
			continue // the first cluster shows them all
		}
		for _, name := range table.known {
			keys++
			if _, ok := index[join(table.path, name)]; !ok {
				t.Errorf("%s is not in %s", join(table.path, name), reference)
			}
		}
	}
	if keys < 50 {
		t.Errorf("only %d keys are read", keys)
	}
}
