package state

import (
	"encoding/hex"
	"errors"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"

	"mirror/plugins"
)

// The bytes of a record: what is written today must be read for ever.
func TestGoldenRecord(t *testing.T) {
	id := [16]byte{0xa1, 0xa2, 0xa3, 0xa4, 0xa5, 0xa6, 0xa7, 0xa8, 0xa9, 0xaa, 0xab, 0xac, 0xad, 0xae, 0xaf, 0xb0}
	c := plugins.Change{Key: plugins.Key{Topic: "orders", Partition: 7}, TopicID: id, Name: []byte("r\x00\x01"), Value: []byte("chunk")}
	r := record("mm2-plugin-state.A.offset-sync.internal", "runs-1", c, stamp{epoch: 3, opened: 1_700_000_000_000, run: 0x1122334455667788, write: 258})
	const (
		key   = "01" + "0006" + "72756e732d31" + "0006" + "6f7264657273" + "00000007" + "720001"
		value = "6368756e6b"
		stamp = "a1a2a3a4a5a6a7a8a9aaabacadaeafb0" + "0000000000000003" + "0000018bcfe56800" + "1122334455667788" + "0000000000000102"
	)
	if got := hex.EncodeToString(r.Key); got != key {
		t.Errorf("key   %s\nwant  %s", got, key)
	}
	if got := hex.EncodeToString(r.Value); got != value {
		t.Errorf("value %s\nwant  %s", got, value)
	}
	if len(r.Headers) != 1 || r.Headers[0].Key != "mirror" || hex.EncodeToString(r.Headers[0].Value) != stamp {
		t.Errorf("headers %x\nwant %s", r.Headers, stamp)
	}
	if r.Partition != 0 { // FNV-1a of "orders-7", modulo 4
		t.Errorf("partition %d, want 0", r.Partition)
	}
	e, err := parse(r)
	if err != nil || e.schema != "runs-1" || e.key != c.Key || string(e.name) != string(c.Name) || string(e.value) != "chunk" || e.topicID != id || e.stamp.write != 258 {
		t.Errorf("read back: %+v, %v", e, err)
	}
	c.Value = nil
	if e, err := parse(record("t", "s", c, e.stamp)); err != nil || e.value != nil {
		t.Errorf("a tombstone: %+v, %v", e, err)
	}
}

func TestNames(t *testing.T) {
	if got := TopicName("primary", "offset-sync", "."); got != "mm2-plugin-state.primary.offset-sync.internal" {
		t.Error(got)
	}
	for name, want := range map[string]bool{"mm2-plugin-state.a.b.internal": true, "mm2-plugin-state.a.b": false, "x.mm2-plugin-state.a.b.internal": false} {
		if IsTopic(name, ".") != want {
			t.Errorf("%s: %v", name, !want)
		}
	}
}

// Of two writers one is the successor, and it is the one that has read more.
func TestStamps(t *testing.T) {
	a := stamp{epoch: 1, opened: 50, run: 9, write: 1000}
	for _, b := range []stamp{{epoch: 2}, {epoch: 1, opened: 51}, {epoch: 1, opened: 50, run: 10}} {
		if b.compareRun(a) <= 0 || a.compareRun(b) >= 0 || b.compare(a) <= 0 {
			t.Errorf("%+v does not come after %+v", b, a)
		}
	}
	if b := (stamp{epoch: 1, opened: 50, run: 9, write: 1001}); b.compareRun(a) != 0 || b.compare(a) <= 0 {
		t.Errorf("%+v", b)
	}
}

// Whatever bytes there are: they are refused, or written back as they were.
func FuzzParse(f *testing.F) {
	r := record("t", "s", plugins.Change{Key: plugins.Key{Topic: "t", Partition: 1}, Name: []byte("k"), Value: []byte("v")}, stamp{1, 2, 3, 4})
	f.Add(r.Key, r.Value, r.Headers[0].Value)
	f.Fuzz(func(t *testing.T, key, value, stamped []byte) {
		e, err := parse(&kgo.Record{Key: key, Value: value, Headers: []kgo.RecordHeader{{Key: "other"}, {Key: header, Value: stamped}}})
		if err != nil {
			if !errors.Is(err, errNoState) {
				t.Error(err)
			}
			return
		}
		again := record("t", e.schema, plugins.Change{Key: e.key, TopicID: e.topicID, Name: e.name, Value: e.value}, e.stamp)
		if string(again.Key) != string(key) || string(again.Headers[0].Value) != string(stamped) {
			t.Errorf("%x becomes %x", key, again.Key)
		}
	})
}
