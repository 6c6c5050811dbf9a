package pipeline

import (
	"bytes"
	"net"
	"sync"
)

// tap is what is between a cluster and those who talk to it.
type tap struct {
	mu     sync.Mutex
	change sync.Cond
	hung   bool // nothing that is sent to the cluster arrives
	down   bool // connections end, and new ones too
	marker []byte
	at     int    // the byte of the marker whose lowest bit is flipped
	flips  int    // how many more of the marker's occurrences in answers get a bit flipped
	cut    func() // called instead of sending the next answer
	open   map[*tapped]bool
}

func newTap() *tap {
	t := &tap{open: map[*tapped]bool{}}
	t.change.L = &t.mu
	return t
}

// set changes the tap.
func (t *tap) set(f func(*tap)) {
	t.mu.Lock()
	f(t)
	var end []*tapped
	if t.down {
		for c := range t.open {
			end = append(end, c)
		}
	}
	t.change.Broadcast()
	t.mu.Unlock()
	for _, c := range end {
		c.Close()
	}
}

func hang(t *tap)   { t.hung = true }
func goDown(t *tap) { t.down = true }
func work(t *tap)   { t.hung, t.down = false, false }

// spoil flips a bit of the next n occurrences of the marker; -1: of all.
func spoil(marker string, n int) func(*tap) {
	return func(t *tap) { t.marker, t.flips = []byte(marker), n }
}

func (t *tap) listen(network, address string) (net.Listener, error) {
	l, err := net.Listen(network, address)
	if err != nil {
		return nil, err
	}
	return &tapListener{Listener: l, tap: t}, nil
}

type tapListener struct {
	net.Listener
	tap *tap
}

func (l *tapListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	t := &tapped{Conn: c, tap: l.tap}
	l.tap.mu.Lock()
	down := l.tap.down
	l.tap.open[t] = true
	l.tap.mu.Unlock()
	if down {
		t.Close()
	}
	return t, nil
}

// tapped is the cluster's end of a connection.
type tapped struct {
	net.Conn
	tap    *tap
	closed bool
}

func (c *tapped) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	c.tap.mu.Lock()
	defer c.tap.mu.Unlock()
	for err == nil && c.tap.hung && !c.closed {
		c.tap.change.Wait()
	}
	return n, err
}

func (c *tapped) Write(b []byte) (int, error) {
	c.tap.mu.Lock()
	if cut := c.tap.cut; cut != nil {
		c.tap.cut = nil
		c.tap.mu.Unlock()
		cut()
		return 0, net.ErrClosed
	}
	if c.tap.flips != 0 {
		b = bytes.Clone(b)
		for at := 0; c.tap.flips != 0; {
			i := bytes.Index(b[at:], c.tap.marker)
			if i < 0 {
				break
			}
			at += i
			b[at+c.tap.at] ^= 1
			at++
			c.tap.flips--
		}
	}
	c.tap.mu.Unlock()
	return c.Conn.Write(b)
}

func (c *tapped) Close() error {
	c.tap.mu.Lock()
	c.closed = true
	delete(c.tap.open, c)
	c.tap.change.Broadcast()
	c.tap.mu.Unlock()
	return c.Conn.Close()
}
