package contract

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"os"
	"regexp"
	"strconv"
	"strings"

	"mirror/integration/watch"
	"mirror/sidecar"
	"mirror/sidecar/config"
	"mirror/sidecar/status"
)

// Flow is a flow of a running mirror. What is not set is: from "src" to "dst",
// the pair's source and target, all topics of the scenario, defaults.
type Flow struct {
	From, To       string
	Source, Target *Cluster
	Topics         string // regular expression
	Keys           string // more of its table
	Tables         string // more tables, such as [flows.create]
	Refresh        string // not 1s
	Uncommitted    bool
	Identity       bool // topics keep their names

	e      *Env
	status func() status.Report
}

// flows fills in what is not set.
func (e *Env) flows(fs []Flow) []*Flow {
	if len(fs) == 0 {
		fs = []Flow{{}}
	}
	var all []*Flow
	for _, f := range fs {
		f.e = e
		if f.From == "" {
			f.From = "src"
		}
		if f.To == "" {
			f.To = "dst"
		}
		if f.Source == nil {
			f.Source = e.Source
		}
		if f.Target == nil {
			f.Target = e.Target
		}
		if f.Topics == "" {
			f.Topics = e.Topic(".*")
		}
		if f.Refresh == "" {
			f.Refresh = "1s"
		}
		all = append(all, &f)
	}
	return all
}

// configText is a config file for the flows.
func configText(flows []*Flow, admin string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "[admin]\nlisten = %q\n\n[log]\nlevel = \"debug\"\nformat = \"text\"\n", admin)
	told := map[string]bool{}
	cluster := func(alias string, c *Cluster) {
		if told[alias] {
			return
		}
		told[alias] = true
		var quoted []string
		for _, a := range c.Bootstrap {
			quoted = append(quoted, strconv.Quote(a))
		}
		fmt.Fprintf(&b, "\n[clusters.%s]\nbootstrap = [%s]\n%s\n", alias, strings.Join(quoted, ", "), c.Table)
	}
	for _, f := range flows {
		cluster(f.From, f.Source)
		cluster(f.To, f.Target)
		fmt.Fprintf(&b, "\n[[flows]]\nfrom = %q\nto = %q\ntopics = ['%s']\nrefresh = %q\n%s\n", f.From, f.To, f.Topics, f.Refresh, f.Keys)
		if f.Uncommitted {
			b.WriteString("isolation = \"read-uncommitted\"\n")
		}
		if f.Identity {
			b.WriteString("naming = { policy = \"identity\" }\n")
		}
		b.WriteString(f.Tables + "\n")
	}
	return b.String()
}

// TargetName is the name that a source topic has on the target.
func (f *Flow) TargetName(topic string) string {
	if f.Identity {
		return topic
	}
	return f.From + "." + topic
}

// Status is the flow's part of the mirror's report.
func (f *Flow) Status() status.Flow {
	for _, s := range f.status().Flows {
		if s.Name == f.From+"->"+f.To {
			return s
		}
	}
	return status.Flow{}
}

// Partition is what the mirror says of a source partition; ok is false where it
// says nothing.
func (f *Flow) Partition(topic string, number int32) (p status.Partition, ok bool) {
	for _, p := range f.Status().Partitions {
		if p.Topic == topic && p.Partition == number {
			return p, true
		}
	}
	return status.Partition{}, false
}

// CaughtUp waits until the mirror's positions are at the end of every partition
// that the source topics have now.
func (f *Flow) CaughtUp(topics ...string) {
	f.e.Helper()
	for _, topic := range topics {
		ends := f.ends(topic)
		for p := range ends {
			f.Reached(topic, int32(p), ends[p]-1)
		}
	}
}

// ends has the offsets up to which the flow copies now.
func (f *Flow) ends(topic string) []int64 {
	if f.Uncommitted {
		return f.e.Ends(f.Source, topic)
	}
	return f.e.offsets(f.Source.admin.ListCommittedOffsets, topic)
}

// Reached waits until a partition is copied and the mirror's position of it is at
// least offset.
func (f *Flow) Reached(topic string, number int32, offset int64) {
	f.e.Helper()
	f.Wait(fmt.Sprintf("position %d of %s/%d", offset, topic, number), func() string {
		switch p, ok := f.Partition(topic, number); {
		case !ok:
			return "the partition is not there"
		case p.Position < offset || p.State != status.Running:
			return fmt.Sprintf("it is %s, with position %d", p.State, p.Position)
		}
		return ""
	})
}

// Stalled waits until a partition is stalled at the offset, with a reason that
// has the words.
func (f *Flow) Stalled(topic string, number int32, offset int64, words string) {
	f.e.Helper()
	f.Wait(fmt.Sprintf("%s/%d to be stalled at %d", topic, number, offset), func() string {
		p, _ := f.Partition(topic, number)
		if p.State != status.Stalled || p.StalledAt != offset || !strings.Contains(strings.ToLower(p.Reason), words) {
			return fmt.Sprintf("is %s at %d, %q (want %q in it)", p.State, p.StalledAt, p.Reason, words)
		}
		return ""
	})
	if p, _ := f.Partition(topic, number); p.Position != offset-1 {
		f.e.Errorf("%s/%d is stalled at %d with position %d, want %d", topic, number, offset, p.Position, offset-1)
	}
}

// Wait waits like Eventually, and shows the status when it was in vain.
func (f *Flow) Wait(what string, missing func() string) {
	f.e.Helper()
	f.e.Eventually(what, func() string {
		left := missing()
		if left != "" && f.e.ctx.Err() != nil {
			b, _ := json.Marshal(f.Status())
			left += "\n" + string(b)
		}
		return left
	})
}

// Mirror is a mirror that runs in this process.
type Mirror struct {
	*Flow // the first
	Flows []*Flow
	app   *sidecar.Mirror
	stop  func()
	log   watch.Log
	most  int // times that a line of one partition may be logged
}

// Log is what the mirror has logged.
func (m *Mirror) Log() string { return m.log.String() }

// Start starts a mirror of the flows, or of one with defaults. It ends with the
// test, or by Stop.
func (e *Env) Start(flows ...Flow) *Mirror {
	e.Helper()
	m := &Mirror{Flows: e.flows(flows), most: 12}
	m.Flow = m.Flows[0]
	cfg, err := config.Parse("mirror.toml", []byte(configText(m.Flows, "")), os.LookupEnv)
	if err != nil {
		e.Fatal(err)
	}
	log := slog.NewTextHandler(io.MultiWriter(e.Output(), &m.log), nil)
	app, err := sidecar.New(cfg, "test", slog.New(log), nil)
	if err != nil {
		e.Fatal(err)
	}
	m.app = app
	for _, f := range m.Flows {
		f.status = app.Status
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- app.Run(ctx) }()
	stopped := false
	m.stop = func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		if err := <-done; err != nil {
			e.Errorf("the mirror ended with: %v", err)
		}
		m.wantFewRepeats()
	}
	e.Cleanup(m.stop)
	return m
}

// Stop ends the mirror and waits until it has saved its positions.
func (m *Mirror) Stop() {
	m.e.Helper()
	m.stop()
}

// wantFewRepeats checks that nothing is logged in a loop: of one partition, no
// line comes often, not even with other numbers in it.
func (m *Mirror) wantFewRepeats() {
	m.e.Helper()
	times := map[string]int{}
	for line := range strings.Lines(m.Log()) {
		var shape strings.Builder
		for word := range strings.FieldsSeq(line) {
			if !strings.HasPrefix(word, "partition=") {
				word = numbers.ReplaceAllString(word, "0")
			}
			shape.WriteString(word + " ")
		}
		if times[shape.String()]++; times[shape.String()] == m.most+1 {
			m.e.Errorf("the mirror logged more than %d times: %s", m.most, line)
		}
	}
}

var numbers = regexp.MustCompile(`[0-9]+`)
