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
)

// vector is a line of testdata/*.jsonl: what MirrorMaker's classes say (see
// testdata/*.java) of a sync or a checkpoint that is written, of a record that is read,
// or of the topic's name.
type vector struct {
	Group, Topic         *string
	Partition            int32
	Upstream, Downstream int64
	Metadata             string
	Key, Value           *string // hexadecimal; nil: null

	Read  bool
	Error string // of reading

	Policy, Separator, Location, From, To, Name string
}

// codec is what the vectors of a file are held against.
type codec[T interface {
	comparable
	AppendKey([]byte) []byte
	AppendValue([]byte) []byte
}] struct {
	of    func(vector) T
	parse func(key, value []byte) (T, error)
	none  error                // of parse, for what is no T
	text  func(vector) *string // where invalid UTF-8 may be
	topic func(vector) string  // the topic's name
}

// check holds the codec to a file, and says how many vectors there were of each kind.
func (c codec[T]) check(t *testing.T, name string) (written, read, refused, named int) {
	t.Helper()
	file, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	in := bufio.NewScanner(file)
	in.Buffer(nil, 1<<20)
	for in.Scan() {
		var v vector
		if err := json.Unmarshal(in.Bytes(), &v); err != nil {
			t.Fatalf("%s: %v", in.Text(), err)
		}
		switch {
		case v.Name != "":
			named++
			if got := c.topic(v); got != v.Name {
				t.Errorf("%s: got %s", in.Text(), got)
			}
		case v.Read:
			got, err := c.parse(unhex(t, v.Key), unhex(t, v.Value))
			// What MirrorMaker reads and makes no sense is refused here.
			if v.Error != "" || *v.Topic == "" || strings.Contains(*c.text(v), "\ufffd") || v.Partition < 0 || v.Upstream < 0 || v.Downstream < 0 {
				refused++
				if !errors.Is(err, c.none) {
					t.Errorf("%s: got %v, %v", in.Text(), got, err)
				}
				continue
			}
			read++
			if err != nil || got != c.of(v) {
				t.Errorf("%s: got %v, %v", in.Text(), got, err)
			}
		default:
			written++
			key, value := c.of(v).AppendKey([]byte("before")), c.of(v).AppendValue([]byte("before"))
			if !bytes.Equal(key, append([]byte("before"), unhex(t, v.Key)...)) || !bytes.Equal(value, append([]byte("before"), unhex(t, v.Value)...)) {
				t.Errorf("%s: got %x, %x", in.Text(), key, value)
			}
		}
	}
	if err := in.Err(); err != nil {
		t.Fatal(err)
	}
	return written, read, refused, named
}

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
