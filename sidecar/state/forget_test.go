package state

import (
	"slices"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"mirror/plugins"
)

// What is kept of a topic that is gone is removed, unless it is there again.
func TestForget(t *testing.T) {
	l := newLab(t)
	s := l.open()
	for n := range int32(3) {
		l.write(s, set(n, "a", "1")...)
	}
	s = l.open()
	s.Take(plugins.Key{Topic: "t", Partition: 1})
	if idle := s.Idle(); len(idle) != 0 {
		t.Errorf("idle %v, and a lane has one", idle)
	}
	s.Give(plugins.Key{Topic: "t", Partition: 1})
	if idle := s.Idle(); !slices.Equal(idle, []string{"t"}) {
		t.Errorf("idle %v", idle)
	}
	s.Take(plugins.Key{Topic: "t", Partition: 1})
	if err := s.Forget(t.Context(), "t"); err != nil {
		t.Fatal(err)
	}
	s = l.open()
	l.has(s, 1, "a", "1")
	s.Give(plugins.Key{Topic: "t", Partition: 1})
	l.ControlKey(int16(kmsg.Produce), func(kmsg.Request) (kmsg.Response, error, bool) { // it is back meanwhile
		s.Take(plugins.Key{Topic: "t", Partition: 1})
		return nil, nil, false
	})
	if err := s.Forget(t.Context(), "t"); err != nil {
		t.Fatal(err)
	}
	l.has(s, 1, "a", "1")
	if d := s.doubts(1); !slices.Equal(d, []string{"a"}) {
		t.Errorf("to be written again: %v", d)
	}
	s = l.open()
	for n := range int32(3) {
		l.has(s, n)
	}
}

// Nothing stays in memory of a topic that is gone, and one of its name that comes later
// is kept like any other.
func TestForgottenForGood(t *testing.T) {
	l := newLab(t)
	s := l.open()
	l.write(s, set(0, "a", "1", "b", "1")...)
	s = l.open()
	if err := s.Forget(t.Context(), "t"); err != nil {
		t.Fatal(err)
	}
	if len(s.kept) != 0 || len(s.seen) != 0 {
		t.Errorf("%d partitions and %d stamps are left", len(s.kept), len(s.seen))
	}
	l.write(s, set(0, "a", "2")...)
	s = l.open()
	l.has(s, 0, "a", "2")
	if d := s.doubts(0); len(d) != 0 {
		t.Errorf("doubts without a reason: %v", d)
	}
}
