package wire

import (
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// clear waits until the next request may be written: not while the broker throttles, and not on a
// session that is about to end. The caller has the turn.
func (c *Conn) clear() error {
	for {
		c.qmu.Lock()
		wait := time.Until(c.throttled)
		c.qmu.Unlock()
		if wait <= 0 {
			break
		}
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-c.ctx.Done():
			timer.Stop()
			return nil
		}
	}
	if c.renewAt.IsZero() || time.Now().Before(c.renewAt) {
		return nil
	}
	return c.renew()
}

// speaks checks that the broker understands req and that it will answer it.
func (c *Conn) speaks(req kmsg.Request) error {
	key, version := req.Key(), req.GetVersion()
	if c.MaxVersion(key) < 0 {
		return fmt.Errorf("%s version %d: broker %s does not speak it", kmsg.NameForKey(key), version, c.addr)
	}
	r := c.versions[key]
	if version < r.min || version > r.max {
		return fmt.Errorf("%s version %d: broker %s speaks versions %d to %d", kmsg.NameForKey(key), version, c.addr, r.min, r.max)
	}
	if p, ok := req.(*kmsg.ProduceRequest); ok && p.Acks == 0 {
		return errors.New("produce with acks 0 gets no answer and cannot be used here")
	}
	return nil
}

// write queues k for its answer, encodes req and sends it. The caller has the turn. Errors reach k
// by way of the reader.
func (c *Conn) write(req kmsg.Request, k *call) {
	c.corr++
	k.corr = c.corr
	if !c.enqueue(k) {
		return
	}
	c.enc.encode(req, k.corr)
	if err := c.enc.writeTo(c.w); err != nil {
		c.fail(fmt.Errorf("write %s to broker %s: %w", kmsg.NameForKey(k.key), c.addr, err))
	}
}

// enqueue appends k to the pending calls and says whether its request is to be written; if not, the
// reader fails k.
func (c *Conn) enqueue(k *call) bool {
	c.qmu.Lock()
	defer c.qmu.Unlock()
	if c.drained {
		go k.done(nil, nil, c.err)
		return false
	}
	k.sent = time.Now()
	c.pending = append(c.pending, k)
	if c.err != nil {
		return false
	}
	if len(c.pending) == 1 {
		c.expect()
	}
	return true
}

// allowance is the time that req itself gives the broker.
func allowance(req kmsg.Request) time.Duration {
	var ms int32
	switch r := req.(type) {
	case *kmsg.FetchRequest:
		ms = r.MaxWaitMillis
	case kmsg.TimeoutRequest:
		ms = r.Timeout()
	}
	return time.Duration(max(ms, 0)) * time.Millisecond
}
