package kafkatest

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl/scram"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	// Testcontainers keeps its HTTP connections to Docker.
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("net/http.(*persistConn).readLoop"),
		goleak.IgnoreAnyFunction("net/http.(*persistConn).writeLoop"))
}

// A cluster with TLS and SCRAM serves those who know a password, and comes back
// after kill -9 at its address with its data.
func TestCluster(t *testing.T) {
	Need(t)
	ca := NewCA(t)
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(ca.PEM)
	as := func(password string) []kgo.Opt {
		return []kgo.Opt{kgo.DialTLSConfig(&tls.Config{RootCAs: pool}),
			kgo.SASL(scram.Auth{User: "alice", Pass: password}.AsSha256Mechanism())}
	}
	o := Options{Name: "secure", Protocol: "SASL_SSL", Scram: map[string]string{"alice": "open sesame"}, Client: as("open sesame")}
	cert, key := ca.Issue(t, "broker")
	ca.Broker(&o, "none", cert, key)
	c := Start(t, Network(t), o)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()

	cl := c.Client(t, kgo.DefaultProduceTopic("t"))
	if _, err := kadm.NewClient(cl).CreateTopic(ctx, 1, 1, nil, "t"); err != nil {
		t.Fatal(err)
	}
	put := func(value string) {
		t.Helper()
		if err := cl.ProduceSync(ctx, kgo.StringRecord(value)).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}
	put("before")
	wrong, err := kgo.NewClient(append(as("guess"), kgo.SeedBrokers(c.Bootstrap()...))...)
	if err != nil {
		t.Fatal(err)
	}
	defer wrong.Close()
	if err := wrong.Ping(ctx); err == nil || !strings.Contains(err.Error(), "SASL_AUTHENTICATION_FAILED") {
		t.Errorf("with a wrong password: %v", err)
	}

	c.Nodes[0].Kill(t)
	down, cancelDown := context.WithTimeout(ctx, time.Second)
	defer cancelDown()
	if err := cl.Ping(down); err == nil {
		t.Error("a killed broker answers")
	}
	c.Nodes[0].Restart(t)
	c.WaitReady(t, 1)
	put("after")
	out := c.Nodes[0].Tool(t, "org.apache.kafka.tools.GetOffsetShell", "--bootstrap-server", c.Internal(), "--topic", "t")
	if strings.TrimSpace(out) != "t:0:2" {
		t.Errorf("the end of t is %q, want t:0:2", out)
	}
}
