package kafkatest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"slices"
	"testing"
	"time"
)

// CA issues certificates for tests.
type CA struct {
	PEM  []byte // its own certificate
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// NewCA makes a certificate authority.
func NewCA(t testing.TB) *CA {
	t.Helper()
	ca := &CA{}
	ca.cert, ca.PEM, ca.key = issue(t, &x509.Certificate{
		Subject: pkix.Name{CommonName: "test CA"}, NotAfter: time.Now().Add(24 * time.Hour), IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageCertSign}, nil)
	return ca
}

// Issue makes a certificate for 127.0.0.1, good for servers and clients for a day, and its key.
func (ca *CA) Issue(t testing.TB, name string) (certPEM, keyPEM []byte) {
	t.Helper()
	return ca.issueUntil(t, name, time.Now().Add(24*time.Hour))
}

// IssueExpired makes one that was good until an hour ago.
func (ca *CA) IssueExpired(t testing.TB, name string) (certPEM, keyPEM []byte) {
	t.Helper()
	return ca.issueUntil(t, name, time.Now().Add(-time.Hour))
}

func (ca *CA) issueUntil(t testing.TB, name string, until time.Time) (certPEM, keyPEM []byte) {
	t.Helper()
	_, cert, key := issue(t, &x509.Certificate{
		Subject: pkix.Name{CommonName: name}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, NotAfter: until,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}}, ca)
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return cert, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})
}

// Broker gives a cluster's options a certificate that the CA has issued, with its
// key, and the CA to check clients' ones with: clientAuth is none, requested or
// required.
func (ca *CA) Broker(o *Options, clientAuth string, cert, key []byte) {
	o.Files = map[string][]byte{"/tmp/keystore.pem": slices.Concat(key, cert, ca.PEM), "/tmp/truststore.pem": ca.PEM}
	o.Config = map[string]string{
		"ssl.keystore.type":       "PEM",
		"ssl.keystore.location":   "/tmp/keystore.pem",
		"ssl.truststore.type":     "PEM",
		"ssl.truststore.location": "/tmp/truststore.pem",
		"ssl.client.auth":         clientAuth,
	}
}

func issue(t testing.TB, tmpl *x509.Certificate, by *CA) (*x509.Certificate, []byte, *ecdsa.PrivateKey) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	tmpl.SerialNumber, err = rand.Int(rand.Reader, big.NewInt(1<<62))
	if err != nil {
		t.Fatal(err)
	}
	tmpl.NotBefore = time.Now().Add(-2 * time.Hour)
	parent, signer := tmpl, key
	if by != nil {
		parent, signer = by.cert, by.key
	}
	der, err := x509.CreateCertificate(rand.Reader, tmpl, parent, key.Public(), signer)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return cert, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), key
}
