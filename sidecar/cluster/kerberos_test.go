package cluster

import (
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jcmturner/gofork/encoding/asn1"
	"github.com/jcmturner/gokrb5/v8/crypto"
	krb5gssapi "github.com/jcmturner/gokrb5/v8/gssapi"
	"github.com/jcmturner/gokrb5/v8/iana/etypeID"
	"github.com/jcmturner/gokrb5/v8/iana/keyusage"
	"github.com/jcmturner/gokrb5/v8/iana/msgtype"
	"github.com/jcmturner/gokrb5/v8/keytab"
	"github.com/jcmturner/gokrb5/v8/messages"
	"github.com/jcmturner/gokrb5/v8/types"

	"mirror/sidecar/config"
)

const realm = "EXAMPLE.TEST"

// kdc is a key distribution center that gives tickets to whoever has the key of a principal.
type kdc struct {
	keys     *keytab.Keytab // of all principals
	listener net.Listener
	wg       sync.WaitGroup
	session  types.EncryptionKey // of the last login
}

func newKDC(t *testing.T, principals ...string) *kdc {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	k := &kdc{keys: keysOf(t, append(principals, "krbtgt/"+realm)...), listener: l}
	k.wg.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			if err := k.serve(conn); err != nil {
				t.Errorf("kdc: %v", err)
			}
			conn.Close()
		}
	})
	t.Cleanup(func() { l.Close(); k.wg.Wait() })
	return k
}

// keysOf returns a keytab in which each principal has a key by its name.
func keysOf(t *testing.T, principals ...string) *keytab.Keytab {
	t.Helper()
	keys := keytab.New()
	for _, p := range principals {
		if err := keys.AddEntry(p, realm, "password of "+p, time.Now(), 1, etypeID.AES256_CTS_HMAC_SHA1_96); err != nil {
			t.Fatal(err)
		}
	}
	return keys
}

// serve answers one request, framed as in RFC 4120, 7.2.2.
func (k *kdc) serve(conn net.Conn) error {
	var size [4]byte
	if _, err := io.ReadFull(conn, size[:]); err != nil {
		return err
	}
	b := make([]byte, binary.BigEndian.Uint32(size[:]))
	if _, err := io.ReadFull(conn, b); err != nil {
		return err
	}
	answer, err := k.answer(b)
	if err != nil {
		return err
	}
	_, err = conn.Write(append(binary.BigEndian.AppendUint32(nil, uint32(len(answer))), answer...))
	return err
}

func (k *kdc) answer(b []byte) ([]byte, error) {
	var as messages.ASReq
	if err := as.Unmarshal(b); err == nil {
		key, _, err := k.keys.GetEncryptionKey(as.ReqBody.CName, realm, 1, etypeID.AES256_CTS_HMAC_SHA1_96)
		if err != nil {
			return nil, err
		}
		rep, session, err := k.ticket(as.ReqBody.CName, as.ReqBody.SName, as.ReqBody.Nonce, key, keyusage.AS_REP_ENCPART)
		if err != nil {
			return nil, err
		}
		k.session = session
		rep.MsgType = msgtype.KRB_AS_REP
		return (&messages.ASRep{KDCRepFields: rep}).Marshal()
	}
	var tgs messages.TGSReq
	if err := tgs.Unmarshal(b); err != nil {
		return nil, err
	}
	cname := types.PrincipalName{NameType: 1, NameString: []string{"mirror"}}
	rep, _, err := k.ticket(cname, tgs.ReqBody.SName, tgs.ReqBody.Nonce, k.session, keyusage.TGS_REP_ENCPART_SESSION_KEY)
	if err != nil {
		return nil, err
	}
	rep.MsgType = msgtype.KRB_TGS_REP
	return (&messages.TGSRep{KDCRepFields: rep}).Marshal()
}

// ticket returns a ticket of cname for sname; what the client has to know of it is encrypted with
// key.
func (k *kdc) ticket(cname, sname types.PrincipalName, nonce int, key types.EncryptionKey, usage uint32) (messages.KDCRepFields, types.EncryptionKey, error) {
	now, flags := time.Now().UTC(), types.NewKrbFlags()
	end := now.Add(time.Hour)
	fail := func(err error) (messages.KDCRepFields, types.EncryptionKey, error) {
		return messages.KDCRepFields{}, types.EncryptionKey{}, err
	}
	ticket, session, err := messages.NewTicket(cname, realm, sname, realm, flags, k.keys, etypeID.AES256_CTS_HMAC_SHA1_96, 1, now, now, end, end)
	if err != nil {
		return fail(err)
	}
	part := messages.EncKDCRepPart{
		Key: session, LastReqs: []messages.LastReq{{LRValue: now}}, Nonce: nonce, Flags: asn1.BitString(flags),
		AuthTime: now, StartTime: now, EndTime: end, RenewTill: end, SRealm: realm, SName: sname,
	}
	b, err := part.Marshal()
	if err != nil {
		return fail(err)
	}
	encrypted, err := crypto.GetEncryptedData(b, key, usage, 1)
	if err != nil {
		return fail(err)
	}
	return messages.KDCRepFields{PVNO: 5, CRealm: realm, CName: cname, Ticket: ticket, EncPart: encrypted}, session, nil
}

// kerberosFiles writes krb5.conf, which names the KDC, and a keytab.
func kerberosFiles(t *testing.T, kdcAddr string, keys *keytab.Keytab) config.Kerberos {
	t.Helper()
	dir := t.TempDir()
	cfg := config.Kerberos{
		ConfigFile: filepath.Join(dir, "krb5.conf"), KeytabFile: filepath.Join(dir, "keytab"), Principal: "mirror", Service: "kafka",
	}
	write(t, cfg.ConfigFile, fmt.Sprintf("[libdefaults]\n default_realm = %s\n udp_preference_limit = 1\n dns_lookup_kdc = false\n[realms]\n %s = {\n  kdc = %s\n }\n", realm, realm, kdcAddr))
	b, err := keys.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(cfg.KeytabFile, b, 0o600); err != nil {
		t.Fatal(err)
	}
	return cfg
}

func kerberosCluster(t *testing.T, cfg config.Kerberos) *Cluster {
	return open(t, fake(t), func(c *config.Cluster) {
		c.SASL = config.SASL{Mechanism: config.KerberosV5, Kerberos: cfg}
	})
}

// TestKerberos logs in at a KDC and passes through the exchange of RFC 4752 with a broker's side.
func TestKerberos(t *testing.T) {
	k := newKDC(t, "mirror", "kafka/broker.internal")
	cfg := kerberosFiles(t, k.listener.Addr().String(), keysOf(t, "mirror"))
	mechanism, _ := kerberosCluster(t, cfg).SASL(t.Context())
	if mechanism.Name() != "GSSAPI" {
		t.Errorf("the mechanism is %s", mechanism.Name())
	}
	session, first, err := mechanism.Authenticate(t.Context(), "broker.internal:9092")
	if err != nil {
		t.Fatal(err)
	}

	// The token is 0x60, its length, the mechanism's id, 0x0100 and the AP_REQ (RFC 1964).
	var token asn1.RawValue
	if _, err := asn1.Unmarshal(first, &token); err != nil {
		t.Fatal(err)
	}
	var oid asn1.ObjectIdentifier
	rest, err := asn1.Unmarshal(token.Bytes, &oid)
	if err != nil || oid.String() != "1.2.840.113554.1.2.2" || string(rest[:2]) != "\x01\x00" {
		t.Fatalf("the token begins with %v, %x, %v", oid, rest[:2], err)
	}
	var req messages.APReq
	if err := req.Unmarshal(rest[2:]); err != nil {
		t.Fatal(err)
	}
	ok, err := req.Verify(keysOf(t, "kafka/broker.internal"), time.Minute, types.HostAddress{}, nil)
	if !ok || req.Authenticator.CName.PrincipalNameString() != "mirror" {
		t.Fatalf("the broker does not believe the ticket of %v: %v", req.Authenticator.CName, err)
	}

	key := req.Ticket.DecryptedEncPart.Key
	offer := krb5gssapi.WrapToken{Flags: 1, EC: 12, Payload: []byte{1, 0, 0, 0}} // no security layer
	if err := offer.SetCheckSum(key, keyusage.GSSAPI_ACCEPTOR_SEAL); err != nil {
		t.Fatal(err)
	}
	challenge, err := offer.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	done, last, err := session.Challenge(challenge)
	if !done || err != nil {
		t.Fatalf("after the offer: %t, %v", done, err)
	}
	var accepted krb5gssapi.WrapToken
	if err := accepted.Unmarshal(last, false); err != nil {
		t.Fatal(err)
	}
	if ok, err := accepted.Verify(key, keyusage.GSSAPI_INITIATOR_SEAL); !ok {
		t.Errorf("the client's last message: %v", err)
	}
}

func TestKerberosFailures(t *testing.T) {
	k := newKDC(t, "mirror", "kafka/broker.internal")
	addr := k.listener.Addr().String()
	down, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	nobody := down.Addr().String()
	down.Close()

	good := kerberosFiles(t, addr, keysOf(t, "mirror"))
	other, noRealm := good, good
	other.Principal = "other@" + realm
	noRealm.ConfigFile = filepath.Join(t.TempDir(), "krb5.conf")
	write(t, noRealm.ConfigFile, "[libdefaults]\n dns_lookup_kdc = false\n")
	for name, tt := range map[string]struct {
		cfg  config.Kerberos
		want string
	}{
		"no key":    {other, "holds no key of other@" + realm},
		"no realm":  {noRealm, "names no realm"},
		"no keytab": {config.Kerberos{ConfigFile: good.ConfigFile, KeytabFile: "missing", Principal: "mirror"}, "sasl.kerberos.keytab_file missing"},
	} {
		if _, err := mechanism(config.SASL{Mechanism: config.KerberosV5, Kerberos: tt.cfg}); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: got %v, want %q", name, err, tt.want)
		}
	}

	mechanism, _ := kerberosCluster(t, kerberosFiles(t, nobody, keysOf(t, "mirror"))).SASL(t.Context())
	_, _, err = mechanism.Authenticate(t.Context(), "broker.internal:9092")
	if err == nil || !strings.Contains(err.Error(), "get a ticket for kafka at broker.internal:9092 as mirror") || !strings.Contains(err.Error(), nobody) {
		t.Errorf("no KDC: got %v", err)
	}
}
