package main

import (
	"net"
	"sync"
	"time"
)

// oneWay is the delay in each direction of a long link.
const oneWay = 25 * time.Millisecond

// link is a TCP relay to an address that delays what passes, and does not limit
// how much.
type link struct {
	listener net.Listener
	target   string
	delay    time.Duration
	wg       sync.WaitGroup

	mu     sync.Mutex
	closed bool
	conns  []net.Conn
}

func newLink(target string, delay time.Duration) (*link, error) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	l := &link{listener: ln, target: target, delay: delay}
	l.wg.Go(func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			l.wg.Go(func() { l.connect(c) })
		}
	})
	return l, nil
}

func (l *link) address() string { return l.listener.Addr().String() }

// close ends all connections and waits for it.
func (l *link) close() {
	l.listener.Close()
	l.mu.Lock()
	l.closed = true
	for _, c := range l.conns {
		c.Close()
	}
	l.mu.Unlock()
	l.wg.Wait()
}

// keep has close end the connection.
func (l *link) keep(c net.Conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.conns = append(l.conns, c)
	if l.closed {
		c.Close()
	}
}

func (l *link) connect(client net.Conn) {
	defer client.Close()
	l.keep(client)
	server, err := net.Dial("tcp", l.target)
	if err != nil {
		return
	}
	defer server.Close()
	l.keep(server)
	var wg sync.WaitGroup
	for _, way := range [][2]net.Conn{{server, client}, {client, server}} {
		wg.Go(func() {
			relay(way[0], way[1], l.delay)
			client.Close() // Kafka has no use for half a connection
			server.Close()
		})
	}
	wg.Wait()
}

// piece is what was read at once, and when it is to be written.
type piece struct {
	due time.Time
	buf *[64 << 10]byte
	n   int
}

var buffers = sync.Pool{New: func() any { return new([64 << 10]byte) }}

// relay copies until an end closes, each piece delay after it came.
func relay(dst, src net.Conn, delay time.Duration) {
	pieces := make(chan piece, 4096)
	var wg sync.WaitGroup
	defer wg.Wait()
	wg.Go(func() {
		var failed error
		for p := range pieces {
			if failed == nil {
				time.Sleep(time.Until(p.due))
				if _, failed = dst.Write(p.buf[:p.n]); failed != nil {
					src.Close() // nothing more is to be read
				}
			}
			buffers.Put(p.buf)
		}
	})
	defer close(pieces)
	for {
		buf := buffers.Get().(*[64 << 10]byte)
		n, err := src.Read(buf[:])
		if n > 0 {
			pieces <- piece{time.Now().Add(delay), buf, n}
		}
		if err != nil {
			return
		}
	}
}
