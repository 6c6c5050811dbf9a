package kafkatest

import (
	"bytes"
	"errors"
	"io"
	"net"
	"os"
	"testing"
	"time"
)

// echo is a server that sends back what it gets.
func echo(t *testing.T) string {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			_, _ = io.Copy(c, c) // one connection at a time
			c.Close()
		}
	}()
	t.Cleanup(func() { ln.Close(); <-done })
	return ln.Addr().String()
}

func proxyTo(t *testing.T, target string) *Proxy {
	p, err := newProxy()
	if err != nil {
		t.Fatal(err)
	}
	p.setTarget(target)
	t.Cleanup(p.close)
	return p
}

// say sends the pieces one by one, each when the one before has come back, and
// returns what came back.
func say(p *Proxy, pieces ...string) (string, error) {
	c, err := net.Dial("tcp", p.ln.Addr().String())
	if err != nil {
		return "", err
	}
	defer c.Close()
	var all bytes.Buffer
	for _, s := range pieces {
		if _, err := io.WriteString(c, s); err != nil {
			return "", err
		}
		if _, err := io.CopyN(&all, c, int64(len(s))); err != nil {
			return all.String(), err
		}
	}
	return all.String(), nil
}

func TestProxyCorrupts(t *testing.T) {
	p := proxyTo(t, echo(t))
	for _, c := range []struct {
		name      string
		faults    int
		pieces    []string
		want      string
		corrupted int
	}{
		{"none asked for", 0, []string{"a mark b"}, "a mark b", 0},
		{"once", 1, []string{"mark mark"}, "marj mark", 1},
		{"more than there are", 5, []string{"mark mark", "mark"}, "marj marjmarj", 3},
		{"in two pieces", 1, []string{"..ma", "rk mark"}, "..marj mark", 1},
		{"its last byte alone", 1, []string{"..mar", "k"}, "..marj", 1},
		{"not there", 1, []string{"mar", "mar"}, "marmar", 0},
	} {
		p.Corrupt("mark", c.faults)
		got, err := say(p, c.pieces...)
		if err != nil {
			t.Fatal(err)
		}
		if got != c.want || p.Corrupted() != c.corrupted {
			t.Errorf("%s: %q with %d corrupted; want %q with %d", c.name, got, p.Corrupted(), c.want, c.corrupted)
		}
	}
}

func TestProxyCutAndRestore(t *testing.T) {
	p := proxyTo(t, echo(t))
	c, err := net.Dial("tcp", p.ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	b := []byte("x")
	if _, err := c.Write(b); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(c, b); err != nil {
		t.Fatal(err)
	}
	p.Cut()
	if n, err := c.Read(b); err == nil {
		t.Errorf("%d bytes over a cut link", n)
	}
	if got, err := say(p, "x"); err == nil {
		t.Errorf("an answer, %q, over a cut link", got)
	}
	p.Restore()
	if got, err := say(p, "x"); err != nil || got != "x" {
		t.Errorf("after Restore: %q, %v", got, err)
	}
	p.setTarget("")
	if got, err := say(p, "x"); err == nil {
		t.Errorf("an answer, %q, with nothing behind the proxy", got)
	}
}

func TestProxyHolds(t *testing.T) {
	p := proxyTo(t, echo(t))
	p.Hold()
	c, err := net.Dial("tcp", p.ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	b := []byte("x")
	if _, err := c.Write(b); err != nil {
		t.Fatal(err)
	}
	_ = c.SetReadDeadline(time.Now().Add(50 * time.Millisecond))
	if n, err := c.Read(b); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("%d bytes, %v over a link that holds everything", n, err)
	}
	p.Restore()
	_ = c.SetReadDeadline(time.Time{})
	if _, err := io.ReadFull(c, b); err != nil {
		t.Errorf("after Restore: %v", err)
	}
	// What ends meanwhile does not show.
	p.Hold()
	p.mu.Lock()
	for x := range p.conns {
		if x.RemoteAddr().String() == p.target {
			x.Close()
		}
	}
	p.mu.Unlock()
	_ = c.SetReadDeadline(time.Now().Add(50 * time.Millisecond))
	if _, err := c.Read(b); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("%v: the end of the other side shows", err)
	}
	p.Restore()
	_ = c.SetReadDeadline(time.Time{})
	if _, err := c.Read(b); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("%v: the end of the other side does not show after Restore", err)
	}
}
