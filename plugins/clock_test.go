package plugins

import (
	"testing"
	"time"
)

// A process that was stopped, or starved, is not the plugin's fault: only a plugin
// that works on and on passes its deadline.
func TestTimeWithoutWorkDoesNotCount(t *testing.T) {
	i := &instance{}
	looks := func(n int, between time.Duration) (ended bool) {
		defer func() {
			switch x := recover(); x {
			case nil:
			case errDeadline:
				ended = true
			default:
				panic(x)
			}
		}()
		for range n {
			i.looked = i.looked.Add(-between)
			i.look()
		}
		return false
	}
	i.p = &program{metered: true}
	i.within(t.Context(), 250*time.Millisecond)
	if looks(1, time.Hour) {
		t.Error("a process that was stopped for an hour ends the call")
	}
	if looks(3, time.Second) {
		t.Error("three starved looks end the call")
	}
	if !looks(1000, time.Millisecond) {
		t.Error("a guest that works for a second does not pass a deadline of 250 ms")
	}
}
