package wire

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/sasl"
)

// maxKey is the highest request key that versions are kept for.
const maxKey = 127

// versionRange is the versions that both sides speak; max -1: none.
type versionRange struct {
	min, max int16
}

// ask sends a request of the connection's own and waits for the answer, or until the connection
// ends. The caller has the turn.
func (c *Conn) ask(req kmsg.Request, decoded bool) (kmsg.Response, *Frame, error) {
	r := newReply()
	k := &call{key: req.Key(), setup: true, done: r.done}
	if decoded {
		k.resp = req.ResponseKind()
	}
	c.write(req, k)
	if a, ok := r.wait(c.ctx.Done()); ok {
		return a.resp, a.frame, a.err
	}
	return nil, nil, c.Err()
}

// negotiate learns the versions that the broker speaks. The caller has the turn.
func (c *Conn) negotiate() error {
	req := kmsg.NewPtrApiVersionsRequest()
	req.ClientSoftwareName = "mirror"
	req.ClientSoftwareVersion = "v1"
	resp := kmsg.NewPtrApiVersionsResponse()
	for req.Version = req.MaxVersion(); ; {
		_, frame, err := c.ask(req, false)
		if err != nil {
			return err
		}
		again, err := readVersions(resp, req.Version, frame.Bytes())
		frame.Release()
		if err != nil {
			return err
		}
		if again < 0 {
			break
		}
		req.Version = again
	}
	for key := range c.versions {
		c.versions[key] = versionRange{0, -1}
	}
	for _, k := range resp.ApiKeys {
		ours := kmsg.RequestForKey(k.ApiKey)
		if ours == nil || k.ApiKey > maxKey {
			continue
		}
		if highest := min(k.MaxVersion, ours.MaxVersion()); highest >= k.MinVersion {
			c.versions[k.ApiKey] = versionRange{k.MinVersion, highest}
		}
	}
	return nil
}

// readVersions decodes the answer to an ApiVersions request of this version. again is the version
// to ask with once more, -1 if the answer is good. A broker that does not know the version answers
// in version 0, with the one it knows (KIP-511) or, before Kafka 2.4, without.
func readVersions(resp *kmsg.ApiVersionsResponse, version int16, frame []byte) (again int16, err error) {
	if len(frame) < 6 {
		return -1, fmt.Errorf("answer of %d bytes", len(frame))
	}
	code := int16(frame[4])<<8 | int16(frame[5])
	unsupported := code == kerr.UnsupportedVersion.Code
	resp.Version = version
	if unsupported {
		resp.Version = 0
	}
	if err := decode(resp, frame); err != nil {
		return -1, err
	}
	switch {
	case unsupported && version == 0:
		return -1, kerr.UnsupportedVersion
	case unsupported:
		for _, k := range resp.ApiKeys {
			if k.ApiKey == int16(kmsg.ApiVersions) && k.MaxVersion > 0 && k.MaxVersion < version {
				return k.MaxVersion, nil
			}
		}
		return 0, nil
	case code != 0:
		return -1, kerr.ErrorForCode(code)
	case len(resp.ApiKeys) == 0:
		return -1, errors.New("the answer lists no requests")
	}
	return -1, nil
}

// renewTimeout is how many times Options.Timeout a renewal may take: requests in flight come before
// it, each with its own time. It ends the wait also when the reader stands still in a done that
// waits for Send, against the rules.
const renewTimeout = 4

// renew authenticates again on the living connection (KIP-368). The caller has the turn, so the
// requests of others wait; those that are in flight are answered before. Brokers allow it once a
// second.
func (c *Conn) renew() error {
	late := time.AfterFunc(renewTimeout*c.o.Timeout, func() {
		c.fail(fmt.Errorf("the session at broker %s could not be renewed in time: %w", c.addr, context.DeadlineExceeded))
	})
	defer late.Stop()
	if err := c.authenticate(); err != nil {
		return fmt.Errorf("renew the session: %w", err)
	}
	c.log.Debug("session renewed", "until", c.renewAt)
	return nil
}

// authenticate runs the SASL exchange, if there is one. The caller has the turn.
func (c *Conn) authenticate() error {
	if c.o.SASL == nil {
		return nil
	}
	mechanism, err := c.o.SASL(c.ctx)
	if err != nil {
		return fmt.Errorf("authenticate at broker %s: %w", c.addr, err)
	}
	if mechanism == nil {
		return nil
	}
	c.qmu.Lock()
	c.anonymous = false
	c.qmu.Unlock()
	if err := c.exchange(mechanism); err != nil {
		return fmt.Errorf("authenticate at broker %s by %s: %w", c.addr, mechanism.Name(), err)
	}
	return nil
}

// exchange names the mechanism and passes its messages until both sides are content (KIP-43,
// KIP-152).
func (c *Conn) exchange(mechanism sasl.Mechanism) error {
	began := time.Now()
	if err := c.handshake(mechanism.Name()); err != nil {
		return err
	}
	session, message, err := mechanism.Authenticate(c.ctx, c.addr)
	if err != nil {
		return err
	}
	var lifetime time.Duration
	// Every message is answered, also the last one of a mechanism that is done on this side.
	for done := false; !done || len(message) > 0; {
		req := kmsg.NewPtrSASLAuthenticateRequest()
		req.Version = c.MaxVersion(req.Key())
		req.SASLAuthBytes = message
		resp, frame, err := c.ask(req, true)
		if err != nil {
			return err
		}
		r := resp.(*kmsg.SASLAuthenticateResponse)
		challenge := append([]byte(nil), r.SASLAuthBytes...)
		frame.Release()
		if err := kerr.ErrorForCode(r.ErrorCode); err != nil {
			if r.ErrorMessage != nil {
				return fmt.Errorf("refused with %q: %w", *r.ErrorMessage, err)
			}
			return fmt.Errorf("refused: %w", err)
		}
		lifetime = time.Duration(min(r.SessionLifetimeMillis, longestSession.Milliseconds())) * time.Millisecond
		message = nil
		if !done {
			if done, message, err = session.Challenge(challenge); err != nil {
				return err
			}
		}
	}
	c.renewAt = renewal(began, lifetime)
	return nil
}

// handshake names the mechanism.
func (c *Conn) handshake(mechanism string) error {
	req := kmsg.NewPtrSASLHandshakeRequest()
	if c.MaxVersion(req.Key()) < 1 {
		return errors.New("the broker does not offer SASL by requests: is this a SASL listener, of Kafka 1.0 or newer?")
	}
	req.Version = 1
	req.Mechanism = mechanism
	resp, frame, err := c.ask(req, true)
	if err != nil {
		return err
	}
	frame.Release()
	r := resp.(*kmsg.SASLHandshakeResponse)
	switch err := kerr.ErrorForCode(r.ErrorCode); {
	case errors.Is(err, kerr.UnsupportedSaslMechanism):
		return fmt.Errorf("the listener only offers %s: %w", strings.Join(r.SupportedMechanisms, ", "), err)
	case errors.Is(err, kerr.IllegalSaslState):
		return fmt.Errorf("the listener does not expect authentication: %w", err)
	default:
		return err
	}
}

// longestSession bounds what a broker may say, so that no arithmetic overflows.
const longestSession = 365 * 24 * time.Hour

// renewal returns when to authenticate again in a session that began then: after 80 to 90 % of its
// lifetime, so that many connections do not do it at once, yet not within a second, which brokers
// refuse. A lifetime of 0 has no end.
func renewal(began time.Time, lifetime time.Duration) time.Time {
	if lifetime <= 0 {
		return time.Time{}
	}
	share := 0.8 + 0.1*rand.Float64()
	return began.Add(max(time.Duration(share*float64(lifetime)), 1100*time.Millisecond))
}
