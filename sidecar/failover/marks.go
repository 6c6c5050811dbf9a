package failover

import (
	"cmp"
	"slices"
	"time"

	"mirror/plugins"
	"mirror/sidecar/offsets"
)

// marks is what is remembered of checkpoints and commits between rounds: of a million
// of them 32 MB. The groups that are there have no more than that; those that are gone
// are forgotten.
type marks struct {
	places map[plugins.Key]uint32 // by topic and partition on the target
	names  []place                // by number
	groups map[string]*group
	usual  int // how many offsets a group has, 0: none has been read yet
}

// place is a partition of the target. One whose topics are made again gets another
// number, so that nothing that was known of it holds any more.
type place struct {
	plugins.Key
	sourceID, targetID [16]byte // of the topics, zero: not seen yet
}

// group is what is remembered of a group.
type group struct {
	marks    []mark            // by place
	metadata map[uint32]string // that is in its checkpoints, by place; without empty ones
	size     int               // how many offsets it had when it was last read
	seen     bool              // on the source, by this process
	// left is the group on the target as it was listed before the mirror last committed
	// for it; nil: it did not in the last round.
	left *kind
}

// kind tells whether a group had members between two looks, as far as that can be
// told: a group that never had any has no protocol, the first KIP-848 or Streams member
// changes its type, and each one its epoch. One of the classic protocol that has had
// members before does not tell.
type kind struct {
	typ, protocol string
	epoch         int32 // 0: it has none, or it could not be had
}

// visited says whether a group that was like that when the mirror committed for it, and
// is like now, had members in between.
func (k kind) visited(now kind) bool {
	if k == (kind{}) && now == (kind{typ: "classic"}) {
		return false // there was none: the commit has made it
	}
	if k.epoch == 0 || now.epoch == 0 { // nothing to compare
		k.epoch, now.epoch = 0, 0
	}
	return k != now
}

// mark is a checkpoint that is in the topic.
type mark struct {
	place  uint32
	at     uint32 // when it was written, in seconds since 1970
	up     int64
	down   int64 // -1: there is none
	synced int64 // what was last committed to the group on the target, -1: nothing
}

func newMarks() *marks {
	return &marks{places: map[plugins.Key]uint32{}, groups: map[string]*group{}}
}

// placeOf is the number of a partition of the target.
func (m *marks) placeOf(k plugins.Key) uint32 {
	n, ok := m.places[k]
	if !ok {
		n = uint32(len(m.names))
		m.places[k], m.names = n, append(m.names, place{Key: k})
	}
	return n
}

// renew gives another number to each partition whose topics are not those that were
// seen before.
func (m *marks) renew(all []Partition) {
	for _, p := range all {
		k := plugins.Key{Topic: p.Target, Partition: p.Partition}
		at := &m.names[m.placeOf(k)]
		if at.sourceID != p.SourceID && at.sourceID != [16]byte{} || at.targetID != p.TargetID && at.targetID != [16]byte{} {
			delete(m.places, k)
			at = &m.names[m.placeOf(k)]
		}
		at.sourceID, at.targetID = p.SourceID, p.TargetID
	}
}

// of is the group of a name, made if need be.
func (m *marks) of(name string) *group {
	g := m.groups[name]
	if g == nil {
		g = &group{}
		m.groups[name] = g
	}
	return g
}

// group is the group of a name, nil: nothing is remembered of it.
func (m *marks) group(name string) *group {
	if m == nil {
		return nil
	}
	return m.groups[name]
}

// find is the group's mark at a place; nil: none.
func (g *group) find(place uint32) *mark {
	if g == nil {
		return nil
	}
	i, ok := g.search(place)
	if !ok {
		return nil
	}
	return &g.marks[i]
}

func (g *group) search(place uint32) (int, bool) {
	return slices.BinarySearchFunc(g.marks, place, func(m mark, p uint32) int { return cmp.Compare(m.place, p) })
}

// at is the group's mark at a place, made if need be.
func (g *group) at(place uint32) *mark {
	i, ok := g.search(place)
	if !ok {
		g.marks = slices.Insert(g.marks, i, mark{place: place, down: -1, synced: -1})
	}
	return &g.marks[i]
}

// written keeps a checkpoint that is in the topic.
func (m *marks) written(c offsets.Checkpoint, at time.Time) {
	g := m.of(c.Group)
	n := m.placeOf(plugins.Key{Topic: c.Topic, Partition: c.Partition})
	k := g.at(n)
	k.up, k.down, k.at = c.Upstream, c.Downstream, uint32(max(at.Unix(), 0))
	if c.Metadata == "" {
		delete(g.metadata, n)
		return
	}
	if g.metadata == nil {
		g.metadata = map[uint32]string{}
	}
	g.metadata[n] = c.Metadata
}

// void forgets all checkpoints, as their topic has. What was committed stays known.
func (m *marks) void() {
	for _, g := range m.groups {
		g.metadata = nil
		for i := range g.marks {
			g.marks[i].down = -1
		}
	}
}

// drop forgets marks of a group whose partition has another number by now.
func (m *marks) drop(g *group) {
	g.marks = slices.DeleteFunc(g.marks, func(k mark) bool {
		stale := m.places[m.names[k.place].Key] != k.place
		if stale {
			delete(g.metadata, k.place)
		}
		return stale
	})
}

// count is the number of checkpoints.
func (m *marks) count() (n int) {
	if m == nil {
		return 0
	}
	for _, g := range m.groups {
		for i := range g.marks {
			if g.marks[i].down >= 0 {
				n++
			}
		}
	}
	return n
}
