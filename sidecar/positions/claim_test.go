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
	claim(old, k(0), k(1)) // it was on its way when its mirror ended
	claim(s, k(0), k(1), k(2))
	at := map[Key]Position{k(0): {Offset: 5}}
	if err := old.Save(t.Context(), at); err != nil { // it does not know yet
		t.Fatal(err)
	}
	claim(tg.open(t), k(2))
	if got := <-taken; got != k(2) {
		t.Errorf("%v is said to be taken, want %v", got, k(2))
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	wantLoad(t, s, at) // a claim is not taken for a position
}
