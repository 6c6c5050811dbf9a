package plugins

import (
	"mirror/abi"
)

// keyed is the state that a call of a state function is about, and the key in the
// guest's memory, which has least bytes or more.
func (i *instance) keyed(a []uint64, least uint64) (*state, []byte, abi.Status) {
	c := i.call
	if c == nil || i.p.store == nil {
		return nil, nil, abi.Unsupported
	}
	switch c.hook {
	case abi.OnPartitions, abi.OnCommit, abi.OnGroups, abi.OnTick:
	default:
		return nil, nil, abi.Unsupported
	}
	i.look() // a guest can do much between two looks with few instructions here
	entry, n := uint32(a[0]), uint64(uint32(a[2]))
	key, ok := i.view(a[1], n)
	if uint64(entry) >= uint64(len(c.about)) || !ok || n < least || n > abi.MaxStateKey {
		return nil, nil, abi.BadInput
	}
	return c.about[entry].state, key, abi.OK
}

// result gives the guest an answer, if that fits.
func (i *instance) result(b []byte, buf, limit uint64) abi.Status {
	if len(b) > 0 && uint64(len(b)) <= uint64(uint32(limit)) && !i.memory.Write(uint32(buf), b) {
		return abi.BadInput
	}
	return abi.Status(len(b))
}

func (i *instance) stateGet(a []uint64) abi.Status {
	s, key, status := i.keyed(a, 1)
	if status != abi.OK {
		return status
	}
	value, ok := s.get(key)
	if !ok {
		return abi.NotFound
	}
	return i.result(value, a[3], a[4])
}

func (i *instance) stateNext(a []uint64) abi.Status {
	s, key, status := i.keyed(a, 0)
	if status != abi.OK {
		return status
	}
	next := s.next(key)
	if next == nil {
		return abi.NotFound
	}
	return i.result(next, a[3], a[4])
}

func (i *instance) statePut(a []uint64) abi.Status {
	s, key, status := i.keyed(a, 1)
	if status != abi.OK {
		return status
	}
	if i.call.hook == abi.OnGroups {
		return abi.Unsupported
	}
	n := int32(uint32(a[4]))
	var value []byte
	if gone := n == -1; !gone {
		var ok bool
		if value, ok = i.view(a[3], uint64(uint32(n))); !ok || n < 0 || n > abi.MaxStateValue {
			return abi.BadInput
		}
	}
	u, status := s.put(key, value, n == -1)
	if status == abi.StateFull {
		i.refused++
		return status
	}
	i.call.undo = append(i.call.undo, u)
	return abi.OK
}
