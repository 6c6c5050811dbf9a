//go:build !unix

package wire

import "net"

// lowWater is for systems with SO_RCVLOWAT.
type lowWater struct{}

func newLowWater(net.Conn) lowWater { return lowWater{} }

func (l *lowWater) await(int) {}
