package offsets

import (
	"bufio"
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"os"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"mirror/sidecar/config"
)

// checkpointVector is a line of testdata/checkpoints.jsonl: what MirrorMaker's classes
// say (see testdata/Checkpoints.java) of a checkpoint that is written, of a record that
// is read, or of the topic's name.
type checkpointVector struct {
	Group, Topic         *string
	Partition            int32
	Upstream, Downstream int64
	Metadata             string
	Key, Value           *string // hexadecimal; nil: null

	Read  bool
	Error string // of reading

	Policy, Separator, From, Name string
}

func (v checkpointVector) checkpoint() Checkpoint {
	return Checkpoint{*v.Group, *v.Topic, v.Partition, v.Upstream, v.Downstream, v.Metadata}
}

func TestCheckpointVectorsOfMirrorMaker(t *testing.T) {
	file, err := os.Open("testdata/checkpoints.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	written, read, refused, named := 0, 0, 0, 0
	in := bufio.NewScanner(file)
	in.Buffer(nil, 1<<20)
	for in.Scan() {
		var v checkpointVector
		if err := json.Unmarshal(in.Bytes(), &v); err != nil {
			t.Fatalf("%s: %v", in.Text(), err)
		}
		switch {
		case v.Name != "":
			named++
			if got := (config.Flow{From: v.From, Naming: config.Naming{Separator: v.Separator}}.CheckpointsTopic()); got != v.Name {
				t.Errorf("%s: got %s", in.Text(), got)
			}
		case v.Read:
			got, err := ParseCheckpoint(unhex(t, v.Key), unhex(t, v.Value))
			// What MirrorMaker reads and makes no sense is refused here.
			if v.Error != "" || *v.Topic == "" || strings.Contains(*v.Group, "\ufffd") || v.Partition < 0 || v.Upstream < 0 || v.Downstream < 0 {
				refused++
				if !errors.Is(err, ErrNoCheckpoint) {
					t.Errorf("%s: got %v, %v", in.Text(), got, err)
				}
				continue
			}
			read++
			if err != nil || got != v.checkpoint() {
				t.Errorf("%s: got %v, %v", in.Text(), got, err)
			}
		default:
			written++
			key, value := v.checkpoint().AppendKey([]byte("before")), v.checkpoint().AppendValue([]byte("before"))
			if !bytes.Equal(key, append([]byte("before"), unhex(t, v.Key)...)) || !bytes.Equal(value, append([]byte("before"), unhex(t, v.Value)...)) {
				t.Errorf("%s: got %x, %x", in.Text(), key, value)
			}
		}
	}
	if in.Err() != nil || written != 6 || read != 3 || refused < 35 || named != 12 {
		t.Errorf("%v: %d written, %d read, %d refused, %d names", in.Err(), written, read, refused, named)
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
