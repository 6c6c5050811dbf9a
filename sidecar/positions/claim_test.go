package positions

import "testing"

func TestTheLastClaimCounts(t *testing.T) {
	tg := newTarget(t)
	old, successor := tg.open(t), tg.open(t)
	k, other := Key{Topic: "t", Partition: 0}, Key{Topic: "t", Partition: 1}
	want := func(s *Store, claimed bool) {
		t.Helper()
		if got, err := s.Claimed(t.Context(), k); err != nil || got != claimed {
			t.Errorf("claimed %v, %v, want %v", got, err, claimed)
		}
	}
	claim := func(s *Store, ks ...Key) {
		t.Helper()
		if err := s.Claim(t.Context(), ks); err != nil {
			t.Fatal(err)
		}
	}
	want(old, false)
	claim(old, k, other)
	want(old, true)
	claim(successor, other)
	want(old, true) // the other partition's
	claim(successor, k)
	want(old, false)
	want(successor, true)

	// Positions do not matter, and a claim is not taken for one.
	at := map[Key]Position{k: {Offset: 5}}
	if err := old.Save(t.Context(), at); err != nil {
		t.Fatal(err)
	}
	want(successor, true)
	wantLoad(t, successor, at)
}
