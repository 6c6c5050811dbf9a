//go:build linux

package wire

import (
	"net"
	"syscall"
	"testing"
)

// lowWaterOf is what the socket has.
func lowWaterOf(t *testing.T, nc net.Conn) (n int) {
	t.Helper()
	raw, err := nc.(*net.TCPConn).SyscallConn()
	if err == nil {
		err = raw.Control(func(fd uintptr) { n, err = syscall.GetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_RCVLOWAT) })
	}
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func TestLowWater(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	nc, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	low := newLowWater(nc)
	for _, c := range []struct{ left, want int }{{1, 1}, {10 << 20, mostAwaited}, {mostAwaited - 1, mostAwaited - 1}, {1, 1}} {
		low.await(c.left)
		if got := lowWaterOf(t, nc); got != c.want {
			t.Errorf("with %d bytes to come the reader waits for %d, want %d", c.left, got, c.want)
		}
	}
	pipe, other := net.Pipe()
	defer pipe.Close()
	defer other.Close()
	low = newLowWater(pipe) // no socket: nothing happens
	low.await(1 << 20)
}
