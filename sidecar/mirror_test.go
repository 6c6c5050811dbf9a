package sidecar

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"go.uber.org/goleak"

	"mirror/sidecar/config"
	"mirror/sidecar/status"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func open(t *testing.T, toml string) *Mirror {
	t.Helper()
	cfg, err := config.Parse("mirror.toml", []byte(toml), func(string) (string, bool) { return "", false })
	if err != nil {
		t.Fatal(err)
	}
	m, err := New(cfg, "v1", slog.New(slog.DiscardHandler), nil)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

const embeddedPair = `
[clusters.primary]
bootstrap = ["embedded"]
[clusters.backup]
bootstrap = ["embedded"]
[[flows]]
from = "primary"
to = "backup"
refresh = "50ms"
[[flows]]
from = "backup"
to = "primary"
refresh = "50ms"
`

// eventually waits for a condition, which says what is missing.
func eventually(t *testing.T, missing func() string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		m := missing()
		if m == "" {
			return
		}
		select {
		case <-ctx.Done():
			t.Fatal(m)
		case <-tick.C:
		}
	}
}

// producer is a client of an embedded cluster; who calls it closes it.
func producer(t *testing.T, bootstrap []string) *kgo.Client {
	t.Helper()
	cl, err := kgo.NewClient(kgo.SeedBrokers(bootstrap...))
	if err != nil {
		t.Fatal(err)
	}
	return cl
}

func create(t *testing.T, cl *kgo.Client, topic string) {
	t.Helper()
	if _, err := kadm.NewClient(cl).CreateTopic(t.Context(), 2, 1, nil, topic); err != nil {
		t.Fatal(err)
	}
}

func send(t *testing.T, cl *kgo.Client, topic, value string) {
	t.Helper()
	if err := cl.ProduceSync(t.Context(), &kgo.Record{Topic: topic, Value: []byte(value)}).FirstErr(); err != nil {
		t.Fatal(err)
	}
}

func TestFlowsOnEmbeddedClusters(t *testing.T) {
	m := open(t, embeddedPair)
	if r := m.Status(); r.Ready || len(r.Flows) != 2 || r.Version != "v1" || len(r.Reasons) != 2 {
		t.Errorf("before Run: %+v", r)
	}
	ctx, stop := context.WithCancel(t.Context())
	ran := make(chan error, 1)
	go func() { ran <- m.Run(ctx) }()

	cl := producer(t, m.Bootstrap("primary"))
	create(t, cl, "orders")
	for i := range 10 {
		send(t, cl, "orders", fmt.Sprint(i))
	}
	cl.Close()
	eventually(t, func() string {
		r := m.Status()
		if !r.Ready {
			return fmt.Sprint("not ready: ", r.Reasons)
		}
		var records uint64
		for _, p := range r.Flows[0].Partitions {
			records += p.Records
		}
		if records != 10 {
			return fmt.Sprintf("%d of 10 records copied", records)
		}
		return ""
	})
	if ps := m.Status().Flows[1].Partitions; len(ps) != 0 {
		t.Errorf("the flow back copies %s", ps[0].Topic)
	}
	stop()
	if err := <-ran; err != nil {
		t.Errorf("stopped with %v", err)
	}
}

func TestCloseWithoutRun(t *testing.T) {
	m := open(t, embeddedPair)
	m.Close()
	m.Close()
}

func TestOpenNamesTheCluster(t *testing.T) {
	cfg, err := config.Parse("mirror.toml", []byte(`
[clusters.primary]
bootstrap = ["127.0.0.1:1"]
tls = { enabled = true, ca_file = "no-such-file.pem" }
[clusters.backup]
bootstrap = ["embedded"]
[[flows]]
from = "primary"
to = "backup"
`), func(string) (string, bool) { return "", false })
	if err != nil {
		t.Fatal(err)
	}
	m, err := New(cfg, "v1", slog.New(slog.DiscardHandler), nil)
	if err == nil {
		m.Close()
		t.Fatal("a CA file that is not there is taken")
	}
	for _, want := range []string{"primary", "no-such-file.pem"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q does not name %s", err, want)
		}
	}
}

func TestReasons(t *testing.T) {
	cases := []struct {
		name string
		flow status.Flow
		want []string // words of each reason
	}{
		{"all is well", status.Flow{State: status.Running, Partitions: []status.Partition{{State: status.Running}, {State: status.Starting}}}, nil},
		{"starting", status.Flow{Name: "a->b", State: status.Starting, Reason: "connecting"}, []string{"a->b is starting: connecting"}},
		{"a topic", status.Flow{State: status.Running, Topics: []status.Topic{{Source: "t", Reason: "no right"}}}, []string{"topic t: no right"}},
		{"a partition", status.Flow{State: status.Running, Partitions: []status.Partition{{Topic: "t", Partition: 3, State: status.Stalled, StalledAt: 7, Reason: "too large"}}},
			[]string{"topic t, partition 3 is stalled at offset 7: too large"}},
	}
	for _, c := range cases {
		got := reasons(&c.flow)
		if len(got) != len(c.want) || slices.ContainsFunc(got, func(r string) bool { return !strings.Contains(r, c.want[0]) }) {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}
