package pipeline

import (
	"fmt"
	"testing"
	"time"

	"mirror/sidecar/config"
)

// failing has the plugin echo halt each partition that it is told of.
func failing(f *config.Flow) {
	echo(f)
	f.Plugins[0].Config = map[string]any{"commit": "return", "status": "-1"}
}

// haltedAt4 is a mirror that has copied ten values of t, and the plugin was told of
// five.
func (l *lab) haltedAt4() *running {
	l.Helper()
	r := l.settled()
	r.apply(failing)
	l.source.write("t", 0, values("v", 5, 5)...)
	r.stalled("t", 0, "plugin echo")
	l.copied("t", 0, values("v", 0, 10)...)
	return r
}

// toldAll waits until the position is that of the last of n values, which are there
// once, and checks that the plugin was told of all.
func (l *lab) toldAll(n int) {
	l.Helper()
	l.saved("t", 0, int64(n-1))
	l.copied("t", 0, values("v", 0, n)...)
	if heard := l.heard("t"); heard != int64(n-1) {
		l.Errorf("the plugin has been told up to %d, want %d", heard, n-1)
	}
}

// What leaves while a plugin has halted it goes back to what is saved: if it comes
// back the plugin is told of what it was not, and nothing is copied again.
func TestATopicThatLeavesHaltedByAPluginComesBack(t *testing.T) {
	for _, resume := range []bool{true, false} {
		with := func(f *config.Flow) { f.Resume = resume }
		t.Run(fmt.Sprintf("resume = %v", resume), func(t *testing.T) {
			l := newLab(t, echo, with, refreshing(time.Hour))
			l.source.create("t", 1)
			l.source.write("t", 0, values("v", 0, 5)...)
			r := l.haltedAt4()
			r.apply(selecting(t, "other"))
			r.left("t")
			if at := l.positionOf("t"); at != 4 {
				t.Errorf("position %d is saved of what left, want 4", at)
			}
			r.apply(selecting(t, ".*"), echo)
			l.source.write("t", 0, values("v", 10, 2)...)
			l.toldAll(12)
		})
	}
}

// The same where the partition was halted while it began, at what it found on the
// target.
func TestATopicThatLeavesHaltedWhileItBeginsComesBack(t *testing.T) {
	l := newLab(t, echo, resuming, refreshing(100*time.Millisecond))
	l.source.create("t", 1)
	l.source.write("t", 0, values("v", 0, 5)...)
	l.haltedAt4().stop()
	r := l.start()
	r.stalled("t", 0, "plugin echo")
	r.apply(selecting(t, "other"))
	r.left("t")
	r.apply(selecting(t, ".*"), echo)
	l.source.write("t", 0, values("v", 10, 2)...)
	l.toldAll(12)
}

// And where the positions' topic is made again meanwhile, which has all positions
// saved once more, and the mirror restarted.
func TestWhatAPluginWasNotToldIsNotSavedForIt(t *testing.T) {
	l := newLab(t, echo, resuming)
	l.source.create("t", 1)
	l.source.write("t", 0, values("v", 0, 5)...)
	r := l.haltedAt4()
	r.apply(selecting(t, "other"))
	r.left("t")
	l.target.remove(l.cfg.Positions.Topic)
	l.saved("t", 0, 4)
	r.stop()
	for _, change := range []func(*config.Flow){selecting(t, ".*"), echo} {
		change(&l.cfg)
	}
	l.source.write("t", 0, values("v", 10, 2)...)
	l.start()
	l.toldAll(12)
}

// Of a topic that was deleted meanwhile nobody can be told any more; what was copied
// and not told is said, and its position does not claim it.
func TestATopicThatIsDeletedHaltedByAPlugin(t *testing.T) {
	l := newLab(t, echo, resuming)
	l.source.create("t", 1)
	l.source.create("u", 1)
	l.source.write("t", 0, values("v", 0, 5)...)
	r := l.haltedAt4()
	l.source.remove("t")
	r.left("t")
	if n := l.log.Count("before plugins were told of all"); n != 1 {
		t.Errorf("it is logged %d times", n)
	}
	r.apply(echo)
	l.source.write("u", 0, values("u", 0, 3)...)
	l.saved("u", 0, 2)
	r.stop()
	if at := l.positionOf("t"); at != 4 {
		t.Errorf("position %d is saved of what left, want 4", at)
	}
}
