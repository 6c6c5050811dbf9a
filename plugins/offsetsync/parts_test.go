package offsetsync

import (
	"bytes"
	"maps"
	"slices"

	"mirror/abi"
)

// partition is a source topic-partition.
type partition struct {
	topic  string
	number int32
}

// entries are the partitions that a frame's entries are about.
func entries(frame []byte) (about []partition) {
	f, err := abi.ParseFrame(frame)
	if err != nil {
		return nil
	}
	for i := range f.Count() {
		switch f.Hook() {
		case abi.OnCommit:
			c := f.Commit(i)
			about = append(about, partition{c.Topic, c.Partition})
		case abi.OnPartitions:
			p := f.Partition(i)
			about = append(about, partition{p.Topic, p.Partition})
		case abi.OnGroups:
			g := f.Group(i)
			about = append(about, partition{g.Topic, g.Partition})
		}
	}
	return about
}

// parts is the state of partitions as a host keeps it.
type parts struct {
	of    map[partition]*part
	limit int  // bytes of a partition's keys and values; 0: none
	torn  bool // flushes do not get to their end
	count int  // of the records that flushes have written
	bytes int  // that these had
}

// part is one partition's.
type part struct {
	seen    map[string][]byte // by the instance
	durable map[string][]byte // as of the last flush
	put     []string          // since then, in the order of the last put of each
}

func newParts() *parts { return &parts{of: map[partition]*part{}} }

func (s *parts) at(p partition) *part {
	if s.of[p] == nil {
		s.of[p] = &part{seen: map[string][]byte{}, durable: map[string][]byte{}}
	}
	return s.of[p]
}

// flush makes what was put durable.
func (s *parts) flush(about []partition) {
	if s.torn {
		return
	}
	for _, p := range about {
		x := s.at(p)
		for _, k := range x.put {
			s.count++
			s.bytes += len(k) + len(x.seen[k])
		}
		x.durable, x.put = maps.Clone(x.seen), nil
	}
}

// lose is what becomes of the state when an instance ends: what was put since the
// last flush is gone, but for the first n writes, if a crash came in the middle of
// the next flush.
func (x *part) lose(n int) {
	for _, k := range x.put[:n] {
		if v, ok := x.seen[k]; ok {
			x.durable[k] = v
		} else {
			delete(x.durable, k)
		}
	}
	x.seen, x.put = maps.Clone(x.durable), nil
}

// keyCost is what a key takes beside its bytes and the value's.
const keyCost = 64

func (x *part) size() (n int) {
	for k, v := range x.seen {
		n += len(k) + len(v) + keyCost
	}
	return n
}

func (x *part) keys() []string { return slices.Sorted(maps.Keys(x.seen)) }

// key is the part that a call of the guest is about, and the key.
func (g *guest) key(a []uint64) (*part, string) {
	if a[0] >= uint64(len(g.about)) {
		g.t.Fatalf("state of entry %d of %d", a[0], len(g.about))
	}
	return g.parts.at(g.about[a[0]]), string(g.passed(a[1], a[2]))
}

// give writes an answer into the guest's memory if there is room.
func (g *guest) give(b []byte, buf, limit uint64) abi.Status {
	if uint64(len(b)) <= limit && !g.module.Memory().Write(uint32(buf), b) {
		g.t.Fatalf("the guest has no %d bytes at %d", limit, buf)
	}
	return abi.Status(len(b))
}

func (g *guest) stateGet(a []uint64) abi.Status {
	x, key := g.key(a)
	v, ok := x.seen[key]
	if !ok {
		return abi.NotFound
	}
	return g.give(v, a[3], a[4])
}

func (g *guest) statePut(a []uint64) abi.Status {
	x, key := g.key(a)
	size := int32(a[4])
	if size < 0 {
		delete(x.seen, key)
	} else {
		v := g.passed(a[3], a[4])
		old, ok := x.seen[key]
		more := len(v) - len(old)
		if !ok {
			more += len(key) + keyCost
		}
		if g.parts.limit > 0 && more > 0 && x.size()+more > g.parts.limit {
			return abi.StateFull
		}
		x.seen[key] = bytes.Clone(v)
	}
	x.put = append(slices.DeleteFunc(x.put, func(k string) bool { return k == key }), key)
	return abi.OK
}

func (g *guest) stateNext(a []uint64) abi.Status {
	x, key := g.key(a)
	keys := x.keys()
	i, found := slices.BinarySearch(keys, key)
	if found {
		i++
	}
	if i == len(keys) {
		return abi.NotFound
	}
	return g.give([]byte(keys[i]), a[3], a[4])
}
