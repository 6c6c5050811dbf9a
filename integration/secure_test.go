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

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl/scram"

	"mirror/integration/contract"
	"mirror/integration/kafkatest"
)

const secret = "swordfish 7" // alice's password

// The principals that the mirror is, on the source and on the target.
const (
	sourceUser = "User:alice"
	targetUser = "User:CN=mirror"
)

// secure is a pair of which the source wants a password and the target a client
// certificate, over TLS both, and where only an administrator may do anything
// until rights are granted. The mirror's own credentials are in the tables, an
// administrator's in the clients.
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
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(ca.PEM)
	caFile := file("ca.pem", ca.PEM)
	cert, key := ca.Issue(t, "mirror")
	certFile, keyFile := file("cert.pem", cert), file("key.pem", key)
	own, err := tls.X509KeyPair(ca.Issue(t, "admin"))
	if err != nil {
		t.Fatal(err)
	}

	source := kafkatest.Options{Name: "scram", Protocol: "SASL_SSL", Scram: map[string]string{"alice": secret, "admin": "admin"}, Client: []kgo.Opt{
		kgo.DialTLSConfig(&tls.Config{RootCAs: pool}), kgo.SASL(scram.Auth{User: "admin", Pass: "admin"}.AsSha256Mechanism())}}
	target := kafkatest.Options{Name: "mtls", Protocol: "SSL", Client: []kgo.Opt{
		kgo.DialTLSConfig(&tls.Config{RootCAs: pool, Certificates: []tls.Certificate{own}})}}
	ca.Broker(t, &source, "none")
	ca.Broker(t, &target, "required")
	for _, o := range []*kafkatest.Options{&source, &target} {
		o.Config["authorizer.class.name"] = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
		o.Config["super.users"] = "User:ANONYMOUS;User:admin;User:CN=admin" // anonymous: the brokers themselves
	}
	source.Config["connections.max.reauth.ms"] = "2000" // KIP-368: every session ends soon
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

// The rights that the README asks for.
var (
	sourceRights    = []kadm.ACLOperation{kadm.OpRead, kadm.OpDescribe, kadm.OpDescribeConfigs}
	targetRights    = []kadm.ACLOperation{kadm.OpCreate, kadm.OpAlter, kadm.OpWrite, kadm.OpDescribe, kadm.OpDescribeConfigs}
	positionsRights = []kadm.ACLOperation{kadm.OpCreate, kadm.OpRead, kadm.OpWrite, kadm.OpDescribe, kadm.OpDescribeConfigs}
)

// grant gives rights on the topics whose names begin with prefix, and waits until
// the broker knows of them.
func grant(e *contract.Env, c *contract.Cluster, principal, prefix string, rights []kadm.ACLOperation) {
	e.Helper()
	admin := kadm.NewClient(c.Client(e))
	acls := kadm.NewACLs().Allow(principal).AllowHosts("*").ResourcePatternType(kadm.ACLPatternPrefixed).Topics(prefix).Operations(rights...)
	if _, err := admin.CreateACLs(e.Context(), acls); err != nil {
		e.Fatal(err)
	}
	e.Eventually("the rights on "+prefix, func() string {
		rs, err := admin.DescribeACLs(e.Context(), acls)
		if err != nil {
			return err.Error()
		}
		n := 0
		for _, r := range rs {
			n += len(r.Described)
		}
		if n < len(rights) {
			return fmt.Sprintf("%d of %d", n, len(rights))
		}
		return ""
	})
}

// grantFlow gives what a flow needs, and no more.
func grantFlow(e *contract.Env, f contract.Flow, from, to string, topics ...string) {
	e.Helper()
	for _, t := range topics {
		grant(e, f.Source, from, t, sourceRights)
	}
	grant(e, f.Target, to, f.From+"."+e.Topic(""), targetRights)
	grant(e, f.Target, to, "mm2-offsets."+f.From+".internal", positionsRights)
}

// TestSecureKafka goes both ways between two secured clusters, so that fetching
// and producing meet each kind of security, and sessions end under load.
func TestSecureKafka(t *testing.T) {
	kafkatest.Need(t)
	p := secure(t)
	contract.Play(t, func(testing.TB) contract.Pair { return p }, []contract.Scenario{
		{Name: "secure", Real: true, Run: securedBothWays},
		{Name: "wrong-password", Real: true, Run: wrongPasswordIsToldWithoutIt},
		{Name: "missing-right", Real: true, Run: missingRightIsItsTopicsTrouble},
	})
}

func securedBothWays(e *contract.Env) {
	there, back := e.Topic("there"), e.Topic("back")
	e.Create(e.Source, there, 3)
	e.Create(e.Target, back, 3)
	flow := contract.Flow{From: "one", To: "two", Source: e.Source, Target: e.Target}
	flowBack := contract.Flow{From: "two", To: "one", Source: e.Target, Target: e.Source}
	grantFlow(e, flow, sourceUser, targetUser, there)
	grantFlow(e, flowBack, targetUser, sourceUser, back)
	load, loadBack := e.Load(e.Source, there, 3), e.Load(e.Target, back, 3)
	m := e.Start(flow, flowBack)
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
	flow := contract.Flow{From: "stranger", Source: &source, Target: e.Target}
	grantFlow(e, flow, sourceUser, targetUser, topic)
	m := e.Start(flow)
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

// A topic that the mirror may see but not read is told and disturbs no other.
func missingRightIsItsTopicsTrouble(e *contract.Env) {
	free, shut := e.Topic("free"), e.Topic("shut")
	for _, t := range []string{free, shut} {
		e.Create(e.Source, t, 1)
		e.Put(e.Source, t, contract.Values(0, t)...)
	}
	flow := contract.Flow{From: "part", Source: e.Source, Target: e.Target}
	grantFlow(e, flow, sourceUser, targetUser, free)
	grant(e, e.Source, sourceUser, shut, []kadm.ACLOperation{kadm.OpDescribe, kadm.OpDescribeConfigs})
	m := e.Start(flow)
	m.CaughtUp(free)
	m.Wait("the missing right to be told", func() string {
		s := m.Status()
		for _, p := range s.Partitions {
			if p.Topic == shut && strings.Contains(strings.ToLower(p.Reason), "authoriz") {
				return ""
			}
		}
		for _, t := range s.Topics {
			if t.Source == shut && strings.Contains(strings.ToLower(t.Reason), "authoriz") {
				return ""
			}
		}
		return "nothing is said of it"
	})
	grant(e, e.Source, sourceUser, shut, []kadm.ACLOperation{kadm.OpRead})
	m.CaughtUp(shut)
	m.WantSame(free, shut)
}
