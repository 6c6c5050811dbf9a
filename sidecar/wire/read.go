package wire

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// read is the connection's reader: it hands answers to their calls, and at the end the error.
func (c *Conn) read() {
	defer close(c.done)
	c.fail(c.readAnswers())
	// What is being written may point into frames that the calls will give back: wait until it has
	// ended.
	c.nc.Close()
	c.turn <- struct{}{}
	c.enc, c.w = encoder{}, nil
	<-c.turn
	for {
		c.qmu.Lock()
		if len(c.pending) == 0 {
			c.drained = true
			c.qmu.Unlock()
			return
		}
		k := c.pending[0]
		c.pending = c.pending[1:]
		err := c.err
		c.qmu.Unlock()
		k.done(nil, nil, err)
	}
}

// readAnswers returns why there are no more.
func (c *Conn) readAnswers() error {
	p := &patient{c: c, low: newLowWater(c.nc)}
	r := bufio.NewReaderSize(p, 4<<10) // larger reads pass by it
	for {
		var size [4]byte
		if n, err := io.ReadFull(r, size[:]); err != nil {
			return c.readError(err, n > 0)
		}
		n := int(int32(binary.BigEndian.Uint32(size[:])))
		if n < 4 || n > c.o.MaxResponse {
			return c.sizeError(size)
		}
		k := c.oldest()
		if k == nil {
			return fmt.Errorf("broker %s sent %d bytes that no request asked for", c.addr, n)
		}
		frame := newFrame(c.o.Frames, n)
		p.left = n - r.Buffered()
		if _, err := io.ReadFull(r, frame.Bytes()); err != nil {
			frame.Release()
			return c.readError(err, true)
		}
		if corr := int32(binary.BigEndian.Uint32(frame.Bytes())); corr != k.corr {
			frame.Release()
			return fmt.Errorf("broker %s answered request %d while request %d was due", c.addr, corr, k.corr)
		}
		if k.resp != nil {
			if err := decode(k.resp, frame.Bytes()); err != nil {
				frame.Release()
				return fmt.Errorf("answer of broker %s to %s version %d: %w", c.addr, kmsg.NameForKey(k.key), k.resp.GetVersion(), err)
			}
		}
		c.settle(k)
		k.done(k.resp, frame, nil)
	}
}

// oldest returns the call whose answer comes next, nil if there is none.
func (c *Conn) oldest() *call {
	c.qmu.Lock()
	defer c.qmu.Unlock()
	if len(c.pending) == 0 {
		return nil
	}
	return c.pending[0]
}

// settle takes the answered call from the queue, notes a throttle and starts the next one's time.
func (c *Conn) settle(k *call) {
	c.qmu.Lock()
	defer c.qmu.Unlock()
	now := time.Now()
	if t, ok := k.resp.(kmsg.ThrottleResponse); ok {
		if ms, after := t.Throttle(); ms > 0 && after {
			c.throttled = now.Add(time.Duration(ms) * time.Millisecond)
		}
	}
	if !k.setup {
		c.answered = true
	}
	c.pending[0] = nil
	if c.pending = c.pending[1:]; len(c.pending) > 0 {
		// The broker works on one request of a connection at a time: the next one's time starts now.
		c.pending[0].sent = now
	}
	c.expect()
}

// expect sets the time by which the oldest call has to be answered. qmu is held.
func (c *Conn) expect() {
	var deadline time.Time
	if len(c.pending) > 0 {
		from := c.pending[0].sent
		if c.throttled.After(from) {
			from = c.throttled
		}
		deadline = from.Add(c.o.Timeout + c.pending[0].allowed)
	}
	c.nc.SetReadDeadline(deadline) // fails only when closed, which the read notices
}

// patient reads from the connection and lets an answer that has begun take as long as it keeps
// coming.
type patient struct {
	c    *Conn
	low  lowWater
	left int // of the answer that has begun
}

func (p *patient) Read(b []byte) (int, error) {
	p.low.await(max(p.left, 1))
	n, err := p.c.nc.Read(b)
	p.left -= n
	if n > 0 {
		p.c.qmu.Lock()
		if len(p.c.pending) > 0 {
			p.c.nc.SetReadDeadline(time.Now().Add(p.c.o.Timeout))
		}
		p.c.qmu.Unlock()
	}
	return n, err
}

// decode reads an answer, header and body, into resp, whose byte slices then point into frame.
func decode(resp kmsg.Response, frame []byte) error {
	body := frame[4:]
	if resp.IsFlexible() && resp.Key() != int16(kmsg.ApiVersions) { // KIP-511: its header stays as it was
		var err error
		if body, err = skipTags(body); err != nil {
			return err
		}
	}
	return resp.ReadFrom(body)
}

// skipTags passes over the tagged fields of a header (KIP-482).
func skipTags(b []byte) ([]byte, error) {
	errShort := errors.New("header ends in its tagged fields")
	uvarint := func() uint64 {
		v, n := binary.Uvarint(b)
		b = b[max(n, 0):]
		if n <= 0 {
			v = 1 << 32 // more than there can be: ends the loop
		}
		return v
	}
	for count := uvarint(); count > 0; count-- {
		uvarint()
		size := uvarint()
		if size > uint64(len(b)) {
			return nil, errShort
		}
		b = b[size:]
	}
	return b, nil
}

// readError explains why reading ended; partial says that an answer had begun.
func (c *Conn) readError(err error, partial bool) error {
	c.qmu.Lock()
	reason, pending, stranger := c.err, len(c.pending), c.anonymous && !c.answered
	var first *call
	if pending > 0 {
		first = c.pending[0]
	}
	c.qmu.Unlock()
	gone := errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, syscall.ECONNRESET)
	switch {
	case reason != nil: // closed from this side
		return reason
	case gone && !partial && first == nil:
		return ErrIdle
	case errors.Is(err, os.ErrDeadlineExceeded) && first != nil:
		return fmt.Errorf("broker %s did not answer %s within %s: %w", c.addr, kmsg.NameForKey(first.key), c.o.Timeout+first.allowed, err)
	case gone && !partial && first.setup && first.key == int16(kmsg.ApiVersions):
		return fmt.Errorf("broker %s closed the connection at the first request; does the listener expect TLS?: %w", c.addr, err)
	case gone && !partial && first.setup:
		return fmt.Errorf("broker %s closed the connection in the middle of the authentication, which may mean a wrong user or secret: %w", c.addr, err)
	case gone && !partial && stranger:
		return fmt.Errorf("broker %s closed the connection at the first request; does the listener expect authentication?: %w", c.addr, err)
	case gone:
		return fmt.Errorf("broker %s closed the connection with %d requests unanswered: %w", c.addr, pending, err)
	}
	return fmt.Errorf("read from broker %s: %w", c.addr, err)
}

// sizeError explains a size that no answer can have, by the protocols that are met in its place.
func (c *Conn) sizeError(size [4]byte) error {
	n := int32(binary.BigEndian.Uint32(size[:]))
	switch {
	case (size[0] == 0x15 || size[0] == 0x16) && size[1] == 3: // a TLS alert or handshake record
		return fmt.Errorf("broker %s answers in TLS: enable tls for this cluster", c.addr)
	case string(size[:]) == "HTTP":
		return fmt.Errorf("%s is an HTTP server, not a Kafka broker", c.addr)
	}
	return fmt.Errorf("broker %s announces an answer of %d bytes, allowed are 4 to %d", c.addr, n, c.o.MaxResponse)
}
