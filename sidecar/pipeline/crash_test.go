package pipeline

import (
	"errors"
	"fmt"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"mirror/abi"
	"mirror/sidecar/config"
)

// echo is the guest of the plugins' own tests: it writes each frame that it is told
// to the topic "frames", and for each range an offset sync, before that.
func echo(f *config.Flow) {
	f.OffsetSyncs.Location = config.OnTarget
	f.Plugins = []config.Plugin{{
		Name: "echo", Path: filepath.Join("..", "..", "plugins", "testdata", "guest.wasm"), Failure: config.FailureHalt,
		Emit:   config.Emit{Topics: []string{"frames"}, OffsetSyncs: true, Create: true},
		Limits: config.Limits{Memory: 64 << 20, Call: time.Minute}, Config: map[string]any{},
	}}
}

// heard is the last offset of the topic's partition that the plugin has been told of,
// by what it wrote. It checks that nothing before was left out, that ranges came in
// order, and that each was stored where the plugin was told.
func (l *lab) heard(topic string) int64 {
	l.Helper()
	source, target := l.source.values(topic, 0), l.target.values("A."+topic, 0)
	heard, at := int64(-1), int64(-2) // in all, and since the partition was last assigned
	for n, text := range l.target.values("frames", 0) {
		f, err := abi.ParseFrame([]byte(text))
		if err != nil {
			l.Fatal(err)
		}
		for i := range f.Count() {
			switch f.Hook() {
			case abi.OnPartitions:
				e := f.Partition(i)
				if e.Topic != topic || e.Event == abi.Revoked {
					continue
				}
				if at = e.Position; at > heard {
					l.Errorf("frame %d: the plugin begins after offset %d, and has been told up to %d", n, at, heard)
				}
			case abi.OnCommit:
				c := f.Commit(i)
				if c.Topic != topic || f.Flags()&abi.Replay != 0 || c.SrcLast < c.SrcFirst {
					continue
				}
				if c.SrcFirst != at+1 {
					l.Errorf("frame %d: offsets %d to %d are told after %d", n, c.SrcFirst, c.SrcLast, at)
				}
				at = c.SrcLast
				heard = max(heard, at)
				for o := c.SrcFirst; o <= c.SrcLast; o++ {
					if to := c.DstFirst + o - c.SrcFirst; to >= int64(len(target)) || target[to] != source[o] {
						l.Errorf("frame %d: offset %d is not at %d on the target", n, o, to)
					}
				}
			}
		}
	}
	return heard
}

// crash cuts a mirror off from both clusters at a request to store something in a
// topic of the target: then it can do no more than if it had been killed.
type crash struct {
	topic  string
	nth    int  // of the requests from now on
	stored bool // the request is done, but not answered
}

// cutOff cuts the connections, old and new ones.
func (l *lab) cutOff() {
	l.source.net.set(goDown)
	l.target.net.set(goDown)
}

// crashAt has the crash happen; what it returns is closed then.
func (l *lab) crashAt(c crash) <-chan struct{} {
	l.Helper()
	crashed := make(chan struct{})
	cut := func() {
		l.cutOff()
		close(crashed)
	}
	topic := l.target.TopicInfo(c.topic)
	var n atomic.Int32
	l.target.ControlKey(int16(kmsg.Produce), func(q kmsg.Request) (kmsg.Response, error, bool) {
		switch {
		case !names(q.(*kmsg.ProduceRequest), topic) || int(n.Add(1)) != c.nth:
			return nil, nil, false
		case c.stored:
			l.target.net.set(func(t *tap) { t.cut = cut })
			return nil, nil, false
		}
		cut()
		return nil, errors.New("cut off"), true
	})
	return crashed
}

// dies waits for the crash, and checks what it has left: no position is saved that is
// past what the plugin has been told and its emits say.
func (r *running) dies(crashed <-chan struct{}) {
	l := r.lab
	l.Helper()
	select {
	case <-crashed:
	case <-time.After(20 * time.Second):
		l.Fatal("what it was to crash at does not happen")
	}
	r.stop()
	for _, s := range []*side{l.source, l.target} {
		s.net.set(work)
		s.connect(s.cluster.Alias())
	}
	if at, heard := l.positionOf("t"), l.heard("t"); at > heard {
		l.Errorf("position %d is saved, and the plugin has been told up to %d", at, heard)
	}
}

// recovers starts the mirror once more, and checks that all n values are on the target and
// that the plugin has been told of all.
func (l *lab) recovers(n int) {
	l.Helper()
	r := l.start()
	l.saved("t", 0, int64(n-1))
	r.stop()
	if heard := l.heard("t"); heard != int64(n-1) {
		l.Errorf("the plugin has been told up to %d, want %d", heard, n-1)
	}
	want, got := values("v", 0, n), l.target.values("A.t", 0)
	pairs := l.syncs("t", 0)
	for i, p := range pairs {
		if got[p[1]] != want[p[0]] {
			l.Errorf("the offset sync %v is not of one record", p)
		}
		if i == len(pairs)-1 && p[0] != int64(n-1) {
			l.Errorf("the last offset sync is of %d, want %d", p[0], n-1)
		}
	}
	if l.cfg.Resume {
		l.copied("t", 0, want...)
		return
	}
	next, seen := 0, 0 // what comes now if nothing is repeated, and in all
	for _, v := range got {
		var i int
		if _, err := fmt.Sscanf(v, "v-%d", &i); err != nil || i > next {
			l.Fatalf("%q on the target where %q is due, or an earlier one", v, want[next])
		}
		next, seen = i+1, max(seen, i+1)
	}
	if seen != n {
		l.Errorf("the target has %d of %d values", seen, n)
	}
}

// crashes are those at each point between records that are stored and the position
// that says so.
func crashes(own string) map[string]crash {
	return map[string]crash{
		"records not stored":            {"A.t", 1, false},
		"records stored, not answered":  {"A.t", 1, true},
		"told, sync not stored":         {syncsTopic, 1, false},
		"sync stored, not answered":     {syncsTopic, 1, true},
		"record not stored":             {"frames", 1, false},
		"record stored, not answered":   {"frames", 1, true},
		"emitted, position not saved":   {own, 1, false},
		"position saved, not answered":  {own, 1, true},
		"first frame of several stored": {"frames", 2, false},
	}
}

// eachResume runs a test that begins with five values, with resume on and off.
func eachResume(t *testing.T, name string, plugin func(*config.Flow), run func(l *lab)) {
	for _, resume := range []bool{true, false} {
		t.Run(fmt.Sprintf("%s, resume = %v", name, resume), func(t *testing.T) {
			t.Parallel()
			l := newLab(t, plugin, grace(200*time.Millisecond), func(f *config.Flow) { f.Resume = resume })
			l.source.create("t", 1)
			l.source.write("t", 0, values("v", 0, 5)...)
			run(l)
		})
	}
}

// settled is a mirror that has copied, told and saved the first five values.
func (l *lab) settled() *running {
	l.Helper()
	r := l.start()
	l.saved("t", 0, 4)
	if heard := l.heard("t"); heard != 4 {
		l.Errorf("the plugin has been told up to %d, want 4", heard)
	}
	return r
}

// A plugin that must not be skipped is told every range at least once, in order,
// wherever the mirror crashes, and no position is saved before.
func TestCrashesBetweenAcknowledgementAndPosition(t *testing.T) {
	for name, c := range crashes("mm2-offsets.A.internal") {
		if c.nth > 1 {
			continue
		}
		eachResume(t, name, echo, func(l *lab) {
			r := l.settled()
			crashed := l.crashAt(c)
			l.source.write("t", 0, values("v", 5, 5)...)
			r.dies(crashed)
			l.source.write("t", 0, values("v", 10, 2)...)
			l.recovers(12)
		})
	}
	eachResume(t, "acknowledged, not told", echo, func(l *lab) {
		l.settled().untold()
		l.recovers(12)
	})
}

// untold crashes once records are acknowledged that no hook has been called with: the
// goroutine that would call it waits for a position to be saved.
func (r *running) untold() {
	l := r.lab
	l.Helper()
	release, asked := l.target.hold(l.T, l.cfg.Positions.Topic)
	l.source.write("t", 0, values("v", 5, 1)...)
	<-asked
	l.source.write("t", 0, values("v", 6, 4)...)
	eventually(l.T, "an acknowledgement", func() string {
		if p, _ := r.partition("t", 0); p.Position != 9 {
			return fmt.Sprint("the position is ", p.Position)
		}
		return ""
	})
	if heard := l.heard("t"); heard != 5 {
		l.Errorf("the plugin has been told up to %d, want 5", heard)
	}
	crashed := make(chan struct{})
	l.cutOff()
	close(crashed)
	release()
	r.dies(crashed)
	l.source.write("t", 0, values("v", 10, 2)...)
}

// The next mirror crashes too, while it begins: what it finds on the target is told
// before the position moves over it.
func TestCrashesWhileResuming(t *testing.T) {
	own := "mm2-offsets.A.internal"
	points := crashes(own)
	points["claimed, position not saved"] = crash{own, 2, false}
	points["first position saved, not answered"] = crash{own, 2, true}
	for name, c := range points {
		eachResume(t, name, echo, func(l *lab) {
			l.settled().untold()
			crashed := l.crashAt(c)
			l.start().dies(crashed)
			l.recovers(12)
		})
	}
}
