package plugins

import (
	"strings"
	"testing"
	"time"

	"mirror/abi"
)

// Only the partition fails that fails by itself; the others hear what they had to.
func TestHaltsOnePartition(t *testing.T) {
	b := newBench(t, does(t, "p", "commit", "trap", "only", "1"))
	b.assign(0, 1, 2)
	for p := range int32(3) {
		b.ack(p, copied(10, 19))
	}
	b.round(true)
	b.told("p", "on_partitions t/0=1@9 t/1=1@9 t/2=1@9",
		"on_partitions t/0=1@9", "on_commit flush t/0:10-19→110-119",
		"on_partitions t/1=1@9", // and then it traps: this instance is gone
		"on_partitions t/2=1@9", "on_commit flush t/2:10-19→110-119", "on_partitions t/0=1@19")
	b.safe(0, 19)
	b.safe(1, 9)
	b.safe(2, 19)
	s := b.status("p")
	if s.State != Halting || len(s.Halted) != 1 || !strings.Contains(s.Halted[key(1)].Error(), "trap (-100): unreachable") || s.Discarded != 2 {
		t.Errorf("%+v", s)
	}
	b.ack(0, copied(20, 29))
	b.ack(1, copied(20, 29))
	b.round(true)
	b.told("p", "on_commit flush t/0:20-29→120-129")
	if w := b.Waiting(key(1)); w != 2 { // the halted one keeps what there is for the next generation
		t.Errorf("%d pieces wait", w)
	}
	if n := strings.Count(b.log(), "halts a partition"); n != 1 {
		t.Errorf("said %d times:\n%s", n, b.log())
	}
}

// A frame that is to be told again comes as it is, with a higher attempt; others go on
// meanwhile.
func TestRetry(t *testing.T) {
	b := newBench(t, does(t, "p", "commit", "return", "status", "-2", "attempts", "2", "only", "0"))
	b.assign(0, 1)
	b.ack(0, copied(10, 19))
	b.round(false)
	b.told("p", "on_partitions t/0=1@9 t/1=1@9")
	if s := b.status("p"); s.State != Retrying || s.Failures[abi.Retry] != 1 || s.Discarded != 0 {
		t.Errorf("%+v", s)
	}
	b.ack(0, copied(20, 29))
	b.ack(1, copied(10, 19))
	b.round(true)
	b.told("p", "on_commit flush t/1:10-19→110-119")
	b.soon(true) // attempt 1
	b.told("p")
	b.safe(0, 9)
	b.soon(true) // attempt 2
	// Partition 0's flush asks again: it begins with attempts left.
	b.told("p", "on_commit attempt 2 t/0:10-19→110-119")
	b.soon(true)
	b.soon(true)
	b.told("p", "on_commit flush attempt 2 t/0:20-29→120-129")
	b.safe(0, 29)
	if s := b.status("p"); s.State != Running || s.Discarded != 0 {
		t.Errorf("%+v", s)
	}
}

func TestRetryEnds(t *testing.T) {
	b := newBench(t, does(t, "p", "commit", "return", "status", "-2"))
	b.assign(0)
	b.ack(0, copied(10, 19))
	for range maxTries - 1 {
		b.soon(true)
		if s := b.status("p"); s.State != Retrying {
			t.Fatalf("%+v", s)
		}
	}
	b.soon(true)
	if s := b.status("p"); s.State != Halting || s.Failures[abi.Retry] != maxTries || s.Discarded != 1 {
		t.Errorf("%+v", s)
	}
}

func TestRetryPolicy(t *testing.T) {
	s := does(t, "p", "commit", "return", "status", "-3", "only", "1")
	s.Failure = Retry
	b := newBench(t, s)
	b.assign(0, 1)
	b.ack(0, copied(10, 19))
	b.ack(1, copied(10, 19))
	for n := range maxTries {
		if st := b.status("p"); len(st.Halted) != 0 {
			t.Fatalf("halted after %d tries: %+v", n, st)
		}
		b.soon(true)
		b.safe(0, 19)
	}
	if st := b.status("p"); len(st.Halted) != 1 || st.Failures[abi.Reject] != 1+maxTries {
		t.Errorf("%+v", st)
	}
	b.safe(1, 9)
}

// What a plugin that may be skipped fails at is lost to it, and it goes on.
func TestSkip(t *testing.T) {
	s := does(t, "p", "commit", "return", "status", "-1", "only", "1")
	s.Failure = Skip
	b := newBench(t, s)
	b.assign(0, 1)
	b.ack(0, copied(10, 19))
	b.ack(1, copied(10, 19), empty(20, 20))
	b.round(true)
	b.told("p", "on_partitions t/0=1@9 t/1=1@9", "on_partitions t/0=1@9", "on_commit flush t/0:10-19→110-119",
		"on_partitions t/1=1@9", "on_partitions t/1=1@20", "on_partitions t/0=1@19")
	if st := b.status("p"); st.Skipped != 2 || st.Waiting != 0 {
		t.Errorf("%+v", st)
	}
	for range 3 {
		b.ack(1, copied(21, 30))
		b.round(true)
	}
	if n := strings.Count(b.log(), "the plugin has trouble"); n != 1 {
		t.Errorf("said %d times:\n%s", n, b.log())
	}
}

// One that cannot even be told of a partition is not told of it again and again.
func TestSkipsPartition(t *testing.T) {
	s := does(t, "p", "partitions", "return", "status", "-1", "only", "1")
	s.Failure = Skip
	b := newBench(t, s)
	b.assign(0, 1)
	b.ack(0, copied(10, 19))
	b.ack(1, copied(10, 19))
	b.round(true)
	b.round(true)
	if st := b.status("p"); st.Waiting != 0 || st.Failures[abi.Fatal] > 3 {
		t.Errorf("%+v", st)
	}
}

// Data goes on past a plugin that hangs, and what waits for it does not grow without
// bound.
func TestSkippedIsBounded(t *testing.T) {
	s := does(t, "p")
	s.Failure = Skip
	b := newBench(t, s)
	b.assign(0)
	for i := range int64(2 * maxSkipped) {
		b.ack(0, Range{First: 10 + 2*i, Last: 10 + 2*i, TargetFirst: i, TargetLast: i})
	}
	st := b.status("p")
	if st.Waiting != maxSkipped || st.Skipped != maxSkipped+1 {
		t.Errorf("%d wait, %d are skipped", st.Waiting, st.Skipped)
	}
	b.round(true)
	if st := b.status("p"); st.Waiting != 0 {
		t.Errorf("%d wait", st.Waiting)
	}
}

func TestBreaker(t *testing.T) {
	for policy, state := range map[Policy]State{Halt: Halting, Skip: Off} {
		s := does(t, "p", "commit", "trap")
		s.Failure = policy
		b := newBench(t, s)
		for p := range int32(6) {
			b.assign(p)
			b.ack(p, copied(10, 19))
		}
		b.round(true)
		st := b.status("p")
		if st.State != state || st.Failures[abi.Trap] != breakAt {
			t.Errorf("%v: %+v", policy, st)
		}
		calls := st.Calls[abi.OnPartitions]
		b.ack(0, copied(20, 29))
		b.soon(true)
		if st := b.status("p"); st.Calls[abi.OnPartitions] != calls {
			t.Errorf("%v: called after it failed too often", policy)
		}
		if policy == Skip {
			if st := b.status("p"); st.Waiting != 0 {
				t.Errorf("%d pieces wait", st.Waiting)
			}
			continue
		}
		for p := range int32(6) {
			if name, why := b.Halted(key(p)); name != "p" || why == nil {
				t.Errorf("partition %d is not halted", p)
			}
		}
	}
}

func TestBreakerForgets(t *testing.T) {
	var b breaker
	at := time.Unix(1000, 0)
	for n := range 4 {
		if b.trip(at.Add(time.Duration(n) * time.Minute)) {
			t.Fatalf("open after %d", n+1)
		}
	}
	if b.trip(at.Add(breakTime + time.Second)) {
		t.Error("open, though the first was too long ago")
	}
	if !b.trip(at.Add(breakTime + time.Minute)) {
		t.Error("not open after five within ten minutes")
	}
}

func TestPause(t *testing.T) {
	for n, want := range map[int]time.Duration{0: firstPause, 1: firstPause, 2: 2 * firstPause, 8: 128 * firstPause, 9: 256 * firstPause, 10: longPause, 1000: longPause} {
		if got := pause(n); got != want {
			t.Errorf("pause after %d failures: %v, want %v", n, got, want)
		}
	}
}

// A tick lists the partitions, and may emit.
func TestTick(t *testing.T) {
	s := does(t, "p")
	s.Tick = time.Hour
	b := newBench(t, s)
	b.assign(0, 1)
	b.ack(0, copied(10, 19))
	b.round(false)
	b.told("p", "on_partitions t/0=1@9 t/1=1@9", "on_commit t/0:10-19→110-119")
	if at := b.Due(); time.Until(at) > time.Hour || time.Until(at) < 59*time.Minute {
		t.Errorf("due at %v", at)
	}
	b.soon(false)
	b.told("p", "tick t/0=0@19 t/1=0@9")
	b.round(false)
	b.told("p")
	if at := b.Due(); time.Until(at) < 59*time.Minute {
		t.Errorf("due at %v", at)
	}
}

// Ticks that fail open the breaker; until then partitions are not blamed.
func TestTickFails(t *testing.T) {
	s := does(t, "p", "tick", "return", "status", "-1")
	s.Tick = time.Hour
	b := newBench(t, s)
	b.assign(0)
	b.ack(0, copied(10, 19))
	b.round(true)
	for n := range breakAt {
		if st := b.status("p"); len(st.Halted) != 0 || n > 0 && st.State != Retrying {
			t.Fatalf("%+v", st)
		}
		b.soon(true)
	}
	if st := b.status("p"); st.State != Halting || st.Failures[abi.Fatal] != breakAt {
		t.Errorf("%+v", st)
	}
}
