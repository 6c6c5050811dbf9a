package main

import (
	"bytes"
	"io"
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// What passes comes the delay later, and does not wait for what came before.
func TestRelayDelays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		in, src := net.Pipe()
		dst, out := net.Pipe()
		start := time.Now()
		var wg sync.WaitGroup
		wg.Go(func() { relay(dst, src, 25*time.Millisecond); dst.Close() })
		wg.Go(func() {
			for range 3 {
				_, _ = in.Write([]byte("ping"))
				time.Sleep(10 * time.Millisecond)
			}
			in.Close()
		})
		for i := range 3 {
			b := make([]byte, 4)
			if _, err := io.ReadFull(out, b); err != nil || string(b) != "ping" {
				t.Fatalf("%q, %v", b, err)
			}
			if got, want := time.Since(start), time.Duration(25+10*i)*time.Millisecond; got != want {
				t.Errorf("piece %d came after %v, want %v", i, got, want)
			}
		}
		if _, err := out.Read(make([]byte, 1)); err != io.EOF {
			t.Errorf("after the end: %v", err)
		}
		wg.Wait()
	})
}

// All bytes pass both ways, and the end of one connection is the other's.
func TestLink(t *testing.T) {
	echo, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer echo.Close()
	var wg sync.WaitGroup
	defer wg.Wait()
	wg.Go(func() {
		if c, err := echo.Accept(); err == nil {
			_, _ = io.CopyN(c, c, 1<<20)
			c.Close()
		}
	})
	l, err := newLink(echo.Addr().String(), time.Microsecond)
	if err != nil {
		t.Fatal(err)
	}
	defer l.close()
	c, err := net.Dial("tcp", l.address())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	sent := bytes.Repeat([]byte("0123456789abcdef"), 1<<16)
	wg.Go(func() { _, _ = c.Write(sent) })
	got := make([]byte, len(sent))
	if _, err := io.ReadFull(c, got); err != nil || !bytes.Equal(got, sent) {
		t.Errorf("%v; equal: %v", err, bytes.Equal(got, sent))
	}
	if _, err := c.Read(got); err == nil {
		t.Error("the connection goes on after its end")
	}
}
