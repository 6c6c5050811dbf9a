// Package state keeps the state of plugins: a compacted topic on the target for each
// plugin that has any, which a mirror reads when the plugin is loaded and writes when a
// partition is flushed.
//
// A record is one key of one source partition; integers are big-endian, a STRING is an
// INT16 length and UTF-8.
//
//	key      INT8 1, schema STRING, source topic STRING, source partition INT32, the
//	         plugin's key: the rest
//	value    what the plugin put; null: the key is gone
//	headers  one, "mirror": the id of the source topic (16 bytes), and a stamp of four
//	         INT64: epoch, opened, run, write
//
// The stamp tells writers apart (stamp.go). Records of a source partition are all in one
// partition of the topic. What is not like that is passed over.
package state

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"math"
	"strings"
	"unicode/utf8"

	"github.com/twmb/franz-go/pkg/kgo"

	"mirror/abi"
	"mirror/plugins"
)

// Partitions is how many partitions of the topic are used, and how many it is made with.
const Partitions = 4

const (
	version   = 1
	header    = "mirror"
	stampSize = 16 + 4*8
	prefix    = "mm2-plugin-state"
	suffix    = "internal"
)

// TopicName is the name of a plugin's topic on the target: one that MirrorMaker takes
// for internal, too. The separator is that of the flow's names.
func TopicName(from, plugin, separator string) string {
	return strings.Join([]string{prefix, from, plugin, suffix}, separator)
}

// IsTopic says whether a topic may be one of a plugin's state.
func IsTopic(name, separator string) bool {
	return strings.HasPrefix(name, prefix+separator) && strings.HasSuffix(name, separator+suffix)
}

// partitionOf is the partition that has the records of a source partition.
func partitionOf(k plugins.Key) int32 {
	h := fnv.New32a()
	fmt.Fprintf(h, "%s-%d", k.Topic, k.Partition)
	return int32(h.Sum32() % Partitions)
}

func appendKey(b []byte, schema string, k plugins.Key, name []byte) []byte {
	b = append(b, version)
	b = appendString(b, schema)
	b = appendString(b, k.Topic)
	b = binary.BigEndian.AppendUint32(b, uint32(k.Partition))
	return append(b, name...)
}

func appendString(b []byte, s string) []byte {
	return append(binary.BigEndian.AppendUint16(b, uint16(len(s))), s...)
}

// errNoState is the cause of every error of parse.
var errNoState = errors.New("not a plugin's state")

// entry is a record of the topic. Its bytes are the record's.
type entry struct {
	schema  string
	key     plugins.Key
	name    []byte
	value   []byte // nil: it is gone
	topicID [16]byte
	stamp   stamp
}

func parse(r *kgo.Record) (e entry, err error) {
	refuse := func(why string) (entry, error) {
		return entry{}, fmt.Errorf("%w: %s, key %.40x", errNoState, why, r.Key)
	}
	if len(r.Key) == 0 || r.Key[0] != version {
		return refuse("another version")
	}
	rest, ok := r.Key[1:], true
	if e.schema, rest, ok = cutString(rest); !ok {
		return refuse("no schema")
	}
	if e.key.Topic, rest, ok = cutString(rest); !ok || len(rest) < 4 {
		return refuse("no topic")
	}
	e.key.Partition = int32(binary.BigEndian.Uint32(rest))
	e.name = rest[4:]
	if e.key.Partition < 0 || len(e.name) == 0 || len(e.name) > abi.MaxStateKey {
		return refuse("a partition or a key that cannot be")
	}
	for _, h := range r.Headers {
		if h.Key == header && len(h.Value) == stampSize {
			copy(e.topicID[:], h.Value)
			e.stamp = parseStamp(h.Value[16:])
			e.value = r.Value
			return e, nil
		}
	}
	return refuse("no stamp")
}

func cutString(b []byte) (s string, rest []byte, ok bool) {
	if len(b) < 2 {
		return "", nil, false
	}
	n := int(binary.BigEndian.Uint16(b))
	if n == 0 || n > math.MaxInt16 || len(b) < 2+n || !utf8.Valid(b[2:2+n]) {
		return "", nil, false
	}
	return string(b[2 : 2+n]), b[2+n:], true
}

// record makes the record of a change. It shares the change's value.
func record(topic, schema string, c plugins.Change, s stamp) *kgo.Record {
	stamped := append(make([]byte, 0, stampSize), c.TopicID[:]...)
	return &kgo.Record{
		Topic: topic, Partition: partitionOf(c.Key), Key: appendKey(nil, schema, c.Key, c.Name), Value: c.Value,
		Headers: []kgo.RecordHeader{{Key: header, Value: s.append(stamped)}},
	}
}
