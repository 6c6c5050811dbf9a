package contract

import (
	"strings"
	"testing"
)

// Records 0, 1, 4 and 5 of the source; the mirror died after it had stored the first
// three, and began again with the second; somebody else wrote in between.
func TestMoved(t *testing.T) {
	c := Copied{source: []int64{0, 1, 4, 5}, end: 18,
		copies: []copyOf{{10, 0}, {11, 1}, {12, 2}, {13, -1}, {14, 1}, {15, 2}, {16, 3}}}
	for _, at := range []struct {
		committed, at int64
		want          Moved
	}{
		{0, 0, Moved{Repeated: 2}},
		{0, 10, Moved{Repeated: 2}},
		{0, 11, Moved{Lost: 1, Repeated: 2}},
		{1, 14, Moved{}},
		{1, 13, Moved{}},
		{1, 11, Moved{Repeated: 2}},
		{2, 15, Moved{}},
		{3, 15, Moved{}},
		{4, 15, Moved{}},
		{4, 12, Moved{Repeated: 2}},
		{4, 16, Moved{Lost: 1}},
		{5, 16, Moved{}},
		{5, 15, Moved{Repeated: 1}},
		{6, 17, Moved{}},
		{9, 18, Moved{}},
		{9, 19, Moved{Ahead: 1}},
	} {
		if got := c.Moved(at.committed, at.at); got != at.want {
			t.Errorf("from %d to %d: %+v, want %+v", at.committed, at.at, got, at.want)
		}
	}
}

func TestMisplaced(t *testing.T) {
	c := Copied{source: []int64{0, 1, 4, 5, 6}, end: 18,
		copies: []copyOf{{10, 0}, {11, 1}, {12, 2}, {13, -1}, {14, 3}, {15, 2}, {16, 3}}}
	for _, r := range []struct {
		first, last, target int64
		want                string // "": nothing is wrong
	}{
		{0, 1, 10, ""},
		{1, 1, 11, ""},
		{4, 4, 12, ""},
		{4, 5, 15, ""},
		{0, 1, 11, "the record at 0 is not at 11"},
		{0, 0, 9, "the record at 0 is not at 9"},
		{1, 2, 11, "the source has no record at 2"},
		{4, 5, 12, "the record at 5 is not at 13"},
		{4, 6, 15, "the record at 6 is not at 17"},
		{7, 7, 17, "the source has no record at 7"},
	} {
		if got := c.Misplaced(r.first, r.last, r.target); (got == "") != (r.want == "") || !strings.HasPrefix(got, r.want) {
			t.Errorf("%+v: %q", r, got)
		}
	}
}
