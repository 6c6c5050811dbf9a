package positions

import (
	"context"
	"testing"
)

func TestAnothersClaimIsToldOf(t *testing.T) {
	tg := newTarget(t)
	claim := func(s *Store, ks ...Key) {
		t.Helper()
		if err := s.Claim(t.Context(), ks); err != nil {
			t.Fatal(err)
		}
	}
	k := func(n int32) Key { return Key{Topic: "t", Partition: n} }
	old := tg.open(t)
	claim(old, k(0), k(1))

	s := tg.open(t)
	load(t, s) // what was claimed before is none of its business
	ctx, stop := context.WithCancel(t.Context())
	taken, ended := make(chan Key), make(chan error, 1)
	go func() { ended <- s.Watch(ctx, func(k Key) { taken <- k }) }()
	claim(s, k(0), k(1), k(2))
	claim(old, k(0), k(1)) // it was on its way when its mirror ended
	at := map[Key]Position{k(0): {Offset: 5}}
	if err := old.Save(t.Context(), at); err != nil { // it does not know yet
		t.Fatal(err)
	}
	next := tg.open(t)
	load(t, next)
	claim(next, k(2))
	if got := <-taken; got != k(2) {
		t.Errorf("%v is said to be taken, want %v", got, k(2))
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	wantLoad(t, s, at) // a claim is not taken for a position
}

// Of two one is the successor, and only one.
func TestWhoComesLast(t *testing.T) {
	in := []claim{ // in order
		{Run: "z", Loaded: 1, Opened: 9}, {Run: "b", Loaded: 2, Opened: 3}, {Run: "a", Loaded: 2, Opened: 4}, {Run: "c", Loaded: 2, Opened: 4},
	}
	for i, a := range in {
		for j, b := range in {
			if got := a.after(b); got != (i > j) {
				t.Errorf("%+v after %+v: %v", a, b, got)
			}
		}
	}
}
