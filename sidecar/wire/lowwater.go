//go:build unix

package wire

import (
	"net"
	"syscall"
)

// mostAwaited is how many bytes of an answer a reader waits for before it is woken. It is far less
// than what any link that is worth copying over carries within Options.Timeout.
const mostAwaited = 128 << 10

// lowWater has the kernel wake the reader of a connection not for every segment that arrives but for
// many of them (SO_RCVLOWAT, see socket(7)): being woken is what reading costs most. The zero value
// does nothing, as for a connection that is not plain TCP.
type lowWater struct {
	raw syscall.RawConn
	set int // what the socket has
}

func newLowWater(nc net.Conn) lowWater {
	if c, ok := nc.(*net.TCPConn); ok {
		if raw, err := c.SyscallConn(); err == nil {
			return lowWater{raw: raw, set: 1}
		}
	}
	return lowWater{}
}

// await tells that left bytes, at least 1, are still to come for sure. More than that is never waited
// for, and a receive buffer that is full wakes the reader all the same.
func (l *lowWater) await(left int) {
	n := min(left, mostAwaited)
	if l.raw == nil || n == l.set {
		return
	}
	// It fails where the connection has ended, which the next read notices, or the system does not
	// have it, which does no harm.
	_ = l.raw.Control(func(fd uintptr) { _ = syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_RCVLOWAT, n) })
	l.set = n
}
