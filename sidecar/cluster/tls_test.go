package cluster

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"

	"mirror/sidecar/config"
)

// authority signs certificates for a test.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	a := &authority{}
	der, key := a.sign(t, &x509.Certificate{
		Subject: pkix.Name{CommonName: "authority"}, NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	})
	a.cert, _ = x509.ParseCertificate(der)
	a.key = key
	return a
}

func (a *authority) sign(t *testing.T, template *x509.Certificate) ([]byte, *ecdsa.PrivateKey) {
	t.Helper()
	template.SerialNumber = big.NewInt(time.Now().UnixNano())
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	parent, signer := a.cert, a.key
	if parent == nil {
		parent, signer = template, key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, signer)
	if err != nil {
		t.Fatal(err)
	}
	return der, key
}

// leaf is what a certificate is for.
type leaf struct {
	names []string
	ips   []net.IP
	until time.Time
}

var loopback = leaf{ips: []net.IP{net.IPv4(127, 0, 0, 1)}, until: time.Now().Add(time.Hour)}

func (a *authority) issue(t *testing.T, l leaf) ([]byte, *ecdsa.PrivateKey) {
	t.Helper()
	return a.sign(t, &x509.Certificate{
		Subject: pkix.Name{CommonName: "leaf"}, DNSNames: l.names, IPAddresses: l.ips,
		NotBefore: time.Now().Add(-2 * time.Hour), NotAfter: l.until,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	})
}

// server is a broker's side, which asks for a client certificate if clients is not nil.
func (a *authority) server(t *testing.T, l leaf, clients *authority) kfake.Opt {
	t.Helper()
	der, key := a.issue(t, l)
	cfg := &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}}
	if clients != nil {
		cfg.ClientAuth, cfg.ClientCAs = tls.RequireAndVerifyClientCert, x509.NewCertPool()
		cfg.ClientCAs.AddCert(clients.cert)
	}
	return kfake.TLS(cfg)
}

func (a *authority) writeCA(t *testing.T, path string) {
	t.Helper()
	write(t, path, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.cert.Raw})))
}

// writePair writes a client certificate and its key.
func (a *authority) writePair(t *testing.T, cert, key string) {
	t.Helper()
	der, k := a.issue(t, loopback)
	raw, err := x509.MarshalECPrivateKey(k)
	if err != nil {
		t.Fatal(err)
	}
	write(t, cert, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})))
	write(t, key, string(pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: raw})))
}

func TestTLS(t *testing.T) {
	ours, theirs := newAuthority(t), newAuthority(t)
	ca := filepath.Join(t.TempDir(), "ca.pem")
	ours.writeCA(t, ca)
	expired := loopback
	expired.until = time.Now().Add(-time.Hour)
	named := leaf{names: []string{"broker.internal"}, until: loopback.until}
	tests := []struct {
		name string
		opt  kfake.Opt
		tls  config.TLS
		want string // in the error; "": none
	}{
		{"known authority", ours.server(t, loopback, nil), config.TLS{CAFile: ca}, ""},
		{"unknown authority", theirs.server(t, loopback, nil), config.TLS{CAFile: ca}, "set tls.ca_file"},
		{"an authority that the system does not know", ours.server(t, loopback, nil), config.TLS{}, "set tls.ca_file"},
		{"not verified", theirs.server(t, loopback, nil), config.TLS{CAFile: ca, InsecureSkipVerify: true}, ""},
		{"expired", ours.server(t, expired, nil), config.TLS{CAFile: ca}, "not valid at this time"},
		{"another name", ours.server(t, named, nil), config.TLS{CAFile: ca}, "set tls.server_name"},
		{"another name, as configured", ours.server(t, named, nil), config.TLS{CAFile: ca, ServerName: "broker.internal"}, ""},
		{"no client certificate", ours.server(t, loopback, ours), config.TLS{CAFile: ca}, "check tls.cert_file"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := open(t, fake(t, tt.opt), func(c *config.Cluster) { c.TLS = tt.tls; c.TLS.Enabled = true })
			switch err := reach(t, c); {
			case err == nil && tt.want != "":
				t.Errorf("connected, want an error with %q", tt.want)
			case err != nil && (tt.want == "" || !strings.Contains(err.Error(), tt.want)):
				t.Errorf("got %v, want %q", err, tt.want)
			}
		})
	}
}

// TestCertificatesAreReadAgain renews every file under an open cluster.
func TestCertificatesAreReadAgain(t *testing.T) {
	brokers, clients, others := newAuthority(t), newAuthority(t), newAuthority(t)
	dir := t.TempDir()
	ca, cert, key := filepath.Join(dir, "ca.pem"), filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	others.writeCA(t, ca)
	others.writePair(t, cert, key)
	c := open(t, fake(t, brokers.server(t, loopback, clients)), func(c *config.Cluster) {
		c.TLS = config.TLS{Enabled: true, CAFile: ca, CertFile: cert, KeyFile: key}
	})
	expect := func(step, want string) {
		t.Helper()
		err := reach(t, c)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: got %v, want %q", step, err, want)
		}
	}
	expect("both of others", "set tls.ca_file")
	brokers.writeCA(t, ca)
	expect("certificate of others", "check tls.cert_file")
	clients.writePair(t, cert, key)
	expect("both right", "")
	write(t, ca, "half a fi")
	expect("a broken file", "holds no certificate")
}

func TestTLSToAPlaintextListener(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() { // answers with what no TLS record begins with
		defer close(done)
		conn, err := l.Accept()
		if err != nil {
			return
		}
		conn.Write([]byte("hello, hello"))
		conn.Read(make([]byte, 1))
		conn.Close()
	}()
	defer func() { l.Close(); <-done }()
	c := open(t, fake(t), func(c *config.Cluster) { c.TLS.Enabled = true })
	_, err = c.Dial(t.Context(), l.Addr().String())
	if err = c.Explain(err); err == nil || !strings.Contains(err.Error(), "does not speak TLS") || !strings.Contains(err.Error(), l.Addr().String()) {
		t.Errorf("got %v", err)
	}
}
