package offsets

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"unicode/utf8"
)

// Checkpoint says where on the target a consumer group of the source goes on: its
// committed offset there, Upstream, is Downstream here; both are the next to read.
type Checkpoint struct {
	Group                string
	Topic                string // the target's name of it
	Partition            int32
	Upstream, Downstream int64
	Metadata             string // that the group committed with its offset
}

// The version of the value, and the only one there is.
const checkpointVersion = 0

// MaxString is how many bytes of UTF-8 a group, topic or metadata may have: their
// length is an INT16.
const MaxString = math.MaxInt16

// AppendKey appends the key of the checkpoint's record: group and topic, each as
// INT16 length and UTF-8, and the partition as INT32; big-endian. Lengths are not
// checked, see [MaxString].
func (c Checkpoint) AppendKey(b []byte) []byte {
	b = appendString(b, c.Group)
	b = appendString(b, c.Topic)
	return binary.BigEndian.AppendUint32(b, uint32(c.Partition))
}

// AppendValue appends the value of the checkpoint's record: version 0 as INT16, both
// offsets as INT64, the metadata as INT16 length and UTF-8; big-endian.
func (c Checkpoint) AppendValue(b []byte) []byte {
	b = binary.BigEndian.AppendUint16(b, checkpointVersion)
	b = binary.BigEndian.AppendUint64(b, uint64(c.Upstream))
	b = binary.BigEndian.AppendUint64(b, uint64(c.Downstream))
	return appendString(b, c.Metadata)
}

func appendString(b []byte, s string) []byte {
	return append(binary.BigEndian.AppendUint16(b, uint16(len(s))), s...)
}

// ErrNoCheckpoint is the cause of every error of ParseCheckpoint.
var ErrNoCheckpoint = errors.New("not a checkpoint")

// ParseCheckpoint reads a record of the topic of checkpoints. Like MirrorMaker it lets
// more bytes follow than it knows; unlike it, it refuses a partition or an offset
// below zero, an empty topic, text that is not UTF-8, and other versions.
func ParseCheckpoint(key, value []byte) (Checkpoint, error) {
	refuse := func(why string) (Checkpoint, error) {
		return Checkpoint{}, fmt.Errorf("%w: %s, key %.60x, value %.40x", ErrNoCheckpoint, why, key, value)
	}
	group, rest, ok := cutString(key)
	if !ok {
		return refuse("no group")
	}
	topic, rest, ok := cutString(rest)
	if !ok || topic == "" {
		return refuse("no topic")
	}
	if len(rest) < 4 || len(value) < 2+8+8 {
		return refuse("too short")
	}
	if v := binary.BigEndian.Uint16(value); v != checkpointVersion {
		return refuse(fmt.Sprintf("version %d", v))
	}
	metadata, _, ok := cutString(value[18:])
	if !ok {
		return refuse("no metadata")
	}
	c := Checkpoint{
		Group: group, Topic: topic, Partition: int32(binary.BigEndian.Uint32(rest)),
		Upstream:   int64(binary.BigEndian.Uint64(value[2:])),
		Downstream: int64(binary.BigEndian.Uint64(value[10:])), Metadata: metadata,
	}
	if c.Partition < 0 || c.Upstream < 0 || c.Downstream < 0 {
		return refuse("below zero")
	}
	return c, nil
}

// cutString reads a STRING off the front of b.
func cutString(b []byte) (s string, rest []byte, ok bool) {
	if len(b) < 2 {
		return "", nil, false
	}
	size := int(binary.BigEndian.Uint16(b))
	if size > MaxString || len(b) < 2+size || !utf8.Valid(b[2:2+size]) {
		return "", nil, false
	}
	return string(b[2 : 2+size]), b[2+size:], true
}
