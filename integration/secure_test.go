package integration

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl/scram"

	"mirror/integration/contract"
	"mirror/integration/kafkatest"
)

const secret = "swordfish 7" // alice's password

// secure is a pair of which the source wants a password and the target a
// client certificate, over TLS both.
func secure(t *testing.T) contract.Pair {
	ca := kafkatest.NewCA(t)
	dir := t.TempDir()
	file := func(name string, data []byte) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	cert, key := ca.Issue(t, "mirror")
	caFile, certFile, keyFile := file("ca.pem", ca.PEM), file("cert.pem", cert), file("key.pem", key)
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(ca.PEM)
	own, err := tls.X509KeyPair(cert, key)
	if err != nil {
		t.Fatal(err)
	}

	source := kafkatest.Options{Name: "scram", Protocol: "SASL_SSL", Scram: map[string]string{"alice": secret}, Client: []kgo.Opt{
		kgo.DialTLSConfig(&tls.Config{RootCAs: pool}), kgo.SASL(scram.Auth{User: "alice", Pass: secret}.AsSha256Mechanism())}}
	target := kafkatest.Options{Name: "mtls", Protocol: "SSL", Client: []kgo.Opt{
		kgo.DialTLSConfig(&tls.Config{RootCAs: pool, Certificates: []tls.Certificate{own}})}}
	ca.Broker(t, &source, "none")
	source.Config["connections.max.reauth.ms"] = "2000" // KIP-368: every session ends soon
	ca.Broker(t, &target, "required")
	cs := kafkatest.StartAll(t, kafkatest.Network(t), source, target)
	return contract.Pair{
		Source: contract.NewCluster(t, cs[0].Bootstrap(), fmt.Sprintf(
			"tls = { enabled = true, ca_file = %q }\nsasl = { mechanism = \"scram-sha-256\", username = \"alice\", password_file = %q }",
			caFile, file("password", []byte(secret+"\n"))), source.Client...),
		Target: contract.NewCluster(t, cs[1].Bootstrap(), fmt.Sprintf(
			"tls = { enabled = true, ca_file = %q, cert_file = %q, key_file = %q }", caFile, certFile, keyFile), target.Client...),
		Real: true,
	}
}

// TestSecureKafka goes both ways between two secured clusters, so that fetching
// and producing meet each kind of security, and sessions end under load.
func TestSecureKafka(t *testing.T) {
	kafkatest.Need(t)
	p := secure(t)
	contract.Play(t, func(testing.TB) contract.Pair { return p }, []contract.Scenario{
		{Name: "secure", Real: true, Run: securedBothWays},
		{Name: "wrong-password", Real: true, Run: wrongPasswordIsToldWithoutIt},
	})
}

func securedBothWays(e *contract.Env) {
	there, back := e.Topic("there"), e.Topic("back")
	e.Create(e.Source, there, 3)
	e.Create(e.Target, back, 3)
	load, loadBack := e.Load(e.Source, there, 3), e.Load(e.Target, back, 3)
	m := e.Start(
		contract.Flow{From: "one", To: "two"},
		contract.Flow{From: "two", To: "one", Source: e.Target, Target: e.Source},
	)
	// More records than come in the time of several sessions.
	m.Flows[0].Progress(there, 20_000)
	m.Flows[1].Progress(back, 20_000)
	load.Stop()
	loadBack.Stop()
	m.Flows[0].CaughtUp(there)
	m.Flows[1].CaughtUp(back)
	m.Flows[0].WantSame(there)
	m.Flows[1].WantSame(back)
	for _, f := range m.Flows {
		for kind, n := range f.Status().Errors {
			if n != 0 {
				e.Errorf("flow from %s: %d errors of kind %s: the end of a session is none", f.From, n, kind)
			}
		}
	}
}

// The mirror says whom a cluster does not let in, and never with what password.
func wrongPasswordIsToldWithoutIt(e *contract.Env) {
	topic := e.Topic("t")
	e.Create(e.Source, topic, 1)
	wrong := "not the " + secret
	file := filepath.Join(e.TempDir(), "password")
	if err := os.WriteFile(file, []byte(wrong), 0o600); err != nil {
		e.Fatal(err)
	}
	_, table, _ := strings.Cut(e.Source.Table, "password_file = ")
	right, err := strconv.Unquote(strings.TrimSuffix(strings.TrimSpace(table), " }"))
	if err != nil {
		e.Fatal(err)
	}
	source := *e.Source
	source.Table = strings.Replace(source.Table, right, file, 1)
	m := e.Start(contract.Flow{From: "stranger", Source: &source})
	m.Wait("the refusal to be told", func() string {
		s := m.Status()
		if !strings.Contains(strings.ToLower(s.Reason), "sasl") {
			return fmt.Sprintf("state %s, reason %q", s.State, s.Reason)
		}
		return ""
	})
	if reason := m.Status().Reason; strings.Contains(reason, wrong) {
		e.Errorf("the reason shows the password: %s", reason)
	}
	// The file is read again at each try.
	if err := os.WriteFile(file, []byte(secret), 0o600); err != nil {
		e.Fatal(err)
	}
	e.Put(e.Source, topic, contract.Values(0, "x")...)
	m.CaughtUp(topic)
	m.Stop()
	if log := m.Log(); strings.Contains(log, wrong) || strings.Contains(log, secret) {
		e.Errorf("the log shows a password:\n%s", log)
	}
}
