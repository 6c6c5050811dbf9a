// Package wire speaks the Kafka protocol on connections of its own, for the two requests that carry
// the data: fetch and produce. Requests are answered in the order in which they were sent, and the
// bytes of an answer live in a counted frame that its batches can be passed on from without a copy.
// Everything else uses the clients of package cluster.
package wire

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/sasl"
)

// Options says how to reach brokers and what to allow them.
type Options struct {
	// Dial opens the transport: TCP, or TCP and TLS.
	Dial func(ctx context.Context, addr string) (net.Conn, error)
	// SASL returns the mechanism to authenticate with; nil, or a nil mechanism: none. It is asked at
	// every authentication.
	SASL     func(ctx context.Context) (sasl.Mechanism, error)
	ClientID string
	// Frames holds the answers; nil: plain memory.
	Frames *Pool
	// Timeout is how long an answer may take on top of what the request itself allows (a fetch's
	// maximum wait, a produce's timeout) and of throttling, and how long the connection may stand
	// still in the middle of one; 0: 30 s.
	Timeout time.Duration
	// MaxResponse is the largest answer in bytes; 0: 256 MiB.
	MaxResponse int
	Log         *slog.Logger // nil: silent
}

// How a connection ends without anything being wrong.
var (
	// ErrIdle: the broker closed the connection while no request was pending, as it does after
	// connections.max.idle.ms.
	ErrIdle = errors.New("idle connection closed by the broker")
	// ErrClosed: Close was called.
	ErrClosed = errors.New("connection closed")
)

// Conn is a connection to one broker. Its methods are safe for concurrent use.
type Conn struct {
	addr     string
	o        Options
	log      *slog.Logger
	nc       net.Conn
	versions [maxKey + 1]versionRange // what the broker speaks; set before Dial returns

	// turn is whose it is to write, and to use what follows: a lock of which those that wait get
	// hold in the order in which they came. It is kept during a throttle and while a session is
	// renewed.
	turn    chan struct{}
	enc     encoder
	w       *bufio.Writer
	corr    int32
	renewAt time.Time // when to authenticate again; zero: never

	// qmu guards what writers and the reader share.
	qmu       sync.Mutex
	pending   []*call
	throttled time.Time // no request before
	answered  bool      // a request of the caller's was answered
	anonymous bool      // there was no authentication
	err       error     // why the connection ended; the first reason stays
	drained   bool      // the reader has failed all pending calls and is gone

	ctx    context.Context // ends with err
	cancel context.CancelFunc
	done   chan struct{} // closed with drained
}

// call is a request that waits for its answer.
type call struct {
	key     int16
	corr    int32
	resp    kmsg.Response // nil: the answer is handed over undecoded
	allowed time.Duration // how long the broker may take by the request itself
	sent    time.Time
	setup   bool // sent by the connection itself: versions, authentication
	done    func(resp kmsg.Response, frame *Frame, err error)
}

// Dial connects to addr, asks for the versions that the broker speaks and authenticates. ctx bounds
// all of it. Close the connection when it is no longer needed, also after it failed by itself.
func Dial(ctx context.Context, addr string, o Options) (*Conn, error) {
	if o.Timeout == 0 {
		o.Timeout = 30 * time.Second
	}
	if o.MaxResponse == 0 {
		o.MaxResponse = 256 << 20
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	nc, err := o.Dial(ctx, addr)
	if err != nil {
		return nil, fmt.Errorf("connect to broker %s: %w", addr, err)
	}
	c := &Conn{
		addr:      addr,
		o:         o,
		log:       o.Log.With("broker", addr),
		nc:        nc,
		anonymous: true,
		done:      make(chan struct{}),
		turn:      make(chan struct{}, 1),
	}
	c.ctx, c.cancel = context.WithCancel(context.Background())
	c.enc.format = kmsg.NewRequestFormatter(kmsg.FormatterClientID(o.ClientID))
	c.w = bufio.NewWriterSize(steady{c}, 64<<10)
	go c.read()

	stop := context.AfterFunc(ctx, func() { c.fail(context.Cause(ctx)) })
	err = c.open()
	if !stop() && err == nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}

// open agrees on versions and authenticates.
func (c *Conn) open() error {
	c.turn <- struct{}{}
	defer func() { <-c.turn }()
	if err := c.negotiate(); err != nil {
		return fmt.Errorf("ask broker %s for its versions: %w", c.addr, err)
	}
	return c.authenticate()
}

// MaxVersion returns the highest version of the request with this key that both the broker and this
// program speak, or -1.
func (c *Conn) MaxVersion(key int16) int16 {
	if key < 0 || key > maxKey {
		return -1
	}
	return c.versions[key].max
}

// Send writes req, encoded in the version that it is set to, and returns once it is written.
// Requests are answered in the order in which they were sent. Before it writes, Send waits while
// the broker throttles this client (KIP-219), and renews a session that is about to end (KIP-368).
// The record sets of a produce request are read until it returns, and done is not called with an
// error before.
//
// done is called exactly once, in the order of sending, and never from inside Send: either with the
// decoded answer and the frame that its byte slices point into, of which the callee holds one count
// and has to release it; or with an error, and then without the others. Strings in the answer are
// copies and outlive the frame. As long as done runs no other answer is read, so it must not block:
// in particular it may not call Send or Close of this connection, nor wait for somebody who does.
func (c *Conn) Send(req kmsg.Request, done func(resp kmsg.Response, frame *Frame, err error)) {
	k := &call{key: req.Key(), resp: req.ResponseKind(), allowed: allowance(req), done: done}
	c.turn <- struct{}{}
	defer func() { <-c.turn }()
	if err := c.speaks(req); err != nil {
		go done(nil, nil, err)
		return
	}
	if err := c.clear(); err != nil {
		c.fail(err)
	}
	c.write(req, k)
}

// Request sends req and waits for its answer, which the caller owns as described for Send. When ctx
// ends first the answer is dropped once it comes; the broker has the request all the same.
func (c *Conn) Request(ctx context.Context, req kmsg.Request) (kmsg.Response, *Frame, error) {
	r := newReply()
	c.Send(req, r.done)
	if a, ok := r.wait(ctx.Done()); ok {
		return a.resp, a.frame, a.err
	}
	return nil, nil, fmt.Errorf("%s to broker %s: %w", kmsg.NameForKey(req.Key()), c.addr, context.Cause(ctx))
}

// Done is closed when the connection has ended and every request that was pending has got its
// error.
func (c *Conn) Done() <-chan struct{} { return c.done }

// Err returns why the connection ended, or nil while it lives.
func (c *Conn) Err() error {
	c.qmu.Lock()
	defer c.qmu.Unlock()
	return c.err
}

// Close ends the connection and waits until every pending request has got its error. It may be
// called more than once.
func (c *Conn) Close() {
	c.fail(ErrClosed)
	<-c.done
}

// Abandon ends the connection for this reason, unless it has ended already. Pending requests get the
// error; Abandon does not wait until they have.
func (c *Conn) Abandon(err error) { c.fail(err) }

// fail ends the connection for this reason, unless it has ended already. The reader then fails what
// is pending.
func (c *Conn) fail(err error) {
	c.qmu.Lock()
	first := c.err == nil
	if first {
		c.err = err
	}
	c.qmu.Unlock()
	if first {
		c.cancel()
		c.nc.Close()
	}
}
