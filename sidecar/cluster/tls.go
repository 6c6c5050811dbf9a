package cluster

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"os"

	"mirror/sidecar/config"
)

// secure runs the TLS handshake on conn, with the certificates that the files hold now. It closes
// conn if that fails.
func (c *Cluster) secure(ctx context.Context, conn net.Conn, addr string) (net.Conn, error) {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		conn.Close()
		return nil, err
	}
	cfg, err := tlsConfig(c.cfg.TLS, host)
	if err != nil {
		conn.Close()
		return nil, err
	}
	secured := tls.Client(conn, cfg)
	if err := secured.HandshakeContext(ctx); err != nil {
		conn.Close()
		return nil, fmt.Errorf("tls handshake with %s: %w", addr, err)
	}
	return secured, nil
}

// tlsConfig reads the files that cfg names into the TLS settings for one connection to host; nil if
// TLS is off.
func tlsConfig(cfg config.TLS, host string) (*tls.Config, error) {
	if !cfg.Enabled {
		return nil, nil
	}
	t := &tls.Config{
		MinVersion:         tls.VersionTLS12,
		ServerName:         host,
		InsecureSkipVerify: cfg.InsecureSkipVerify,
	}
	if cfg.ServerName != "" {
		t.ServerName = cfg.ServerName
	}
	if cfg.CAFile != "" {
		pem, err := os.ReadFile(cfg.CAFile)
		if err != nil {
			return nil, fmt.Errorf("read tls.ca_file: %w", err)
		}
		t.RootCAs = x509.NewCertPool()
		if !t.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("tls.ca_file %s holds no certificate in PEM form", cfg.CAFile)
		}
	}
	if cfg.CertFile != "" {
		cert, err := tls.LoadX509KeyPair(cfg.CertFile, cfg.KeyFile)
		if err != nil {
			return nil, fmt.Errorf("load tls.cert_file %s and tls.key_file %s: %w", cfg.CertFile, cfg.KeyFile, err)
		}
		// Also when the broker asks for another authority: its refusal says more than a handshake
		// without a certificate.
		t.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &cert, nil }
	}
	return t, nil
}
