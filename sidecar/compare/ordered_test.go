package compare

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"
	"go.uber.org/goleak"
	"pgregory.net/rapid"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// letters makes one record of each byte, with offsets from 0.
func letters(s string) []Record {
	var rs []Record
	for i, c := range s {
		rs = append(rs, Record{Offset: int64(i), Timestamp: 1000, Value: []byte(string(c))})
	}
	return rs
}

func ordered(source, target []Record) Result {
	var o Ordered
	for _, r := range source {
		o.Source(r)
	}
	for _, r := range target {
		o.Target(r)
	}
	o.EndSource()
	o.EndTarget()
	return o.Result()
}

func TestOrderedTellsKinds(t *testing.T) {
	for _, c := range []struct {
		name, source, target string
		equal                uint64
		kinds                map[Kind]uint64
		first                string
	}{
		{"equal", "abcdef", "abcdef", 6, nil, ""},
		{"both empty", "", "", 0, nil, ""},
		{"all missing", "abc", "", 0, map[Kind]uint64{Missing: 3}, "missing, source offset 0"},
		{"lost at the start", "abcdef", "bcdef", 5, map[Kind]uint64{Missing: 1}, "missing, source offset 0"},
		{"lost in the middle", "abcdef", "abdef", 5, map[Kind]uint64{Missing: 1}, "missing, source offset 2"},
		{"lost at the end", "abcdef", "abcde", 5, map[Kind]uint64{Missing: 1}, "missing, source offset 5"},
		{"two lost apart", "abcdefghijklmnopqrstuvwxyz", "acdefghijklmnopqrstuvwxy", 24, map[Kind]uint64{Missing: 2}, "missing, source offset 1"},
		{"repeated", "abcdef", "abccdef", 6, map[Kind]uint64{Repeated: 1}, "repeated, target offset 3"},
		{"a batch repeated", "abcdef", "abcabcdef", 6, map[Kind]uint64{Repeated: 3}, "repeated, target offset 3"},
		{"repeated at the end", "abc", "abcc", 3, map[Kind]uint64{Repeated: 1}, "repeated, target offset 3"},
		{"swapped", "abcdef", "acbdef", 4, map[Kind]uint64{Reordered: 2}, "reordered, source offset 2, target offset 1"},
		{"swapped around an equal one", "abcdef", "dbcaef", 4, map[Kind]uint64{Reordered: 2}, "reordered, source offset 3, target offset 0"},
		{"changed", "abcdef", "abXdef", 5, map[Kind]uint64{Changed: 1}, `changed, source offset 2, target offset 2: value "c" became "X"`},
		{"unexpected", "abcdef", "abcXdef", 6, map[Kind]uint64{Unexpected: 1}, "unexpected, target offset 3"},
		{"nothing alike", "abc", "xyz", 0, map[Kind]uint64{Changed: 3}, `changed, source offset 0, target offset 0: value "a" became "x"`},
		{"late by much", "abcdefghijklmnopqrstuvwxyz", "bcdefghijklmnopqrstuvwxyza", 25, map[Kind]uint64{Missing: 0, Reordered: 1}, "missing, source offset 0"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := ordered(letters(c.source), letters(c.target))
			if r.Equal != c.equal || !maps.Equal(r.Kinds, c.kinds) {
				t.Errorf("%d equal, %v, want %d, %v", r.Equal, r.Kinds, c.equal, c.kinds)
			}
			if r.SourceRecords != uint64(len(c.source)) || r.TargetRecords != uint64(len(c.target)) {
				t.Errorf("counted %d and %d records", r.SourceRecords, r.TargetRecords)
			}
			if r.OK() != (c.source == c.target) {
				t.Errorf("OK is %v", r.OK())
			}
			if c.first != "" && (len(r.Differences) == 0 || r.Differences[0].String() != c.first) {
				t.Errorf("differences %v, want first %q", r.Differences, c.first)
			}
		})
	}
}

func TestDiffSeesEveryField(t *testing.T) {
	base := func() Record {
		return Record{Offset: 7, Timestamp: 1000, Key: []byte("k"), Value: []byte("v"),
			Headers: []kgo.RecordHeader{{Key: "a", Value: []byte("1")}, {Key: "a", Value: nil}}}
	}
	for want, change := range map[string]func(r *Record){
		"":                                     func(r *Record) { r.Offset = 8 },
		`key "k" became null`:                  func(r *Record) { r.Key = nil },
		`value "v" became null`:                func(r *Record) { r.Value = nil },
		`value "v" became ""`:                  func(r *Record) { r.Value = []byte{} },
		`value "v" became "w"`:                 func(r *Record) { r.Value = []byte("w") },
		"timestamp 1000 became 1001":           func(r *Record) { r.Timestamp++ },
		"2 headers became 1":                   func(r *Record) { r.Headers = r.Headers[:1] },
		`header 0: name "a" became "b"`:        func(r *Record) { r.Headers[0].Key = "b" },
		`header 0 ("a"): value "1" became "2"`: func(r *Record) { r.Headers[0].Value = []byte("2") },
		`header 1 ("a"): value null became ""`: func(r *Record) { r.Headers[1].Value = []byte{} },
		`value "v" became "` + strings.Repeat("x", 40) + `"… (41 bytes)`: func(r *Record) { r.Value = []byte(strings.Repeat("x", 41)) },
	} {
		source, target := base(), base()
		change(&target)
		if got := Diff(source, target); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
		if same := source.hash() == target.hash(); same != (want == "") {
			t.Errorf("%q: equal hashes is %v", want, same)
		}
	}
}

func TestNullIsNotEmpty(t *testing.T) {
	empty, null := Record{Key: []byte{}, Value: []byte{}}, Record{}
	for _, c := range []struct {
		source, target Record
		want           string
	}{
		{null, empty, "key null became \"\""},
		{empty, null, "key \"\" became null"},
	} {
		r := ordered([]Record{c.source}, []Record{c.target})
		if r.Kinds[Changed] != 1 || !strings.HasSuffix(r.Differences[0].String(), c.want) {
			t.Errorf("%v, want %q", r.Differences, c.want)
		}
	}
}

// Whichever order the sides arrive in, the outcome is the same.
func TestOrderedDoesNotDependOnTiming(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var source []Record
		for i := range rapid.IntRange(0, 200).Draw(t, "records") {
			source = append(source, Record{Offset: int64(i), Value: fmt.Append(nil, i)})
		}
		target := slices.Clone(source)
		if len(source) > 0 && rapid.Bool().Draw(t, "lose") {
			at := rapid.IntRange(0, len(source)-1).Draw(t, "at")
			target = slices.Delete(target, at, at+1)
		}
		var o Ordered
		for s, d := source, target; len(s) > 0 || len(d) > 0; {
			if len(d) == 0 || len(s) > 0 && rapid.Bool().Draw(t, "source first") {
				o.Source(s[0])
				s = s[1:]
			} else {
				o.Target(d[0])
				d = d[1:]
			}
		}
		o.EndTarget()
		o.EndSource()
		r := o.Result()
		lost := uint64(len(source) - len(target))
		if r.Equal != uint64(len(target)) || r.Different != lost || r.Kinds[Missing] != lost {
			t.Fatalf("%d of %d equal, %v", r.Equal, len(source), r.Kinds)
		}
	})
}

func TestOrderedIsBounded(t *testing.T) {
	var o Ordered
	n := 0
	for ; !o.SourceFull(); n++ {
		o.Source(Record{Offset: int64(n)})
	}
	if n != windowRecords {
		t.Errorf("full after %d records, want %d", n, windowRecords)
	}
	var large Ordered
	for n = 0; !large.TargetFull(); n++ {
		large.Target(Record{Value: make([]byte, windowBytes/4)})
	}
	if n != 4 {
		t.Errorf("full after %d quarters of the window", n)
	}
	// A side that waits for one that has ended would wait for ever.
	large.EndSource()
	if large.TargetFull() {
		t.Error("the target is full although the source has ended")
	}
}

// A record lost early is told while the logs go on, not only at the end.
func TestOrderedSettlesAsItGoes(t *testing.T) {
	var o Ordered
	for i := range int64(3 * windowRecords) {
		r := Record{Offset: i, Value: fmt.Append(nil, i)}
		if !o.SourceFull() {
			o.Source(r)
		}
		if i != 5 {
			o.Target(r)
		}
	}
	if r := o.Result(); r.Kinds[Missing] != 1 || r.Differences[0].SourceOffset != 5 {
		t.Errorf("%v %v", r.Kinds, r.Differences)
	}
}

func TestDifferencesAreBoundedAndCounted(t *testing.T) {
	r := ordered(letters(strings.Repeat("a", 50)), nil)
	if len(r.Differences) != mostDifferences || r.Different != 50 {
		t.Errorf("%d kept of %d", len(r.Differences), r.Different)
	}
	r.Topic = "orders"
	text := Report{r}.String()
	if !strings.HasPrefix(text, "orders/0: 0 records equal, 50 different\n  missing, source offset 0\n") ||
		!strings.HasSuffix(text, "\n  and 40 more\n") {
		t.Error(text)
	}
}

func TestGoneIsADifference(t *testing.T) {
	var o Ordered
	o.Gone("source", 10, 15)
	r := o.Result()
	if r.OK() || r.Kinds[Gone] != 5 {
		t.Errorf("%v", r.Kinds)
	}
}
