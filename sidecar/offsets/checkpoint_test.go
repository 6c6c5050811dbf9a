package offsets

import (
	"bytes"
	"encoding/hex"
	"testing"

	"pgregory.net/rapid"

	"mirror/sidecar/config"
)

func TestCheckpointVectorsOfMirrorMaker(t *testing.T) {
	written, read, refused, named := codec[Checkpoint]{
		of: func(v vector) Checkpoint {
			return Checkpoint{*v.Group, *v.Topic, v.Partition, v.Upstream, v.Downstream, v.Metadata}
		},
		parse: ParseCheckpoint, none: ErrNoCheckpoint,
		text: func(v vector) *string { return v.Group },
		topic: func(v vector) string {
			return config.Flow{From: v.From, Naming: config.Naming{Separator: v.Separator}}.CheckpointsTopic()
		},
	}.check(t, "testdata/checkpoints.jsonl")
	if written != 6 || read != 3 || refused < 35 || named != 12 {
		t.Errorf("%d written, %d read, %d refused, %d names", written, read, refused, named)
	}
}

// The bytes of one checkpoint, computed by hand from MirrorMaker's schema.
func TestCheckpointBytes(t *testing.T) {
	c := Checkpoint{Group: "g", Topic: "A.t", Partition: 0, Upstream: 10, Downstream: 7}
	if got := hex.EncodeToString(c.AppendKey(nil)); got != "00016700"+"03412e74"+"00000000" {
		t.Errorf("key %s", got)
	}
	if got := hex.EncodeToString(c.AppendValue(nil)); got != "0000"+"000000000000000a"+"0000000000000007"+"0000" {
		t.Errorf("value %s", got)
	}
}

func TestCheckpointThereAndBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		offset := rapid.Int64Min(0)
		c := Checkpoint{
			Group: rapid.String().Draw(t, "group"), Topic: rapid.StringMatching(`[a-zA-Z0-9._-]{1,249}`).Draw(t, "topic"),
			Partition: rapid.Int32Min(0).Draw(t, "partition"), Upstream: offset.Draw(t, "up"), Downstream: offset.Draw(t, "down"),
			Metadata: rapid.String().Draw(t, "metadata"),
		}
		if got, err := ParseCheckpoint(c.AppendKey(nil), c.AppendValue(nil)); err != nil || got != c {
			t.Fatalf("%v is read as %v, %v", c, got, err)
		}
	})
}

func FuzzParseCheckpoint(f *testing.F) {
	c := Checkpoint{"g", "A.t", 0, 10, 7, "m"}
	f.Add(c.AppendKey(nil), c.AppendValue(nil))
	f.Add([]byte{}, []byte{})
	f.Fuzz(func(t *testing.T, key, value []byte) {
		c, err := ParseCheckpoint(key, value)
		if err != nil {
			if c != (Checkpoint{}) {
				t.Errorf("%v beside an error", c)
			}
			return
		}
		if c.Topic == "" || c.Partition < 0 || c.Upstream < 0 || c.Downstream < 0 {
			t.Errorf("read %+v", c)
		}
		if !bytes.HasPrefix(key, c.AppendKey(nil)) || !bytes.HasPrefix(value, c.AppendValue(nil)) {
			t.Errorf("%x, %x are read as %+v, which is written otherwise", key, value, c)
		}
	})
}
