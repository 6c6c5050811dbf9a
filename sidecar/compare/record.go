// Package compare says whether two topics hold the same records: partition by
// partition, in order, with key, value, headers and timestamp, where null and
// empty are not the same. The core (Ordered, Compacted) is pure; Start and
// Complete feed it from two clusters, both sides in step, so memory stays
// bounded however long a comparison runs.
package compare

import (
	"encoding/binary"
	"fmt"
	"hash/maphash"
	"strconv"

	"github.com/twmb/franz-go/pkg/kgo"
)

// Record is what has to arrive unchanged, and where it was found.
type Record struct {
	Offset    int64 // on its own side; told in differences, not compared
	Timestamp int64 // Unix milliseconds
	Key       []byte
	Value     []byte
	Headers   []kgo.RecordHeader
}

// Diff names the first thing in which two records differ, "" when they are
// equal. Offsets are not compared.
func Diff(source, target Record) string {
	if d := diffBytes("key", source.Key, target.Key); d != "" {
		return d
	}
	if d := diffBytes("value", source.Value, target.Value); d != "" {
		return d
	}
	if source.Timestamp != target.Timestamp {
		return fmt.Sprintf("timestamp %d became %d", source.Timestamp, target.Timestamp)
	}
	if s, t := len(source.Headers), len(target.Headers); s != t {
		return fmt.Sprintf("%d headers became %d", s, t)
	}
	for i, s := range source.Headers {
		t := target.Headers[i]
		if s.Key != t.Key {
			return fmt.Sprintf("header %d: name %q became %q", i, s.Key, t.Key)
		}
		if d := diffBytes(fmt.Sprintf("header %d (%q): value", i, s.Key), s.Value, t.Value); d != "" {
			return d
		}
	}
	return ""
}

func diffBytes(what string, source, target []byte) string {
	if string(source) == string(target) && (source == nil) == (target == nil) {
		return ""
	}
	return fmt.Sprintf("%s %s became %s", what, show(source), show(target))
}

// show prints bytes so that null, empty and binary data can be told apart.
func show(b []byte) string {
	const most = 40
	switch {
	case b == nil:
		return "null"
	case len(b) <= most:
		return strconv.Quote(string(b))
	default:
		return fmt.Sprintf("%q… (%d bytes)", b[:most], len(b))
	}
}

// seed makes hashes of this process comparable with each other.
var seed = maphash.MakeSeed()

// hash is equal for records that Diff finds equal.
func (r *Record) hash() uint64 {
	var h maphash.Hash
	h.SetSeed(seed)
	writeInt := func(n int64) {
		var b [8]byte
		binary.LittleEndian.PutUint64(b[:], uint64(n))
		h.Write(b[:])
	}
	write := func(b []byte) {
		if b == nil {
			writeInt(-1)
			return
		}
		writeInt(int64(len(b)))
		h.Write(b)
	}
	writeInt(r.Timestamp)
	write(r.Key)
	write(r.Value)
	writeInt(int64(len(r.Headers)))
	for _, header := range r.Headers {
		writeInt(int64(len(header.Key)))
		h.WriteString(header.Key)
		write(header.Value)
	}
	return h.Sum64()
}

// size is about what the record holds in memory.
func (r *Record) size() int {
	n := 96 + len(r.Key) + len(r.Value)
	for _, h := range r.Headers {
		n += 40 + len(h.Key) + len(h.Value)
	}
	return n
}
