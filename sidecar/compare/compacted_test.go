package compare

import (
	"maps"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// writes makes records of words such as "k=v"; "k" is a tombstone. Offsets
// count from 0, and "_" leaves one out, as a cleaner does.
func writes(s string) []Record {
	var rs []Record
	for i, word := range strings.Fields(s) {
		if word == "_" {
			continue
		}
		r := Record{Offset: int64(i)}
		key, value, ok := strings.Cut(word, "=")
		r.Key = []byte(key)
		if ok {
			r.Value = []byte(value)
		}
		rs = append(rs, r)
	}
	return rs
}

func compacted(source, target []Record) Result {
	var c Compacted
	for _, r := range source {
		c.Source(r)
	}
	for _, r := range target {
		c.Target(r)
	}
	return c.Result()
}

func TestCompacted(t *testing.T) {
	for _, c := range []struct {
		name, source, target string
		equal                uint64
		kinds                map[Kind]uint64
	}{
		{"neither compacted", "a=1 b=1 a=2", "a=1 b=1 a=2", 2, nil},
		{"source compacted first", "_ b=1 a=2", "b=1 a=2", 2, nil},
		{"target compacted later", "a=1 b=1 a=2", "_ b=1 a=2", 2, nil},
		{"tombstone on both", "a=1 b=1 a", "a=1 b=1 a", 2, nil},
		{"tombstone dropped on the target", "a=1 b=1 a", "b=1", 2, nil},
		{"tombstone dropped on the source", "b=1", "a=1 b=1 a", 1, nil},
		{"last record lost", "a=1 b=1 a=2", "a=1 b=1", 1, map[Kind]uint64{Changed: 1}},
		{"key lost", "a=1 b=1", "a=1", 1, map[Kind]uint64{Missing: 1}},
		{"tombstone lost", "a=1 b=1 a", "a=1 b=1", 1, map[Kind]uint64{Changed: 1}},
		{"key too many", "a=1", "a=1 b=1", 1, map[Kind]uint64{Unexpected: 1}},
		{"empty for null", "a=1 a", "a=1 a=", 0, map[Kind]uint64{Changed: 1}},
		{"old record repeated", "a=1 a=2 b=1", "a=1 a=2 b=1 a=1", 1, map[Kind]uint64{Changed: 1}},
		{"other order", "a=1 b=1 c=1", "b=1 a=1 c=1", 2, map[Kind]uint64{Reordered: 1}},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := compacted(writes(c.source), writes(c.target))
			if r.Equal != c.equal || !maps.Equal(r.Kinds, c.kinds) {
				t.Errorf("%d equal, %v, want %d, %v: %v", r.Equal, r.Kinds, c.equal, c.kinds, r.Differences)
			}
			if !r.Compacted {
				t.Error("does not say that it counts keys")
			}
		})
	}
}

func TestCompactedPending(t *testing.T) {
	var c Compacted
	for _, r := range writes("a=1 b=1 c=1 d") {
		c.Source(r)
	}
	if got := c.Pending(); got != 3 {
		t.Errorf("%d keys pending, want 3: a tombstone may have been cleaned", got)
	}
	for _, r := range writes("a=1 b=0") {
		c.Target(r)
	}
	if got := c.Pending(); got != 2 {
		t.Errorf("%d keys pending, want 2", got)
	}
}

// Cleaning either side, in any way that a cleaner may, changes no outcome.
func TestCleaningDoesNotMatter(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		words := rapid.SliceOf(rapid.SampledFrom([]string{"a=1", "a=2", "a", "b=1", "b=2", "c=1", "c"})).Draw(t, "log")
		log := writes(strings.Join(words, " "))
		clean := func(side string) []Record {
			last := map[string]int{}
			for i, r := range log {
				last[string(r.Key)] = i
			}
			var kept []Record
			for i, r := range log {
				removable := last[string(r.Key)] != i || r.Value == nil
				if !removable || !rapid.Bool().Draw(t, side) {
					kept = append(kept, r)
				}
			}
			return kept
		}
		source, target := clean("source"), clean("target")
		if r := compacted(source, target); !r.OK() {
			// A tombstone may go only when what it hides is gone too.
			if !hidden(source, log) || !hidden(target, log) {
				t.Skip("not a cleaner's work")
			}
			t.Fatalf("source %v, target %v: %v", source, target, r.Differences)
		}
	})
}

// hidden says that every key whose last record was removed has no older one.
func hidden(kept, log []Record) bool {
	last := map[string]int64{}
	for _, r := range log {
		last[string(r.Key)] = r.Offset
	}
	for _, r := range kept {
		newer := false
		for _, k := range kept {
			newer = newer || string(k.Key) == string(r.Key) && k.Offset == last[string(r.Key)]
		}
		if !newer {
			return false
		}
	}
	return true
}
