package wire

import (
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// clear waits until the next request may be written: not while the broker throttles, and not on a session that is
// about to end. wmu is held.
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
		case <-c.ending:
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
	var r versionRange
	if key >= 0 && key <= maxKey {
		r = c.versions[key]
	}
	if version < r.min || version > r.max {
		return fmt.Errorf("%s version %d: broker %s speaks versions %d to %d", kmsg.NameForKey(key), version, c.addr, r.min, r.max)
	}
	if p, ok := req.(*kmsg.ProduceRequest); ok && p.Acks == 0 {
		return errors.New("produce with acks 0 gets no answer and cannot be used here")
	}
	return nil
}

// write encodes req, queues k for its answer and sends it. wmu is held. Errors reach k by way of the reader.
func (c *Conn) write(req kmsg.Request, k *call) {
	c.corr++
	k.corr = c.corr
	c.buf = c.format.AppendRequest(c.buf[:0], req, k.corr)
	defer c.fitBuffer()
	if !c.enqueue(k) {
		return
	}
	for rest := c.buf; len(rest) > 0; {
		part := rest[:min(len(rest), writeChunk)]
		if err := c.nc.SetWriteDeadline(time.Now().Add(c.o.Timeout)); err != nil {
			c.fail(c.writeError(k, err))
			return
		}
		if _, err := c.nc.Write(part); err != nil {
			c.fail(c.writeError(k, err))
			return
		}
		rest = rest[len(part):]
	}
}

// writeChunk is what has to be written within Options.Timeout, so that a slow link is no error and a dead one is.
const writeChunk = 256 << 10

func (c *Conn) writeError(k *call, err error) error {
	return fmt.Errorf("write %s to broker %s: %w", kmsg.NameForKey(k.key), c.addr, err)
}

// enqueue appends k to the pending calls and says whether its request is to be written; if not, the reader fails k.
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

// fitBuffer gives memory back when requests have become much smaller than the buffer.
func (c *Conn) fitBuffer() {
	const window, spare = 64, 64 << 10
	c.peak = max(c.peak, len(c.buf))
	if c.writes++; c.writes < window {
		return
	}
	if cap(c.buf) > 2*c.peak+spare {
		c.buf = make([]byte, 0, c.peak)
	}
	c.peak, c.writes = 0, 0
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
