package positions

import "testing"

func TestTheLastClaimCounts(t *testing.T) {
	tg := newTarget(t)
	old, successor := tg.open(t), tg.open(t)
	want := func(s *Store, claimed bool) {
		t.Helper()
		if got, err := s.Claimed(t.Context()); err != nil || got != claimed {
			t.Errorf("claimed %v, %v, want %v", got, err, claimed)
		}
	}
	claim := func(s *Store) {
		t.Helper()
		if err := s.Claim(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	want(old, false)
	claim(old)
	want(old, true)
	claim(successor)
	want(old, false)
	want(successor, true)

	// Positions do not matter, and a claim is not taken for one.
	at := map[Key]Position{{Topic: "t", Partition: 0}: {Offset: 5}}
	if err := old.Save(t.Context(), at); err != nil {
		t.Fatal(err)
	}
	want(successor, true)
	wantLoad(t, successor, at)
}

func TestAClaimIsSomebodyElsesPositionToMirrorMaker(t *testing.T) {
	s := &Store{source: `A"`}
	if got, want := string(s.claimKey()), `["mirror",{"cluster":"A\""}]`; got != want {
		t.Errorf("key %s, want %s", got, want)
	}
}
