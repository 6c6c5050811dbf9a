// Package offsets has the records by which MirrorMaker 2 tells where offsets of
// the source are on the target, and the topic that they are kept in.
package offsets

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"unicode/utf8"
)

// Sync is an offset sync: the source record at Upstream was stored at Downstream.
type Sync struct {
	Topic                string // the source's name of it
	Partition            int32
	Upstream, Downstream int64
}

// SyncsTopic is the name of a flow's topic of offset syncs (Kafka 4.3.1,
// MirrorSourceConfig and DefaultReplicationPolicy; the identity policy's is no
// other). It has the alias of the other cluster in it: that of the target where
// the topic is on the source, and the other way round (KIP-716). The separator is
// that of the flow's names.
func SyncsTopic(onTarget bool, from, to, separator string) string {
	other := to
	if onTarget {
		other = from
	}
	return "mm2-offset-syncs" + separator + other + separator + "internal"
}

// AppendKey appends the key of the sync's record: the topic as INT16 length and
// UTF-8, the partition as INT32; big-endian. Topic must be a name that Kafka
// allows: its length is not checked.
func (s Sync) AppendKey(b []byte) []byte {
	b = binary.BigEndian.AppendUint16(b, uint16(len(s.Topic)))
	b = append(b, s.Topic...)
	return binary.BigEndian.AppendUint32(b, uint32(s.Partition))
}

// AppendValue appends the value of the sync's record: both offsets as INT64,
// big-endian; there is no version.
func (s Sync) AppendValue(b []byte) []byte {
	b = binary.BigEndian.AppendUint64(b, uint64(s.Upstream))
	return binary.BigEndian.AppendUint64(b, uint64(s.Downstream))
}

// ErrNoSync is the cause of every error of ParseSync.
var ErrNoSync = errors.New("not an offset sync")

// ParseSync reads a record of the topic of offset syncs. Like MirrorMaker it lets
// more bytes follow than it knows; unlike it, it refuses a partition or an offset
// below zero, and a topic without a name or not in UTF-8.
func ParseSync(key, value []byte) (Sync, error) {
	refuse := func(why string) (Sync, error) {
		return Sync{}, fmt.Errorf("%w: %s, key %.40x, value %.40x", ErrNoSync, why, key, value)
	}
	if len(key) < 2 || len(value) < 16 {
		return refuse("too short")
	}
	size := int(binary.BigEndian.Uint16(key))
	if len(key) < 2+size+4 {
		return refuse("key too short")
	}
	name := key[2 : 2+size]
	if size == 0 || size > math.MaxInt16 || !utf8.Valid(name) {
		return refuse("no topic")
	}
	s := Sync{
		Topic:      string(name),
		Partition:  int32(binary.BigEndian.Uint32(key[2+size:])),
		Upstream:   int64(binary.BigEndian.Uint64(value)),
		Downstream: int64(binary.BigEndian.Uint64(value[8:])),
	}
	if s.Partition < 0 || s.Upstream < 0 || s.Downstream < 0 {
		return refuse("below zero")
	}
	return s, nil
}
