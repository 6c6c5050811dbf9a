package produce

import (
	"testing"
	"time"
)

func TestTripIsTheShortestOfLate(t *testing.T) {
	var tr trips
	at := time.Unix(0, 0)
	add := func(n int, took, every time.Duration) {
		for range n {
			at = at.Add(every)
			tr.add(took, at)
		}
	}
	check := func(what string, want time.Duration) {
		t.Helper()
		if got := tr.length(); got != want {
			t.Errorf("%s: %v, want %v", what, got, want)
		}
	}
	add(tripSamples-1, 50*time.Millisecond, 0)
	check("too few answers to know", 0)
	add(1, 60*time.Millisecond, 0)
	check("a long link", 50*time.Millisecond)
	add(1, 2*time.Millisecond, 0)
	check("one quick answer: it was not the link", 2*time.Millisecond)
	add(20, 40*time.Millisecond, tripSpan/10)
	check("the quick answer is in the span before", 2*time.Millisecond)
	add(20, 40*time.Millisecond, tripSpan/10)
	check("the quick answer is too long ago", 40*time.Millisecond)
}
