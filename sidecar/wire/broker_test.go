package wire

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/sasl"
	"github.com/twmb/franz-go/pkg/sasl/plain"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// side is the broker's side of a connection: what a test plays the broker with. Its methods fail
// the test when the connection does not let them.
type side struct {
	t  *testing.T
	nc net.Conn
}

// request is a decoded request.
type request struct {
	corr     int32
	clientID string
	kmsg.Request
}

// tryNext reads a request.
func (s *side) tryNext() (request, error) {
	var size [4]byte
	if _, err := io.ReadFull(s.nc, size[:]); err != nil {
		return request{}, err
	}
	b := make([]byte, binary.BigEndian.Uint32(size[:]))
	if _, err := io.ReadFull(s.nc, b); err != nil {
		return request{}, err
	}
	req := kmsg.RequestForKey(int16(binary.BigEndian.Uint16(b)))
	req.SetVersion(int16(binary.BigEndian.Uint16(b[2:])))
	r := request{corr: int32(binary.BigEndian.Uint32(b[4:])), Request: req}
	n := binary.BigEndian.Uint16(b[8:])
	r.clientID, b = string(b[10:10+n]), b[10+n:]
	if req.IsFlexible() {
		b = b[1:]
	}
	return r, req.ReadFrom(b)
}

func (s *side) next() request {
	s.t.Helper()
	r, err := s.tryNext()
	if err != nil {
		s.t.Errorf("broker: read a request: %v", err)
		panic(errGone)
	}
	return r
}

// errGone ends a broker's script whose connection is gone; the test has failed by then.
var errGone = errors.New("the client is gone")

// encodeAnswer returns an answer with its size.
func encodeAnswer(corr int32, resp kmsg.Response) []byte {
	b := binary.BigEndian.AppendUint32(make([]byte, 4), uint32(corr))
	if resp.IsFlexible() && resp.Key() != int16(kmsg.ApiVersions) {
		b = append(b, 0)
	}
	b = resp.AppendTo(b)
	binary.BigEndian.PutUint32(b, uint32(len(b)-4))
	return b
}

// answer sends the answer to r, after set has filled it in.
func (s *side) answer(r request, set func(resp kmsg.Response)) {
	s.t.Helper()
	resp := r.ResponseKind()
	if set != nil {
		set(resp)
	}
	s.write(encodeAnswer(r.corr, resp))
}

func (s *side) write(b []byte) {
	s.t.Helper()
	if _, err := s.nc.Write(b); err != nil {
		s.t.Errorf("broker: write: %v", err)
		panic(errGone)
	}
}

// spoken is the versions that the played broker speaks.
var spoken = []kmsg.ApiVersionsResponseApiKey{
	{ApiKey: 0, MinVersion: 3, MaxVersion: 13},
	{ApiKey: 1, MinVersion: 4, MaxVersion: 17},
	{ApiKey: 3, MinVersion: 0, MaxVersion: 12},
	{ApiKey: 17, MinVersion: 0, MaxVersion: 1},
	{ApiKey: 18, MinVersion: 0, MaxVersion: 5},
	{ApiKey: 36, MinVersion: 0, MaxVersion: 2},
}

// versions answers the client's first request.
func (s *side) versions() {
	s.t.Helper()
	s.answer(s.next(), func(resp kmsg.Response) { resp.(*kmsg.ApiVersionsResponse).ApiKeys = spoken })
}

// login plays one SASL PLAIN exchange that ends with a session of this lifetime.
func (s *side) login(lifetime time.Duration) {
	s.t.Helper()
	s.loginAfter(s.next(), lifetime)
}

// loginAfter is login with the handshake read already.
func (s *side) loginAfter(handshake request, lifetime time.Duration) {
	s.t.Helper()
	if h, ok := handshake.Request.(*kmsg.SASLHandshakeRequest); !ok || h.Mechanism != "PLAIN" {
		s.t.Errorf("broker: got %+v, want a SASL handshake for PLAIN", handshake.Request)
	}
	s.answer(handshake, nil)
	r := s.next()
	a, ok := r.Request.(*kmsg.SASLAuthenticateRequest)
	if !ok || string(a.SASLAuthBytes) != "\x00user\x00secret" {
		s.t.Errorf("broker: got %+v, want user and secret", r.Request)
	}
	s.answer(r, func(resp kmsg.Response) {
		resp.(*kmsg.SASLAuthenticateResponse).SessionLifetimeMillis = lifetime.Milliseconds()
	})
}

// play returns options whose connections are answered by script, which runs until it returns; then
// the broker closes the connection.
func play(t *testing.T, o Options, script func(s *side)) Options {
	o.Dial = func(context.Context, string) (net.Conn, error) {
		client, server := net.Pipe()
		done := make(chan struct{})
		go func() {
			defer close(done)
			defer server.Close()
			defer func() {
				if r := recover(); r != nil && r != errGone {
					panic(r)
				}
			}()
			script(&side{t, server})
		}()
		t.Cleanup(func() { <-done })
		return client, nil
	}
	o.ClientID = "test"
	return o
}

// mustDial connects to a played broker that answers the versions by itself before script.
func mustDial(t *testing.T, o Options, script func(s *side)) *Conn {
	t.Helper()
	c, err := Dial(t.Context(), "broker:9092", play(t, o, func(s *side) {
		s.versions()
		script(s)
	}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// withPlain is the options of a client that logs in.
func withPlain() Options {
	return Options{SASL: func(context.Context) (sasl.Mechanism, error) {
		return plain.Auth{User: "user", Pass: "secret"}.AsMechanism(), nil
	}}
}

// fetchRequest returns a request that the tests do not care about further than by its wait.
func fetchRequest(wait time.Duration) *kmsg.FetchRequest {
	req := kmsg.NewPtrFetchRequest()
	req.Version = 12
	req.MaxWaitMillis = int32(wait.Milliseconds())
	return req
}

// fetchAnswer puts a set of records into the answer to a fetch.
func fetchAnswer(records []byte) func(resp kmsg.Response) {
	return func(resp kmsg.Response) {
		p := kmsg.NewFetchResponseTopicPartition()
		p.RecordBatches = records
		topic := kmsg.NewFetchResponseTopic()
		topic.Topic = "topic"
		topic.Partitions = append(topic.Partitions, p)
		r := resp.(*kmsg.FetchResponse)
		r.Topics = append(r.Topics, topic)
	}
}

// throttle puts a throttle time into an answer.
func throttle(d time.Duration) func(resp kmsg.Response) {
	return func(resp kmsg.Response) { resp.(kmsg.SetThrottleResponse).SetThrottle(int32(d.Milliseconds())) }
}

// spyConn notes the version of each request that the broker reads.
type spyConn struct {
	net.Conn
	asked *[]int16
}

func (c *spyConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if n > 8 { // the body, not the size
		*c.asked = append(*c.asked, int16(binary.BigEndian.Uint16(b[2:])))
	}
	return n, err
}
