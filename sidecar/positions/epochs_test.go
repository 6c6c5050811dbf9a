package positions

import (
	"testing"

	"pgregory.net/rapid"
)

func TestEpochs(t *testing.T) {
	var e Epochs
	if _, _, ok := e.Below(9); ok || e.At(100) != -1 || e.String() != "" {
		t.Errorf("the empty one knows %q", e)
	}
	e = e.Seen(-1, 0).Seen(1, 3).Seen(1, 20).Seen(4, 50).Seen(7, 80)
	if got := e.String(); got != "1@3,4@50,7@80" {
		t.Errorf("got %s", got)
	}
	for offset, want := range map[int64]int32{2: -1, 3: 1, 49: 1, 50: 4, 79: 4, 80: 7, 1000: 7} {
		if got := e.At(offset); got != want {
			t.Errorf("offset %d has epoch %d, want %d", offset, got, want)
		}
	}
	for _, c := range []struct {
		epoch, own int32
		end        int64
		ok         bool
	}{{0, -1, -1, false}, {1, 1, 50, true}, {3, 1, 50, true}, {4, 4, 80, true}, {7, 7, -1, true}, {9, 7, -1, true}} {
		if own, end, ok := e.Below(c.epoch); own != c.own || end != c.end || ok != c.ok {
			t.Errorf("below %d: %d ends at %d, %v; want %d at %d, %v", c.epoch, own, end, ok, c.own, c.end, c.ok)
		}
	}
	// Read again from the middle, where the log is another one now.
	for _, c := range []struct {
		epoch  int32
		offset int64
		want   string
	}{{7, 90, "1@3,4@50,7@80"}, {7, 80, "1@3,4@50,7@80"}, {8, 60, "1@3,4@50,8@60"}, {5, 50, "1@3,5@50"}, {3, 60, "1@3,4@50"}, {0, 0, "0@0"}} {
		if got := e.Seen(c.epoch, c.offset).String(); got != c.want {
			t.Errorf("epoch %d seen at %d: %s, want %s", c.epoch, c.offset, got, c.want)
		}
	}
	for n := range int32(20) {
		e = e.Seen(10+n, 100+int64(n))
	}
	if got := e.String(); got != "22@112,23@113,24@114,25@115,26@116,27@117,28@118,29@119" {
		t.Errorf("of many it keeps %s", got)
	}
}

func TestEpochsAreReadAsWritten(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var e, got Epochs
		at := int64(0)
		for range rapid.IntRange(0, 20).Draw(t, "n") {
			at += rapid.Int64Range(0, 1<<40).Draw(t, "gap")
			e = e.Seen(rapid.Int32Min(0).Draw(t, "epoch"), at)
		}
		if err := got.UnmarshalText([]byte(e.String())); err != nil || got != e {
			t.Fatalf("%s is read as %s, %v", e, got, err)
		}
	})
	for _, bad := range []string{"x", "1", "1@", "@1", "1@2,", "-1@0", "1@-2", "1@5,1@6", "2@5,1@6", "1@5,2@5", "4294967296@0"} {
		e := Epochs{}.Seen(3, 3)
		if err := e.UnmarshalText([]byte(bad)); err == nil || e != (Epochs{}) {
			t.Errorf("%q is read as %s, %v", bad, e, err)
		}
	}
}
