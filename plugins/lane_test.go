package plugins

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"mirror/abi"
)

func TestRound(t *testing.T) {
	b := newBench(t, does(t, "p"))
	b.assign(0, 1)
	b.ack(0, copied(10, 19), copied(20, 24), empty(25, 25), copied(26, 29))
	b.ack(1, empty(10, 12))
	b.safe(0, 9)
	b.round(false)
	syncs := slices.DeleteFunc(slices.Clone(b.emits["p"]), func(e Emit) bool { return e.Kind != abi.EmitOffsetSync })
	if len(syncs) != 2 || syncs[0].About != key(0) || syncs[0].Upstream != 24 || syncs[0].Downstream != 124 || syncs[1].Upstream != 29 {
		t.Errorf("offset syncs %+v", syncs)
	}
	b.told("p", "on_partitions t/0=1@9 t/1=1@9", "on_commit t/0:10-24→110-124 t/0:25-25 t/0:26-29→126-129 t/1:10-12")
	b.safe(0, 9) // told, not flushed
	b.round(false)
	b.told("p")
	b.ack(1, copied(13, 14))
	b.round(true)
	b.told("p", "on_commit flush t/0:30-29 t/1:13-14→113-114")
	b.safe(0, 29)
	b.safe(1, 14)
	b.round(true)
	b.told("p")
	if w := b.Waiting(key(0)); w != 0 {
		t.Errorf("%d pieces wait", w)
	}
	if s := b.status("p"); s.State != Running || s.Calls[abi.OnCommit] != 2 || s.Calls[abi.OnPartitions] != 1 || s.Memory == 0 {
		t.Errorf("%+v", s)
	}
}

// What is acknowledged while a round runs is the next one's, or a flush under load would
// never end.
func TestRoundEnds(t *testing.T) {
	b := newBench(t, does(t, "p"))
	b.assign(0)
	b.ack(0, copied(10, 19))
	next := int64(20)
	b.fail = func(string, []Emit) error {
		if next < 1000 {
			b.Acknowledged(key(0), copied(next, next+9))
			next += 10
		}
		return nil
	}
	b.round(true)
	b.told("p", "on_partitions t/0=1@9", "on_commit flush t/0:10-19→110-119")
	b.safe(0, 19)
	b.fail = nil
	b.round(true)
	b.told("p", "on_commit flush t/0:20-39→120-139")
}

// Events come before what comes after them, and after what came before.
func TestEvents(t *testing.T) {
	b := newBench(t, does(t, "p"))
	b.assign(0)
	b.ack(0, copied(10, 19))
	again := Event{Key: key(0), Kind: abi.Recreated, TargetTopic: "a.t", Position: -1, TargetEnd: 120}
	b.Notify(again)
	b.ack(0, copied(0, 4))
	b.safe(0, -1) // of the new log nothing is
	b.assign(1)
	b.round(true)
	b.told("p", "on_partitions t/0=1@9 t/1=1@9", "on_commit flush t/0:10-19→110-119", "on_partitions t/0=4@-1", "on_commit flush t/0:0-4→100-104")
	b.safe(0, 4)
	b.Notify(Event{Key: key(0), Kind: abi.Revoked, Position: 4})
	b.round(true)
	b.told("p", "on_partitions t/0=2@4")
	b.safe(0, -1)
	if n := len(b.members[0].queues); n != 1 {
		t.Errorf("%d partitions are kept", n)
	}
	b.assign(0)
	b.round(true)
	b.told("p", "on_partitions t/0=1@9")
}

// A range before any event is a bug of the caller; it is told all the same.
func TestNotAssigned(t *testing.T) {
	b := newBench(t, does(t, "p"))
	b.ack(5, copied(50, 59))
	b.round(true)
	b.told("p", "on_partitions t/5=1@49", "on_commit flush t/5:50-59→150-159")
	b.safe(5, 59)
}

// What was found on the target after a restart is told again, with other target offsets.
func TestToldAgain(t *testing.T) {
	b := newBench(t, does(t, "p"))
	b.assign(0)
	b.ack(0, copied(10, 19))
	b.round(true)
	b.safe(0, 19)
	b.assign(0)
	b.safe(0, 9)
	b.ack(0, Range{First: 10, Last: 14, TargetFirst: 300, TargetLast: 304, LeaderEpoch: 1, Records: 5})
	b.round(false)
	b.told("p", "on_partitions t/0=1@9", "on_commit flush t/0:10-19→110-119", "on_partitions t/0=1@9", "on_commit t/0:10-14→300-304")
	b.safe(0, 9)
	b.ack(0, copied(15, 30))
	b.round(true)
	b.safe(0, 30)
}

func TestReplay(t *testing.T) {
	b := newBench(t, does(t, "p"))
	b.assign(0, 1)
	for _, at := range []int64{3, 7} {
		b.ack(0, Range{First: at, Last: at, TargetFirst: at + 50, TargetLast: at + 50, LeaderEpoch: -1, Replay: true})
	}
	b.ack(0, copied(10, 11))
	b.ack(1, copied(10, 12))
	b.round(true)
	b.told("p", "on_partitions t/0=1@9 t/1=1@9", "on_commit replay t/0:3-3→53-53 t/0:7-7→57-57", "on_commit flush t/0:10-11→110-111 t/1:10-12→110-112")
}

// What is replayed was there before, and positions with it: after a transaction the
// last sync lies before the position, which has passed the marker.
func TestReplayMovesNoPosition(t *testing.T) {
	b := newBench(t, does(t, "p"))
	b.assign(0)
	b.ack(0, Range{First: 7, Last: 7, TargetFirst: 57, TargetLast: 57, LeaderEpoch: -1, Replay: true})
	b.safe(0, 9)
	b.round(false)
	b.safe(0, 9)
	b.round(true)
	b.safe(0, 9)
	b.ack(0, copied(10, 11))
	b.safe(0, 9)
	b.round(true)
	b.safe(0, 11)
}

// More than a frame holds is told in several; a flush of a partition has all of it.
func TestLargeRounds(t *testing.T) {
	b := newBench(t, does(t, "p"))
	b.assign(0, 1, 2)
	gaps := func(n int) (rs []Range) {
		for i := range int64(n) {
			rs = append(rs, Range{First: 10 + 2*i, Last: 10 + 2*i, TargetFirst: 10 + i, TargetLast: 10 + i, Records: 1, LeaderEpoch: 1})
		}
		return rs
	}
	b.ack(0, gaps(3000)...)
	b.ack(1, gaps(2000)...)
	b.ack(2, gaps(5000)...)
	b.round(true)
	var sizes []string
	for _, f := range b.frames(t, "p") {
		words := strings.Fields(f)
		seen := map[string]int{}
		for _, w := range words {
			if k, _, ok := strings.Cut(w, ":"); ok {
				seen[k]++
			}
		}
		sizes = append(sizes, fmt.Sprint(strings.Contains(f, "flush"), " ", seen))
	}
	want := []string{"false map[]", "true map[t/0:3000]", "true map[t/1:2000]", "false map[t/2:4096]", "true map[t/2:904]"}
	if !slices.Equal(sizes, want) {
		t.Errorf("frames %v\nwant %v", sizes, want)
	}
	for p, last := range map[int32]int64{0: 10 + 2*2999, 1: 10 + 2*1999, 2: 10 + 2*4999} {
		b.safe(p, last)
	}
}

// Long topics make frames large before they have many entries.
func TestLongTopics(t *testing.T) {
	b := newBench(t, does(t, "p", "commit", "nothing", "partitions", "nothing"))
	for i := range 4000 {
		k := Key{strings.Repeat("t", 240) + fmt.Sprint(i), 0}
		b.Notify(Event{Key: k, Kind: abi.Assigned, TargetTopic: "a." + k.Topic, Position: 9})
		b.Acknowledged(k, copied(10, 19))
	}
	b.round(true)
	if s := b.status("p"); s.State != Running || s.Calls[abi.OnCommit] < 2 || s.Waiting != 0 {
		t.Errorf("%+v", s)
	}
}

// A guest that has little room gets smaller frames, and fails only if there is none
// for a single entry.
func TestSmallArena(t *testing.T) {
	b := newBench(t, does(t, "p", "room", "800"))
	b.assign(0, 1, 2, 3, 4, 5, 6, 7)
	for p := range int32(8) {
		b.ack(p, copied(10, 19))
	}
	b.round(true)
	frames := b.frames(t, "p")
	if len(frames) < 2 || b.status("p").State != Running {
		t.Errorf("%d frames, %+v", len(frames), b.status("p"))
	}
	for p := range int32(8) {
		b.safe(p, 19)
	}
	b = newBench(t, does(t, "p", "room", "100"))
	b.assign(0, 1)
	b.round(true)
	if s := b.status("p"); s.State != Halting || s.Failures[abi.NoMemory] == 0 || len(s.Halted) != 2 {
		t.Errorf("%+v", s)
	}
}

// Positions wait for every plugin but those that may be skipped; each has its own cursor.
func TestIndependent(t *testing.T) {
	skipped := does(t, "skipped", "commit", "return", "status", "-1")
	skipped.Failure = Skip
	b := newBench(t, does(t, "good"), skipped, does(t, "bad", "commit", "return", "status", "-1", "only", "1"))
	b.assign(0, 1)
	b.ack(0, copied(10, 19))
	b.ack(1, copied(10, 19))
	b.round(true)
	b.told("good", "on_partitions t/0=1@9 t/1=1@9", "on_commit flush t/0:10-19→110-119 t/1:10-19→110-119")
	b.safe(0, 19)
	b.safe(1, 9)
	if name, why := b.Halted(key(1)); name != "bad" || why == nil || !strings.Contains(why.Error(), "mirror_on_commit failed: fatal (-1)") {
		t.Errorf("halted by %q: %v", name, why)
	}
	if name, why := b.Halted(key(0)); why != nil {
		t.Errorf("halted by %q: %v", name, why)
	}
	if s := b.status("skipped"); s.Skipped != 2 || s.State != Retrying {
		t.Errorf("%+v", s)
	}
	b.ack(0, copied(20, 29))
	b.round(true)
	b.safe(0, 29)
}

func TestNothingToWaitFor(t *testing.T) {
	b := newBench(t)
	b.assign(0)
	b.ack(0, copied(10, 19))
	b.round(true)
	b.safe(0, math.MaxInt64)
	if at := b.Due(); !at.IsZero() {
		t.Errorf("due at %v", at)
	}
}

// What cannot be written is emitted again, by a fresh instance that is told what was
// not flushed.
func TestProduceFails(t *testing.T) {
	b := newBench(t, does(t, "p"))
	b.assign(0)
	b.ack(0, copied(10, 19))
	b.round(false)
	b.told("p", "on_partitions t/0=1@9", "on_commit t/0:10-19→110-119")
	b.ack(0, copied(20, 29))
	down := errors.New("target is down")
	b.fail = func(string, []Emit) error { return down }
	b.round(true)
	b.safe(0, 9)
	if s := b.status("p"); s.State != Retrying || !strings.Contains(s.Reason, "target is down") || s.Discarded != 1 {
		t.Errorf("%+v", s)
	}
	if b.Due().IsZero() {
		t.Error("nothing is due")
	}
	b.round(true) // too early
	b.told("p")
	b.soon(true)
	if s := b.status("p"); s.Discarded != 2 {
		t.Errorf("%+v", s)
	}
	b.fail = nil
	b.soon(true)
	b.told("p", "on_partitions t/0=1@9", "on_commit flush t/0:10-29→110-129")
	b.safe(0, 29)
	if s := b.status("p"); s.State != Running || !b.Due().IsZero() {
		t.Errorf("%+v, due %v", s, b.Due())
	}
	if n := strings.Count(b.log(), "the plugin has trouble"); n != 1 {
		t.Errorf("trouble is logged %d times:\n%s", n, b.log())
	}
}
