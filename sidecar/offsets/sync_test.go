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
	"unicode/utf8"

	"pgregory.net/rapid"
)

// vector is a line of testdata/vectors.jsonl: what MirrorMaker's classes say (see
// testdata/Vectors.java) of a sync that is written, of a record that is read, or
// of the topic's name.
type vector struct {
	Topic                *string
	Partition            int32
	Upstream, Downstream int64
	Key, Value           *string // hexadecimal; nil: null

	Read  bool
	Error string // of reading

	Policy, Separator, Location, From, To, Name string
}

func (v vector) sync() Sync { return Sync{*v.Topic, v.Partition, v.Upstream, v.Downstream} }

func unhex(t *testing.T, s *string) []byte {
	t.Helper()
	if s == nil {
		return nil
	}
	b, err := hex.DecodeString(*s)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestVectorsOfMirrorMaker(t *testing.T) {
	file, err := os.Open("testdata/vectors.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	written, read, refused, named := 0, 0, 0, 0
	for in := bufio.NewScanner(file); in.Scan(); {
		var v vector
		if err := json.Unmarshal(in.Bytes(), &v); err != nil {
			t.Fatalf("%s: %v", in.Text(), err)
		}
		switch {
		case v.Name != "":
			named++
			if got := SyncsTopic(v.Location == "target", v.From, v.To, v.Separator); got != v.Name {
				t.Errorf("%s: got %s", in.Text(), got)
			}
		case v.Read:
			got, err := ParseSync(unhex(t, v.Key), unhex(t, v.Value))
			// What MirrorMaker reads and makes no sense is refused here.
			if v.Error != "" || *v.Topic == "" || strings.Contains(*v.Topic, "\ufffd") || v.Partition < 0 || v.Upstream < 0 || v.Downstream < 0 {
				refused++
				if !errors.Is(err, ErrNoSync) {
					t.Errorf("%s: got %v, %v", in.Text(), got, err)
				}
				continue
			}
			read++
			if err != nil || got != v.sync() {
				t.Errorf("%s: got %v, %v", in.Text(), got, err)
			}
		default:
			written++
			key, value := v.sync().AppendKey([]byte("before")), v.sync().AppendValue([]byte("before"))
			if !bytes.Equal(key, append([]byte("before"), unhex(t, v.Key)...)) || !bytes.Equal(value, append([]byte("before"), unhex(t, v.Value)...)) {
				t.Errorf("%s: got %x, %x", in.Text(), key, value)
			}
		}
	}
	if written != 6 || read != 3 || refused < 25 || named != 24 {
		t.Errorf("%d written, %d read, %d refused, %d names", written, read, refused, named)
	}
}

func TestSyncThereAndBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		offset := rapid.Int64Min(0)
		s := Sync{rapid.StringMatching(`[a-zA-Z0-9._-]{1,249}`).Draw(t, "topic"), rapid.Int32Min(0).Draw(t, "partition"), offset.Draw(t, "up"), offset.Draw(t, "down")}
		if got, err := ParseSync(s.AppendKey(nil), s.AppendValue(nil)); err != nil || got != s {
			t.Fatalf("%v is read as %v, %v", s, got, err)
		}
	})
}

func FuzzParseSync(f *testing.F) {
	s := Sync{"t", 0, 10, 7}
	f.Add(s.AppendKey(nil), s.AppendValue(nil))
	f.Add([]byte{}, []byte{})
	f.Fuzz(func(t *testing.T, key, value []byte) {
		s, err := ParseSync(key, value)
		if err != nil {
			if s != (Sync{}) {
				t.Errorf("%v beside an error", s)
			}
			return
		}
		if s.Topic == "" || !utf8.ValidString(s.Topic) || s.Partition < 0 || s.Upstream < 0 || s.Downstream < 0 {
			t.Errorf("read %+v", s)
		}
		if !bytes.HasPrefix(key, s.AppendKey(nil)) || !bytes.HasPrefix(value, s.AppendValue(nil)) {
			t.Errorf("%x, %x are read as %+v, which is written otherwise", key, value, s)
		}
	})
}
