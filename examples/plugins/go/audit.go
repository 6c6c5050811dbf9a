//go:build wasip1

// An observer: for each range of records that is safe on the target it writes a
// record to a topic, which says where the records came from and where they are.
package main

import (
	"strconv"

	"mirror/abi/guest"
)

var topic = "audit-log"

func init() {
	guest.OnInit(func(*guest.Frame) error {
		if t, ok := guest.Config("topic"); ok {
			topic = t
		}
		return nil
	})
	guest.OnCommit(func(c *guest.Commits) error {
		if c.Replay() {
			return nil
		}
		for e := range c.All() {
			if e.DstLast() < 0 {
				continue // it left no record
			}
			err := c.EmitRecord(e, guest.Record{Topic: topic, Partition: -1, Timestamp: c.Now(), Key: key(e), Value: value(e)})
			if err != nil {
				return err
			}
		}
		return nil
	})
}

func main() {}

// The two buffers are used again for each record.
var keyRoom, valueRoom []byte

// key is the source partition: what becomes of one stays in order.
func key(e guest.Commit) []byte {
	keyRoom = append(append(keyRoom[:0], e.Topic()...), '-')
	keyRoom = strconv.AppendInt(keyRoom, int64(e.Partition()), 10)
	return keyRoom
}

// value is a JSON object. Names of topics need no escapes.
func value(e guest.Commit) []byte {
	b := append(append(valueRoom[:0], `{"topic":"`...), e.Topic()...)
	b = append(append(b, `","target_topic":"`...), e.TargetTopic()...)
	b = append(b, '"')
	for _, f := range []struct {
		name  string
		value int64
	}{
		{"partition", int64(e.Partition())}, {"first", e.SrcFirst()}, {"last", e.SrcLast()},
		{"target_first", e.DstFirst()}, {"target_last", e.DstLast()},
		{"records", int64(e.Records())}, {"dropped", int64(e.Dropped())},
	} {
		b = append(append(append(b, `,"`...), f.name...), `":`...)
		b = strconv.AppendInt(b, f.value, 10)
	}
	valueRoom = append(b, '}')
	return valueRoom
}
