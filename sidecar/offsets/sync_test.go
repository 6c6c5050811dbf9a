package offsets

import (
	"bytes"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"
)

func TestSyncVectorsOfMirrorMaker(t *testing.T) {
	written, read, refused, named := codec[Sync]{
		of:    func(v vector) Sync { return Sync{*v.Topic, v.Partition, v.Upstream, v.Downstream} },
		parse: ParseSync, none: ErrNoSync,
		text:  func(v vector) *string { return v.Topic },
		topic: func(v vector) string { return SyncsTopic(v.Location == "target", v.From, v.To, v.Separator) },
	}.check(t, "testdata/vectors.jsonl")
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
