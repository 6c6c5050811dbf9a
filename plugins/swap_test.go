package plugins

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"mirror/abi"
)

// swap replaces the bench's plugins.
func (b *bench) swap(specs ...Spec) {
	b.t.Helper()
	g := load(b.t, b.record, specs...)
	s := instantiate(b.t, g)
	if err := b.Swap(context.Background(), s); err != nil {
		b.t.Fatal(err)
	}
	old := b.gen
	b.gen = g
	old.Close()
	b.t.Cleanup(func() { // before the one that newBench has set
		b.Lane.Close(context.Background())
		g.Close()
	})
}

// A plugin that is replaced is flushed, saves, and closes; what it saved is restored.
func TestSwap(t *testing.T) {
	b := newBench(t, does(t, "p", "save", "save"))
	b.assign(0)
	b.ack(0, copied(10, 19))
	b.swap(does(t, "p", "restore", "load"))
	b.told("p", "on_partitions t/0=1@9", "on_commit flush t/0:10-19→110-119")
	b.safe(0, 19)
	b.ack(0, copied(20, 29))
	b.round(true)
	b.told("p", "on_partitions t/0=1@19", "on_commit flush t/0:20-29→120-129")
	for _, want := range []string{"msg=restored", "msg=closing"} {
		if strings.Count(b.log(), want) != 1 {
			t.Errorf("no %q in\n%s", want, b.log())
		}
	}
}

// From a halted plugin nothing is asked; what it did not take goes to the next.
func TestSwapOfHalted(t *testing.T) {
	b := newBench(t, does(t, "p", "commit", "return", "status", "-1", "save", "save"))
	b.assign(0)
	b.ack(0, copied(10, 19))
	b.round(true)
	b.safe(0, 9)
	b.told("p", "on_partitions t/0=1@9")
	b.ack(0, copied(20, 29))
	b.swap(does(t, "p", "restore", "load"))
	if _, why := b.Halted(key(0)); why != nil {
		t.Errorf("still halted: %v", why)
	}
	b.told("p")
	b.round(true)
	b.told("p", "on_partitions t/0=1@9", "on_commit flush t/0:10-29→110-129")
	b.safe(0, 29)
	if strings.Contains(b.log(), "restored") {
		t.Errorf("a halted plugin was asked to save:\n%s", b.log())
	}
}

// What could not be flushed is told again, so nothing that has it already is saved:
// here 10 to 19 have been told, and the flush is being retried.
func TestSwapOfUnflushed(t *testing.T) {
	b := newBench(t, does(t, "p", "commit", "return", "status", "-2", "attempts", "1", "save", "save"))
	b.assign(0)
	b.ack(0, copied(10, 19))
	b.round(false)
	b.soon(false)
	b.told("p", "on_partitions t/0=1@9", "on_commit attempt 1 t/0:10-19→110-119")
	b.ack(0, copied(20, 29))
	b.swap(does(t, "p", "restore", "load"))
	b.safe(0, 9)
	b.round(true)
	b.told("p", "on_partitions t/0=1@9", "on_commit flush t/0:10-29→110-129")
	if strings.Contains(b.log(), "restored") {
		t.Errorf("what it has not flushed was saved:\n%s", b.log())
	}
}

// A reload closes the breaker.
func TestSwapOfBroken(t *testing.T) {
	b := newBench(t, does(t, "p", "commit", "trap"))
	for p := range int32(5) {
		b.assign(p)
		b.ack(p, copied(10, 19))
	}
	b.round(true)
	if s := b.status("p"); s.State != Halting {
		t.Fatalf("%+v", s)
	}
	b.frames(t, "p")
	b.swap(does(t, "p"))
	b.round(true)
	for p := range int32(5) {
		b.safe(p, 19)
	}
	if s := b.status("p"); s.State != Running {
		t.Errorf("%+v", s)
	}
}

// A new plugin begins where the lane is; one that is gone is not waited for.
func TestSwapOthers(t *testing.T) {
	b := newBench(t, does(t, "old", "commit", "return", "status", "-1"))
	b.assign(0)
	b.ack(0, copied(10, 19))
	b.round(true)
	b.safe(0, 9)
	b.swap(does(t, "new"))
	b.safe(0, 19)
	b.ack(0, copied(20, 29))
	b.round(true)
	b.told("new", "on_partitions t/0=1@19", "on_commit flush t/0:20-29→120-129")
	b.swap()
	b.ack(0, copied(30, 39))
	b.round(true)
	b.swap(does(t, "new"))
	b.ack(0, copied(40, 49))
	b.round(true)
	b.told("new", "on_partitions t/0=1@39", "on_commit flush t/0:40-49→140-149")
}

// A cache that cannot be saved or restored is a cold one, never worse.
func TestColdSwap(t *testing.T) {
	for name, hooks := range map[string][2]string{
		"save traps":     {"trap", "load"},
		"save fails":     {"fail", "load"},
		"save twice":     {"twice", "load"},
		"restore traps":  {"save", "trap"},
		"restore loops":  {"save", "loop"},
		"restore fails":  {"save", "fail"},
		"nothing saved":  {"nothing", "trap"},
		"restore emits":  {"save", "save"},
		"restore exits":  {"save", "exit"},
		"save emits bad": {"flood", "trap"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, does(t, "p", "save", hooks[0]))
			b.assign(0)
			b.ack(0, copied(10, 19))
			b.round(true)
			next := does(t, "p", "restore", hooks[1])
			if hooks[1] == "loop" {
				next.Limits.Call = 20 * time.Millisecond
			}
			b.swap(next)
			b.ack(0, copied(20, 29))
			b.round(true)
			b.safe(0, 29)
			if s := b.status("p"); s.State != Running {
				t.Errorf("%+v", s)
			}
		})
	}
}

// A swap that nobody waits for any more replaces nothing.
func TestSwapEnds(t *testing.T) {
	b := newBench(t, does(t, "p"))
	b.assign(0)
	b.ack(0, copied(10, 19))
	g := load(t, b.record, does(t, "p"))
	defer g.Close()
	s := instantiate(t, g)
	defer s.Close()
	ctx, cancel := context.WithCancel(context.Background())
	b.fail = func(string, []Emit) error { cancel(); return context.Canceled }
	if err := b.Swap(ctx, s); !errors.Is(err, context.Canceled) {
		t.Fatalf("%v", err)
	}
	b.fail = nil
	b.soon(true)
	b.safe(0, 19)
	if st := b.status("p"); st.Calls[abi.OnCommit] == 0 {
		t.Errorf("%+v", st)
	}
}

// The end of ctx ends a call that is under way, and is not held against the plugin.
func TestRoundEndsWithContext(t *testing.T) {
	s := does(t, "p", "commit", "loop")
	s.Limits.Call = maxCallTime
	b := newBench(t, s)
	b.assign(0)
	b.ack(0, copied(10, 19))
	ctx, cancel := context.WithCancel(context.Background())
	b.fail = func(string, []Emit) error { // after on_partitions, before on_commit
		go cancel()
		return nil
	}
	if err := b.Round(ctx, true); !errors.Is(err, context.Canceled) {
		t.Fatalf("%v", err)
	}
	if st := b.status("p"); len(st.Failures) != 0 || st.State != Running {
		t.Errorf("%+v", st)
	}
	b.safe(0, 9)
}
