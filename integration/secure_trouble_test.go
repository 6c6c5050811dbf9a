package integration

import (
	"encoding/pem"
	"fmt"
	"strings"

	"mirror/integration/contract"
	"mirror/integration/kafkatest"
)

// trouble is a cluster that does not let the mirror in.
type trouble struct {
	name   string
	change func(*contract.Flow)
	// words are what, where and what next. ADDRESS stands for the cluster's.
	words []string
	mend  func() // something on disk, nil: only another config would help
}

// A cluster that cannot be reached or does not let the mirror in is told, with
// what is wrong, where, and what to do, by validate and by the running mirror, which
// tries again: once the file on disk is right it copies. None of it shows a secret.
func (s *secured) eachTroubleIsTold(e *contract.Env) {
	topic := e.Topic("t")
	e.Create(e.Source, topic, 1)
	e.Create(s.plain, topic, 1)
	e.Put(e.Source, topic, contract.Values(0, "v")...)
	dir := e.TempDir()
	ca := put(e, dir, "ca.pem", s.ca.PEM)
	password := put(e, dir, "password", []byte(secret))
	cert, key := s.ca.Issue(e, "mirror")
	strange := kafkatest.NewCA(e)
	strangeCert, strangeKey := strange.Issue(e, "mirror")
	expiredCert, expiredKey := s.ca.IssueExpired(e, "mirror")
	secrets := []string{secret, wrong, body(key), body(strangeKey), body(expiredKey)}
	overwrite := func(name string, data []byte) { put(e, dir, name, data) }

	for _, x := range []trouble{
		{name: "untrusted", change: func(f *contract.Flow) {
			f.Source.Table = scramTable(put(e, dir, "untrusted.pem", strange.PEM), "alice", password)
		}, words: []string{"certificate signed by unknown authority", "set tls.ca_file"},
			mend: func() { overwrite("untrusted.pem", s.ca.PEM) }},
		{name: "expired", change: func(f *contract.Flow) {
			*f.Source = *s.plain
			f.Source.Table = plainTable(fmt.Sprintf("ca_file = %q", ca), password)
		}, words: []string{"certificate has expired", "renew it"}},
		{name: "other-name", change: func(f *contract.Flow) {
			f.Source.Table = strings.Replace(e.Source.Table, "enabled = true", `enabled = true, server_name = "kafka.example.com"`, 1)
		}, words: []string{"kafka.example.com", "set tls.server_name"}},
		{name: "not-tls", change: func(f *contract.Flow) {
			_, sasl, _ := strings.Cut(e.Source.Table, "\n")
			f.Source.Table = sasl
		}, words: []string{"set tls.enabled = true"}},
		{name: "nobody", change: func(f *contract.Flow) {
			f.Source.Bootstrap = []string{"127.0.0.1:1"}
		}, words: []string{"connection refused", "nothing listens there"}},
		{name: "wrong-scram", change: func(f *contract.Flow) {
			f.Source.Table = scramTable(ca, "alice", put(e, dir, "wrong-scram", []byte(wrong)))
		}, words: []string{"SASL_AUTHENTICATION_FAILED", "check user, secret and mechanism"},
			mend: func() { overwrite("wrong-scram", []byte(secret)) }},
		{name: "wrong-plain", change: func(f *contract.Flow) {
			*f.Source = *s.plain
			f.Source.Table = plainTable("insecure_skip_verify = true", put(e, dir, "wrong-plain", []byte(wrong)))
		}, words: []string{"SASL_AUTHENTICATION_FAILED", "check user, secret and mechanism"},
			mend: func() { overwrite("wrong-plain", []byte(secret)) }},
		{name: "other-mechanism", change: func(f *contract.Flow) {
			f.Source.Table = strings.Replace(e.Source.Table, "scram-sha-256", "plain", 1)
		}, words: []string{"UNSUPPORTED_SASL_MECHANISM", "set sasl.mechanism to one that the listener offers"}},
		{name: "no-certificate", change: func(f *contract.Flow) {
			f.Target.Table = fmt.Sprintf("tls = { enabled = true, ca_file = %q }", ca)
		}, words: []string{"the broker refuses the mirror's certificate", "check tls.cert_file"}},
		{name: "strange-certificate", change: func(f *contract.Flow) {
			f.Target.Table = certTable(ca, put(e, dir, "strange-cert.pem", strangeCert), put(e, dir, "strange-key.pem", strangeKey))
		}, words: []string{"the broker refuses the mirror's certificate", "check tls.cert_file"},
			mend: func() { overwrite("strange-key.pem", key); overwrite("strange-cert.pem", cert) }},
		{name: "expired-certificate", change: func(f *contract.Flow) {
			f.Target.Table = certTable(ca, put(e, dir, "expired-cert.pem", expiredCert), put(e, dir, "expired-key.pem", expiredKey))
		}, words: []string{"the broker refuses the mirror's certificate", "check tls.cert_file"},
			mend: func() { overwrite("expired-key.pem", key); overwrite("expired-cert.pem", cert) }},
	} {
		source, target := *e.Source, *e.Target
		flow := contract.Flow{From: "trouble-" + x.name, Source: &source, Target: &target, Topics: topic}
		x.change(&flow)
		at, alias := flow.Source.Bootstrap[0], flow.From
		if flow.Target.Table != e.Target.Table {
			at, alias = flow.Target.Bootstrap[0], "dst"
		}
		x.words = append(x.words, "cluster "+alias, at)
		reached := *flow.Source
		if x.mend == nil { // it will not get there
			reached = *e.Source
		}
		grantFlow(e, contract.Flow{From: flow.From, Source: &reached, Target: e.Target}, sourceUser, targetUser, topic)

		code, said := e.Validate(flow)
		if code != 1 {
			e.Errorf("%s: validate --connect exits with %d", x.name, code)
		}
		has(e, x, "validate --connect", said)
		p := e.LaunchAnyway(flow)
		p.Wait(x.name+" to be told by /readyz", func() string {
			r := p.Readiness()
			for _, w := range x.words {
				if !strings.Contains(strings.Join(r.Reasons, "\n"), w) {
					return fmt.Sprintf("without %q: %q", w, r.Reasons)
				}
			}
			return ""
		})
		p.Wait(x.name+" to be logged", func() string {
			if !strings.Contains(p.Log(), "cannot start yet") {
				return p.Log()
			}
			return ""
		})
		has(e, x, "the log", p.Log())
		if n := strings.Count(p.Log(), "cannot start yet"); n > 3 {
			e.Errorf("%s: it is logged %d times", x.name, n)
		}
		for _, path := range []string{"/status", "/metrics", "/readyz"} {
			_, b, err := p.Get(path)
			if err != nil {
				e.Error(err)
			}
			said += string(b)
		}
		if x.mend != nil {
			x.mend()
			p.Ready()
			p.CaughtUp(topic)
		}
		p.Kill()
		wantWithout(e, said+p.Log(), secrets...)
	}
}

func has(e *contract.Env, x trouble, where, text string) {
	e.Helper()
	for _, w := range x.words {
		if !strings.Contains(text, w) {
			e.Errorf("%s: %s has no %q:\n%s", x.name, where, w, text)
		}
	}
}

// wantWithout checks that no secret is seen in what was said.
func wantWithout(e *contract.Env, said string, secrets ...string) {
	e.Helper()
	for _, s := range secrets {
		if strings.Contains(said, s) {
			e.Errorf("the secret %q is shown in\n%s", s, said)
		}
	}
}

// body is a line of what a PEM file holds.
func body(file []byte) string {
	block, _ := pem.Decode(file)
	return strings.Split(string(pem.EncodeToMemory(block)), "\n")[1]
}
