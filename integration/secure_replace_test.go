package integration

import (
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"

	"mirror/integration/contract"
)

// A password and a certificate that are replaced on disk are used for the next
// connection: when the old ones are worth nothing any more and the connections
// that they opened are cut, copying goes on.
func (s *secured) secretsAreReplacedUnderLoad(e *contract.Env) {
	topic := e.Topic("t")
	e.Create(e.Source, topic, 3)
	dir := e.TempDir()
	ca, password := put(e, dir, "ca.pem", s.ca.PEM), put(e, dir, "password", []byte(replaced))
	oldCert, oldKey := s.ca.Issue(e, "old-mirror")
	newCert, newKey := s.ca.Issue(e, "new-mirror")
	source, target := *e.Source, *e.Target
	source.Table = scramTable(ca, "bob", password)
	target.Table = certTable(ca, put(e, dir, "cert.pem", oldCert), put(e, dir, "key.pem", oldKey))
	flow := contract.Flow{From: "replaced", Source: &source, Target: &target}
	grantFlow(e, flow, "User:bob", "User:CN=old-mirror", topic)
	grantFlow(e, flow, "User:bob", "User:CN=new-mirror", topic)
	load := e.Load(e.Source, topic, 3)
	m := e.Start(flow)
	m.Progress(topic, 3000)

	put(e, dir, "password", []byte(renewed))
	put(e, dir, "cert.pem", newCert)
	put(e, dir, "key.pem", newKey)
	admin := kadm.NewClient(e.Source.Client(e))
	rs, err := admin.AlterUserSCRAMs(e.Context(), nil, []kadm.UpsertSCRAM{
		{User: "bob", Mechanism: kadm.ScramSha256, Iterations: 4096, Password: renewed}})
	if err == nil {
		err = rs.Error()
	}
	if err != nil {
		e.Fatal(err)
	}
	for _, n := range s.nodes[:2] {
		n.Nodes[0].Proxy.Cut()
		n.Nodes[0].Proxy.Restore()
	}
	m.Progress(topic, 3000)
	// Whoever still comes with the old certificate has no rights from now on.
	old := kadm.NewACLs().Allow("User:CN=old-mirror").AllowHosts().ResourcePatternType(kadm.ACLPatternAny).Topics().Operations()
	deleted, err := kadm.NewClient(e.Target.Client(e)).DeleteACLs(e.Context(), old)
	if err != nil || len(deleted) == 0 {
		e.Fatalf("%d filters for rights, %v", len(deleted), err)
	}
	n := 0
	for _, d := range deleted {
		n += len(d.Deleted)
	}
	if n == 0 {
		e.Fatal("no rights were deleted")
	}
	revoked := time.Now()
	m.Progress(topic, 3000)
	m.Wait("positions to be saved by the new certificate's owner", func() string {
		if at := m.Status().PositionsSave; !at.After(revoked) {
			return fmt.Sprintf("last at %v, the rights ended at %v", at, revoked)
		}
		return ""
	})
	load.Stop()
	m.CaughtUp(topic)
	m.WantSame(topic)
	m.Stop()
	wantWithout(e, m.Log(), replaced, renewed, body(oldKey), body(newKey))
}
