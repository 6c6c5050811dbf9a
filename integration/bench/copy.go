package main

import (
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
)

const (
	copyChild  = "child-copy"
	chunkBytes = 256 << 10
)

// copyBytes reads from one address and writes to another: what no mirror in user
// space can do without.
func copyBytes(args []string) error {
	if len(args) != 2 {
		return errors.New("want two addresses")
	}
	src, err := net.Dial("tcp", args[0])
	if err != nil {
		return err
	}
	dst, err := net.Dial("tcp", args[1])
	if err != nil {
		return err
	}
	// Not io.Copy, which has the kernel splice the two.
	for buf := make([]byte, chunkBytes); ; {
		n, err := src.Read(buf)
		if err != nil {
			return fmt.Errorf("read: %w", err)
		}
		if _, err := dst.Write(buf[:n]); err != nil {
			return fmt.Errorf("write: %w", err)
		}
	}
}

// ends are what copyBytes reads from and writes to. Each takes one connection.
type ends struct {
	source, target net.Listener
	arrived        atomic.Int64 // at the target

	wg    sync.WaitGroup
	mu    sync.Mutex
	conns []net.Conn
	done  bool
}

// newEnds makes a source of so many bytes, which stays open after them so that
// the copying process lives on until it has been measured.
func newEnds(bytes int64) (*ends, error) {
	e := &ends{}
	var err error
	if e.source, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		return nil, err
	}
	if e.target, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		e.source.Close()
		return nil, err
	}
	e.wg.Go(func() {
		c := e.accept(e.source)
		if c == nil {
			return
		}
		buf := make([]byte, chunkBytes)
		for left := bytes; left > 0; {
			n, err := c.Write(buf[:min(left, chunkBytes)])
			if left -= int64(n); err != nil {
				return // the other end has gone, and its end is noticed
			}
		}
	})
	e.wg.Go(func() {
		c := e.accept(e.target)
		if c == nil {
			return
		}
		for buf := make([]byte, chunkBytes); ; {
			n, err := c.Read(buf)
			e.arrived.Add(int64(n))
			if err != nil {
				return
			}
		}
	})
	return e, nil
}

// accept has close end the connection; it returns nil after close.
func (e *ends) accept(l net.Listener) net.Conn {
	c, err := l.Accept()
	if err != nil {
		return nil
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.conns = append(e.conns, c)
	if e.done {
		c.Close()
	}
	return c
}

// close ends both and waits for it.
func (e *ends) close() {
	e.source.Close()
	e.target.Close()
	e.mu.Lock()
	e.done = true
	for _, c := range e.conns {
		c.Close()
	}
	e.mu.Unlock()
	e.wg.Wait()
}
