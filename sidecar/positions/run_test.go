package positions

import "testing"

func TestLastRunIsTheHighestThatSaved(t *testing.T) {
	tg := newTarget(t)
	wantRun := func(s *Store, want int64) {
		t.Helper()
		if got, err := s.LastRun(t.Context()); err != nil || got != want {
			t.Errorf("last run %d, %v, want %d", got, err, want)
		}
	}
	run := func(n int64) *Store {
		t.Helper()
		o := tg.options()
		o.Run = n
		s, err := Open(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(s.Close)
		return s
	}
	old, successor := run(100), run(200)
	wantRun(old, 0)
	tg.write(t, mm2("t", 0, `{"offset":3}`)) // MirrorMaker says nothing of runs
	wantRun(old, 0)
	save := func(s *Store) {
		t.Helper()
		if err := s.Save(t.Context(), map[Key]Position{{Topic: "t", Partition: 0}: Plain(5)}); err != nil {
			t.Fatal(err)
		}
	}
	save(old)
	wantRun(successor, 100)
	save(successor)
	save(old) // it does not know yet
	wantRun(old, 200)
}
