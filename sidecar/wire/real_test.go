package wire

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
	"math/big"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/sasl"
	"github.com/twmb/franz-go/pkg/sasl/scram"
)

// fake starts a cluster of one broker and returns its address.
func fake(t *testing.T, opts ...kfake.Opt) string {
	t.Helper()
	c, err := kfake.NewCluster(append([]kfake.Opt{kfake.NumBrokers(1), kfake.SeedTopics(1, "topic")}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c.ListenAddrs()[0]
}

// overTCP dials over loopback, in TLS if there is a config.
func overTCP(cfg *tls.Config) func(context.Context, string) (net.Conn, error) {
	return func(ctx context.Context, addr string) (net.Conn, error) {
		if cfg == nil {
			return new(net.Dialer).DialContext(ctx, "tcp", addr)
		}
		return (&tls.Dialer{Config: cfg}).DialContext(ctx, "tcp", addr)
	}
}

// testBatch returns a batch of one record with a value of n bytes.
func testBatch(n int) []byte {
	record := kmsg.Record{Value: bytes.Repeat([]byte("v"), n)}
	body := record.AppendTo(nil)[1:] // without the length, which is 0 so far and one byte
	record.Length = int32(len(body))
	b := kmsg.RecordBatch{Magic: 2, ProducerID: -1, ProducerEpoch: -1, FirstSequence: -1, NumRecords: 1, Records: record.AppendTo(nil)}
	raw := b.AppendTo(nil)
	binary.BigEndian.PutUint32(raw[8:], uint32(len(raw)-12))
	binary.BigEndian.PutUint32(raw[17:], crc32.Checksum(raw[21:], crc32.MakeTable(crc32.Castagnoli)))
	return raw
}

// roundTrip produces batches and fetches them again.
func roundTrip(t *testing.T, c *Conn, batches [][]byte) {
	t.Helper()
	for i, batch := range batches {
		resp, frame, err := c.Request(t.Context(), produceOf(batch))
		if err != nil {
			t.Fatal(err)
		}
		p := resp.(*kmsg.ProduceResponse).Topics[0].Partitions[0]
		if p.ErrorCode != 0 || p.BaseOffset != int64(i) {
			t.Fatalf("batch %d: stored at %d, error %v", i, p.BaseOffset, kerr.ErrorForCode(p.ErrorCode))
		}
		frame.Release()
	}
	resp, frame, err := c.Request(t.Context(), fetchOf(len(batches)))
	if err != nil {
		t.Fatal(err)
	}
	defer frame.Release()
	got := resp.(*kmsg.FetchResponse).Topics[0].Partitions[0].RecordBatches
	for i, batch := range batches {
		if len(got) < len(batch) {
			t.Fatalf("the log ends before batch %d", i)
		}
		if !bytes.Equal(got[61:len(batch)], batch[61:]) {
			t.Errorf("the records of batch %d came back changed", i)
		}
		got = got[len(batch):]
	}
}

func produceOf(batch []byte) *kmsg.ProduceRequest {
	req := kmsg.NewPtrProduceRequest()
	req.Version, req.Acks, req.TimeoutMillis = 12, -1, 1000
	p := kmsg.NewProduceRequestTopicPartition()
	p.Records = batch
	topic := kmsg.NewProduceRequestTopic()
	topic.Topic = "topic"
	topic.Partitions = append(topic.Partitions, p)
	req.Topics = append(req.Topics, topic)
	return req
}

func fetchOf(least int) *kmsg.FetchRequest {
	req := kmsg.NewPtrFetchRequest()
	req.Version, req.MaxWaitMillis, req.MinBytes, req.MaxBytes = 12, 1000, int32(least), 1<<30
	p := kmsg.NewFetchRequestTopicPartition()
	p.PartitionMaxBytes = 1 << 30
	topic := kmsg.NewFetchRequestTopic()
	topic.Topic = "topic"
	topic.Partitions = append(topic.Partitions, p)
	req.Topics = append(req.Topics, topic)
	return req
}

func TestProduceAndFetch(t *testing.T) {
	ca := newAuthority(t)
	server := &tls.Config{
		Certificates: []tls.Certificate{ca.issue(t, "broker")},
		ClientCAs:    ca.pool,
		ClientAuth:   tls.RequireAndVerifyClientCert,
	}
	client := &tls.Config{RootCAs: ca.pool, Certificates: []tls.Certificate{ca.issue(t, "mirror")}}
	tests := []struct {
		name   string
		broker []kfake.Opt
		o      Options
	}{
		{"plaintext", nil, Options{Dial: overTCP(nil)}},
		{"mutual TLS", []kfake.Opt{kfake.TLS(server)}, Options{Dial: overTCP(client)}},
		{"mutual TLS and SCRAM", []kfake.Opt{kfake.TLS(server), kfake.EnableSASL(), kfake.Superuser("SCRAM-SHA-512", "user", "secret")},
			Options{Dial: overTCP(client), SASL: scramOf("secret")}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tt.o.Frames = NewPool(1 << 20)
			c, err := Dial(t.Context(), fake(t, tt.broker...), tt.o)
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			// Some are copied into the request, some are cut in; one needs more than one write.
			roundTrip(t, c, [][]byte{testBatch(10), testBatch(3000), testBatch(900 << 10), testBatch(20)})
			if tt.o.Frames.InUse() != 0 {
				t.Errorf("%d bytes in use at the end", tt.o.Frames.InUse())
			}
		})
	}
}

func scramOf(pass string) func(context.Context) (sasl.Mechanism, error) {
	return func(context.Context) (sasl.Mechanism, error) {
		return scram.Auth{User: "user", Pass: pass}.AsSha512Mechanism(), nil
	}
}

func TestBrokerRefuses(t *testing.T) {
	ca := newAuthority(t)
	secured := fake(t, kfake.TLS(&tls.Config{Certificates: []tls.Certificate{ca.issue(t, "broker")}}))
	guarded := fake(t, kfake.EnableSASL(), kfake.Superuser("SCRAM-SHA-512", "user", "secret"))
	tests := []struct {
		name string
		addr string
		o    Options
		want string
		is   error
	}{
		{"wrong password", guarded, Options{Dial: overTCP(nil), SASL: scramOf("guess")}, "by SCRAM-SHA-512: broker", io.EOF},
		{"plaintext to TLS", secured, Options{Dial: overTCP(nil)}, "TLS", nil},
		{"unknown authority", secured, Options{Dial: overTCP(&tls.Config{})}, "unknown authority", nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c, err := Dial(t.Context(), tt.addr, tt.o)
			if err == nil {
				c.Close()
				t.Fatal("connected")
			}
			if !strings.Contains(err.Error(), tt.addr) || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%q does not name %s and %q", err, tt.addr, tt.want)
			}
			if tt.is != nil && !errors.Is(err, tt.is) {
				t.Errorf("%q does not wrap %q", err, tt.is)
			}
		})
	}
}

// TestSessionOfABroker lets a broker end sessions after two seconds and sends requests, five at a
// time, through two of them.
func TestSessionOfABroker(t *testing.T) {
	addr := fake(t, kfake.EnableSASL(), kfake.Superuser("SCRAM-SHA-512", "user", "secret"),
		kfake.BrokerConfigs(map[string]string{"connections.max.reauth.ms": "2000"}))
	logins := 0
	c, err := Dial(t.Context(), addr, Options{Dial: overTCP(nil), SASL: func(ctx context.Context) (sasl.Mechanism, error) {
		logins++ // under the connection's lock
		return scramOf("secret")(ctx)
	}})
	if err != nil {
		t.Fatal(err)
	}
	slots := make(chan struct{}, 5)
	for began := time.Now(); time.Since(began) < 4*time.Second; {
		slots <- struct{}{}
		req := fetchOf(1 << 20)
		req.MaxWaitMillis = 20
		c.Send(req, func(_ kmsg.Response, f *Frame, err error) {
			if err != nil {
				t.Error(err)
			} else {
				f.Release()
			}
			<-slots
		})
	}
	for range cap(slots) {
		slots <- struct{}{}
	}
	c.Close()
	if logins < 3 {
		t.Errorf("%d logins in 4 s with sessions of 2 s, want 3 at least", logins)
	}
}

// authority signs certificates for this test.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	pool *x509.CertPool
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	a := &authority{pool: x509.NewCertPool()}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test authority"}, NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	cert := a.sign(t, template)
	a.key = cert.PrivateKey.(*ecdsa.PrivateKey)
	a.cert, _ = x509.ParseCertificate(cert.Certificate[0])
	a.pool.AddCert(a.cert)
	return a
}

// issue returns a certificate for loopback, for either side.
func (a *authority) issue(t *testing.T, name string) tls.Certificate {
	t.Helper()
	return a.sign(t, &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: name}, NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	})
}

func (a *authority) sign(t *testing.T, template *x509.Certificate) tls.Certificate {
	t.Helper()
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
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}
