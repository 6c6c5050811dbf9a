package metrics

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"mirror/sidecar/status"
)

// documented are the metrics of the README's table, with their labels, and
// those marked as of single partitions.
func documented(t *testing.T) (labels map[string]string, single []string) {
	t.Helper()
	text, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	labels = map[string]string{}
	for _, m := range regexp.MustCompile("(?m)^\\| `(mirror_[a-z_]+)`( \\*)? \\| ([a-z0-9, ]*) ?\\| ").FindAllStringSubmatch(string(text), -1) {
		if _, ok := labels[m[1]]; ok {
			t.Errorf("%s is in the table twice", m[1])
		}
		labels[m[1]] = strings.TrimSpace(m[3])
		if m[2] != "" {
			single = append(single, m[1])
		}
	}
	return labels, single
}

// exported are the metrics that a collector declares, with their labels, as
// prometheus.Desc prints them.
func exported(c *Collector) map[string]string {
	ch := make(chan *prometheus.Desc, 100)
	c.Describe(ch)
	close(ch)
	all := map[string]string{}
	for d := range ch {
		m := regexp.MustCompile(`fqName: "([^"]+)".*variableLabels: \{([^}]*)\}`).FindStringSubmatch(d.String())
		all[m[1]] = strings.ReplaceAll(m[2], ",", ", ")
	}
	return all
}

// The README's table has each metric with its labels, and nothing else.
func TestTheReadmeHasEachMetric(t *testing.T) {
	table, single := documented(t)
	have := exported(New(report, ""))
	for name, labels := range have {
		if got, ok := table[name]; !ok {
			t.Errorf("%s is not in the README's table", name)
		} else if got != labels {
			t.Errorf("%s has the labels %q, not %q as the README says", name, labels, got)
		}
	}
	for name := range table {
		if _, ok := have[name]; !ok {
			t.Errorf("the README has %s, which does not exist", name)
		}
	}
	byFlow := exported(New(report, "flow"))
	for name := range have {
		if _, ok := byFlow[name]; ok == slices.Contains(single, name) {
			t.Errorf("%s is marked %v in the README, and is there by flow: %v", name, !ok, ok)
		}
	}
}

// What is declared is also sent, in the report that has everything.
func TestEachMetricIsSent(t *testing.T) {
	r := prometheus.NewRegistry()
	r.MustRegister(New(report, ""))
	families, err := r.Gather()
	if err != nil {
		t.Fatal(err)
	}
	have := exported(New(report, ""))
	for _, f := range families {
		delete(have, f.GetName())
	}
	for name := range have {
		t.Errorf("%s is never sent", name)
	}
}

// Each kind of error is explained.
func TestTheReadmeHasEachKindOfError(t *testing.T) {
	text, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, kind := range status.ErrorKinds {
		if !strings.Contains(string(text), "`"+kind+"`") {
			t.Errorf("the README does not have the kind %s of errors", kind)
		}
	}
}
