package integration

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/sasl/plain"
	"github.com/twmb/franz-go/pkg/sasl/scram"

	"mirror/integration/contract"
	"mirror/integration/kafkatest"
	"mirror/sidecar/status"
)

// What the mirror's users prove themselves with. None of it may be seen anywhere.
const (
	secret   = "swordfish 7"         // alice's password
	wrong    = "not the swordfish"   // somebody's who is not let in
	replaced = "salmon of last year" // bob's first password
	renewed  = "trout of this year"  // and his second
)

// The principals that the mirror is, on the source and on the target.
const (
	sourceUser = "User:alice"
	targetUser = "User:CN=mirror"
)

// secured is a pair of which the source wants a SCRAM password and the target a
// client certificate, over TLS both, where only an administrator may do anything
// until rights are granted. The mirror's own credentials are in the tables, an
// administrator's in the clients.
type secured struct {
	contract.Pair
	// plain wants a password in the clear, behind a certificate that has expired.
	plain *contract.Cluster
	ca    *kafkatest.CA
	nodes []*kafkatest.Cluster // of source, target, plain
}

func secure(t *testing.T) *secured {
	s := &secured{ca: kafkatest.NewCA(t)}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(s.ca.PEM)
	own, err := tls.X509KeyPair(s.ca.Issue(t, "admin"))
	if err != nil {
		t.Fatal(err)
	}
	source := kafkatest.Options{Name: "scram", Protocol: "SASL_SSL", Scram: map[string]string{"alice": secret, "bob": replaced, "admin": "admin"},
		Client: []kgo.Opt{kgo.DialTLSConfig(&tls.Config{RootCAs: pool}), kgo.SASL(scram.Auth{User: "admin", Pass: "admin"}.AsSha256Mechanism())}}
	target := kafkatest.Options{Name: "mtls", Protocol: "SSL", Client: []kgo.Opt{
		kgo.DialTLSConfig(&tls.Config{RootCAs: pool, Certificates: []tls.Certificate{own}})}}
	open := kafkatest.Options{Name: "plain", Protocol: "SASL_SSL",
		Client: []kgo.Opt{kgo.DialTLSConfig(&tls.Config{InsecureSkipVerify: true}), kgo.SASL(plain.Auth{User: "admin", Pass: "admin"}.AsMechanism())}}
	cert, key := s.ca.Issue(t, "broker")
	s.ca.Broker(&source, "none", cert, key)
	s.ca.Broker(&target, "required", cert, key)
	cert, key = s.ca.IssueExpired(t, "broker")
	s.ca.Broker(&open, "none", cert, key)
	for _, o := range []*kafkatest.Options{&source, &target, &open} {
		o.Config["authorizer.class.name"] = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
		o.Config["super.users"] = "User:ANONYMOUS;User:admin;User:CN=admin" // anonymous: the brokers themselves
	}
	source.Config["connections.max.reauth.ms"] = "2000" // KIP-368: every session ends soon
	open.Config["listener.name.host.sasl.enabled.mechanisms"] = "PLAIN"
	open.Config["listener.name.host.plain.sasl.jaas.config"] = fmt.Sprintf(
		`org.apache.kafka.common.security.plain.PlainLoginModule required user_admin="admin" user_alice="%s";`, secret)
	s.nodes = kafkatest.StartAll(t, kafkatest.Network(t), source, target, open)

	dir := t.TempDir()
	ca := put(t, dir, "ca.pem", s.ca.PEM)
	password := put(t, dir, "password", []byte(secret+"\n"))
	cert, key = s.ca.Issue(t, "mirror")
	s.Pair = contract.Pair{
		Source: contract.NewCluster(t, s.nodes[0].Bootstrap(), scramTable(ca, "alice", password), source.Client...),
		Target: contract.NewCluster(t, s.nodes[1].Bootstrap(), certTable(ca, put(t, dir, "cert.pem", cert), put(t, dir, "key.pem", key)), target.Client...),
		Real:   true,
	}
	s.plain = contract.NewCluster(t, s.nodes[2].Bootstrap(), plainTable("insecure_skip_verify = true", password), open.Client...)
	return s
}

// put writes a file of a secret and returns its name.
func put(t testing.TB, dir, name string, data []byte) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// Lines of a cluster's table.
func scramTable(ca, user, password string) string {
	return fmt.Sprintf("tls = { enabled = true, ca_file = %q }\nsasl = { mechanism = \"scram-sha-256\", username = %q, password_file = %q }", ca, user, password)
}

func certTable(ca, cert, key string) string {
	return fmt.Sprintf("tls = { enabled = true, ca_file = %q, cert_file = %q, key_file = %q }", ca, cert, key)
}

func plainTable(tls, password string) string {
	return fmt.Sprintf("tls = { enabled = true, %s }\nsasl = { mechanism = \"plain\", username = \"alice\", password_file = %q }", tls, password)
}

// rights are those that the README asks for.
func rights(t testing.TB, cluster, of string) (all []kadm.ACLOperation) {
	t.Helper()
	readme, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	row := regexp.MustCompile(`(?m)^\| ` + cluster + ` \| ` + of + ` \| ([A-Z_, ]+) \|`).FindSubmatch(readme)
	if row == nil {
		t.Fatalf("the README does not say which rights are needed on %s of the %s", of, cluster)
	}
	for name := range strings.SplitSeq(string(row[1]), ", ") {
		op, err := kmsg.ParseACLOperation(name)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, op)
	}
	return all
}

// grant gives rights on the topics whose names begin with prefix, and waits until
// the broker knows of them.
func grant(e *contract.Env, c *contract.Cluster, principal, prefix string, rights []kadm.ACLOperation) {
	e.Helper()
	allow(e, c, "the rights on "+prefix, len(rights),
		kadm.NewACLs().Allow(principal).AllowHosts("*").ResourcePatternType(kadm.ACLPatternPrefixed).Topics(prefix).Operations(rights...))
}

// grantGroups gives rights on all groups.
func grantGroups(e *contract.Env, c *contract.Cluster, principal string, rights []kadm.ACLOperation) {
	e.Helper()
	allow(e, c, "the rights on groups", len(rights),
		kadm.NewACLs().Allow(principal).AllowHosts("*").ResourcePatternType(kadm.ACLPatternLiteral).Groups("*").Operations(rights...))
}

// allow makes so many rights.
func allow(e *contract.Env, c *contract.Cluster, what string, many int, acls *kadm.ACLBuilder) {
	e.Helper()
	admin := kadm.NewClient(c.Client(e))
	if _, err := admin.CreateACLs(e.Context(), acls); err != nil {
		e.Fatal(err)
	}
	e.Eventually(what, func() string {
		rs, err := admin.DescribeACLs(e.Context(), acls)
		if err != nil {
			return err.Error()
		}
		n := 0
		for _, r := range rs {
			n += len(r.Described)
		}
		if n < many {
			return fmt.Sprintf("%d of %d", n, many)
		}
		return ""
	})
}

// grantFlow gives what a flow needs, and no more.
func grantFlow(e *contract.Env, f contract.Flow, from, to string, topics ...string) {
	e.Helper()
	for _, t := range topics {
		grant(e, f.Source, from, t, rights(e, "source", "the topics"))
	}
	grant(e, f.Target, to, f.From+"."+e.Topic(""), rights(e, "target", "their targets"))
	grant(e, f.Target, to, "mm2-offsets."+f.From+".internal", rights(e, "target", "the positions topic"))
	grant(e, f.Target, to, "mm2-offset-syncs."+f.From+".internal", rights(e, "target", "the topic of offset syncs"))
	grant(e, f.Target, to, "mm2-plugin-state."+f.From+".", rights(e, "target", "the topics of plugins' state"))
	grant(e, f.Target, to, f.From+".checkpoints.internal", rights(e, "target", "the topic of checkpoints"))
	grantGroups(e, f.Source, from, rights(e, "source", "the groups"))
}

// TestSecureKafka goes both ways between two secured clusters, so that fetching
// and producing meet each kind of security, and sessions end under load.
func TestSecureKafka(t *testing.T) {
	kafkatest.Need(t)
	s := secure(t)
	contract.Play(t, func(testing.TB) contract.Pair { return s.Pair }, []contract.Scenario{
		{Name: "replaced", Real: true, Alone: true, Run: s.secretsAreReplacedUnderLoad},
		{Name: "secure", Real: true, Run: securedBothWays},
		{Name: "plain", Real: true, Run: s.plainPasswords},
		{Name: "least-rights", Real: true, Run: killedWithTheLeastRights},
		{Name: "trouble", Real: true, Limit: 3 * time.Minute, Run: s.eachTroubleIsTold},
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
	for i, c := range []*contract.Cluster{e.Source, e.Target} { // groups are read in sessions, too
		var at kadm.Offsets
		at.AddOffset([]string{there, back}[i], 0, 0, -1)
		if err := kadm.NewClient(c.Client(e)).CommitAllOffsets(e.Context(), e.Topic("group"), at); err != nil {
			e.Fatal(err)
		}
	}
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
		e.Eventually("a checkpoint", func() string {
			if n := f.Status().Failover.Checkpoints; n != 1 {
				return fmt.Sprintf("%d", n)
			}
			return ""
		})
		for kind, n := range f.Status().Errors {
			if n != 0 {
				e.Errorf("flow from %s: %d errors of kind %s: the end of a session is none", f.From, n, kind)
			}
		}
	}
}

// A password that crosses as it is (SASL PLAIN).
func (s *secured) plainPasswords(e *contract.Env) {
	topic := e.Topic("t")
	e.Create(s.plain, topic, 1)
	e.Put(s.plain, topic, contract.Numbered(0, "v", 100)...)
	flow := contract.Flow{From: "plain", Source: s.plain}
	grantFlow(e, contract.Flow{From: "plain", Source: s.plain, Target: e.Target}, sourceUser, targetUser, topic)
	m := e.Start(flow)
	m.CaughtUp(topic)
	m.WantSame(topic)
}

// The rights that the README asks for, and no others, are enough to resume after a
// kill without a record lost or repeated.
func killedWithTheLeastRights(e *contract.Env) {
	topic := e.Topic("t")
	e.Create(e.Source, topic, 3)
	flow := contract.Flow{From: "least", Source: e.Source, Target: e.Target}
	grantFlow(e, flow, sourceUser, targetUser, topic)
	load := e.Load(e.Source, topic, 3)
	for range 3 {
		p := e.Launch(flow)
		p.Progress(topic, 3000)
		p.Kill()
	}
	load.Stop()
	p := e.Launch(flow)
	p.CaughtUp(topic)
	p.WantSame(topic)
	if s := p.Status(); s.Errors[status.ErrorResume] != 0 {
		e.Errorf("%d partitions could not be resumed", s.Errors[status.ErrorResume])
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
			if p.Topic == shut && strings.Contains(p.Reason, "TOPIC_AUTHORIZATION_FAILED") &&
				strings.Contains(p.Reason, "cluster part: ") && strings.Contains(p.Reason, "grant the mirror's user READ") {
				return ""
			}
		}
		return "nothing is said of it"
	})
	grant(e, e.Source, sourceUser, shut, []kadm.ACLOperation{kadm.OpRead})
	m.CaughtUp(shut)
	m.WantSame(free, shut)
}
