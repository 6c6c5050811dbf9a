package plugins

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"mirror/abi"
	"mirror/plugins/wasm"
)

// hostile is what a guest does in a hook, and how the host takes it.
type hostility struct {
	does   string
	status abi.Status // OK: it harms nobody
	text   string
}

// limits are short for what is to run out of time, and long for what is not, on a busy
// machine.
func (h hostility) limits() Limits {
	if h.status == abi.Deadline {
		return Limits{Memory: 4 << 20, Call: 20 * time.Millisecond}
	}
	return Limits{Memory: 4 << 20, Call: 20 * time.Second}
}

var hostile = []hostility{
	{"loop", abi.Deadline, "took too long"},
	{"trap", abi.Trap, "unreachable in "},
	{"exit", abi.Trap, "exited with code 3"},
	{"recurse", abi.Trap, tooDeep},
	{"random", abi.Deadline, "took too long"},
	{"fill", abi.Deadline, "took too long"},
	{"stdout", abi.Deadline, "took too long"},
	{"wild", abi.BadInput, "emit of 100 bytes at 0xfffffff0: outside of memory"},
	{"garbage", abi.BadInput, "not an emit: 7 bytes"},
	{"entry", abi.BadInput, "about entry 1 of 1"},
	{"topic", abi.Reject, `topic "elsewhere", which the config does not allow`},
	{"flood", abi.Limit, "more than 4194304 bytes"},
	{"schema", abi.BadInput, "emits a schema"},
	{"save", abi.BadInput, "emits a save"},
	{"return", abi.Fatal, "it returned 5"},
	{"fail", abi.Fatal, "no luck (-1234)"},
	{"failtrap", abi.Trap, "unreachable in "},
	{"forget", abi.Fatal, ""},
	{"grow", abi.OK, ""},
	{"logs", abi.OK, ""},
	{"longlog", abi.OK, ""},
	{"metrics", abi.OK, ""},
	{"nostate", abi.OK, ""},
	{"scribble", abi.OK, ""},
	{"reenter", abi.OK, ""},
	{"wasi", abi.OK, ""},
	{"clock", abi.OK, ""},
}

// Whatever a guest does in any hook ends, is told apart, and moves no position. It harms
// neither another plugin nor another partition.
func TestHostileGuests(t *testing.T) {
	for _, h := range hostile {
		for _, hook := range []string{"partitions", "commit", "tick"} {
			t.Run(h.does+" in "+hook, func(t *testing.T) {
				t.Parallel()
				s := does(t, "p", hook, h.does, "status", "5", "only", "0")
				s.Limits = h.limits()
				s.Tick = time.Hour
				b := newBench(t, s, does(t, "q"))
				b.assign(0)
				b.ack(0, copied(10, 19))
				if hook != "tick" { // which is about all of them
					b.assign(1)
					b.ack(1, copied(10, 19))
				}
				b.round(true)
				b.soon(true)
				checkHostile(t, b, hook, h.status, h.text)
				if hook != "tick" {
					b.safe(1, 19)
				}
				if q := b.status("q"); q.State != Running || len(q.Failures) != 0 || q.Discarded != 0 {
					t.Errorf("the other plugin: %+v", q)
				}
				if told := strings.Join(b.frames(t, "q"), "; "); !strings.Contains(told, "t/0:10-19→110-119") || hook != "tick" && !strings.Contains(told, "t/1:10-19→110-119") {
					t.Errorf("the other plugin was told %s", told)
				}
			})
		}
	}
}

func checkHostile(t *testing.T, b *bench, hook string, status abi.Status, text string) {
	t.Helper()
	s := b.status("p")
	if s.Memory > 4<<20 {
		t.Errorf("%d bytes of memory", s.Memory)
	}
	if status == abi.OK {
		if s.State != Running {
			t.Errorf("%+v", s)
		}
		b.safe(0, 19)
		return
	}
	if s.Failures[status] == 0 || len(s.Failures) != 1 {
		t.Errorf("failures %v, want %v\n%s", s.Failures, status, b.log())
	}
	reason := s.Reason
	if hook != "tick" {
		b.safe(0, 9)
		if s.State != Halting {
			t.Errorf("%+v", s)
		}
		_, why := b.Halted(key(0))
		reason = fmt.Sprint(why)
	} else {
		b.safe(0, 19)
	}
	if !strings.Contains(reason, text) {
		t.Errorf("reason %q, want %q", reason, text)
	}
	if s.Discarded == 0 {
		t.Error("the instance is still used")
	}
	for _, e := range b.emits["p"] {
		if e.Kind == abi.EmitOffsetSync && e.Upstream == 1 {
			t.Error("what a failed call emitted was written")
		}
	}
}

// The same of a guest that has state.
func TestHostileState(t *testing.T) {
	for _, what := range []string{"state", "wildstate", "fillstate", "nostate"} {
		for _, hook := range []string{"partitions", "commit", "tick"} {
			s := does(t, "p", hook, what)
			if what != "nostate" {
				s.Config["schema"] = "v1"
			}
			s.Tick = time.Hour
			s.Limits.State = 1 << 20
			b := newBench(t, s)
			b.assign(0)
			b.ack(0, copied(10, 19))
			b.round(true)
			b.soon(true)
			st := b.status("p")
			if st.State != Running || st.StateBytes > 1<<20 || (st.Refused > 0) != (what == "fillstate") {
				t.Errorf("%s in %s: %+v\n%s", what, hook, st, b.log())
			}
			b.safe(0, 19)
		}
	}
	b := newBench(t, translator(t, "p", "schema", "v1", "groups", "putstate"))
	b.assign(0)
	b.round(true)
	b.answers(asks(0, "g", 5))
	if st := b.status("p"); st.State != Running {
		t.Errorf("put in on_groups: %+v", st)
	}
}

// A guest that cannot begin keeps the generation from being used.
func TestHostileInit(t *testing.T) {
	for does_, want := range map[string]string{
		"loop": "deadline (-101)", "trap": "trap (-100)", "exit": "exited with code 3", "fail": "no luck", "wild": "outside of memory",
		"entry": "emits a offset sync, which it cannot", "flood": "emits a offset sync", "return": "it returned 5",
	} {
		t.Run(does_, func(t *testing.T) {
			r := newRecord()
			s := does(t, "p", "init", does_, "status", "5")
			if does_ == "loop" {
				defer func(d time.Duration) { initTime = d }(initTime)
				initTime = 50 * time.Millisecond
			}
			g := load(t, r, s)
			defer g.Close()
			_, err := g.Instantiate(t.Context(), 0)
			var f *Failure
			if !errors.As(err, &f) || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "plugin p (testdata/guest.wasm): mirror_init failed: ") {
				t.Errorf("%v, want %q", err, want)
			}
		})
	}
}

func TestHostileAlloc(t *testing.T) {
	for does_, want := range map[string]string{
		"odd": "not divisible by 8", "far": "not all in memory", "loop": "took too long", "trap": "unreachable", "exit": "exited",
	} {
		s := does(t, "p", "alloc", does_)
		if does_ == "loop" {
			s.Limits.Call = 20 * time.Millisecond
		}
		b := newBench(t, s)
		b.assign(0)
		b.round(true)
		if _, why := b.Halted(key(0)); why == nil || !strings.Contains(why.Error(), want) {
			t.Errorf("%s: %v, want %q", does_, why, want)
		}
	}
	// What is for hooks only is refused there, and harms nothing: it gives a bad place else.
	for _, does_ := range []string{"imports", "wild", "flood", "topic", "garbage"} {
		b := newBench(t, does(t, "p", "alloc", does_, "schema", "v1", "commit", "nothing"))
		b.assign(0)
		b.ack(0, copied(10, 19))
		b.round(true)
		b.safe(0, 19)
		if s := b.status("p"); s.State != Running || s.Emits != 1 { // that of on_partitions
			t.Errorf("%s: %+v", does_, s)
		}
	}
}

// A guest that ends badly, or ignores its deadline while it ends, is ended, too.
func TestHostileClose(t *testing.T) {
	for _, does_ := range []string{"loop", "trap", "exit", "fail", "flood", "topic"} {
		s := does(t, "p", "close", does_)
		if does_ == "loop" {
			s.Limits.Call = 20 * time.Millisecond
		}
		b := newBench(t, s, does(t, "q"))
		b.Close(t.Context())
		if !strings.Contains(b.log(), "did not close well") || !strings.Contains(b.log(), "msg=closing plugin=q") {
			t.Errorf("%s: %s", does_, b.log())
		}
		for _, e := range b.emits["p"] {
			t.Errorf("%s: it has written %+v", does_, e)
		}
	}
}

// A frame is the guest's only during the call: what it kept is overwritten by the next.
func TestKeptFrame(t *testing.T) {
	b := newBench(t, does(t, "p", "commit", "keep"))
	b.assign(0)
	for i := range int64(3) {
		b.ack(0, copied(10+10*i, 19+10*i))
		b.round(false)
	}
	b.told("p", "on_partitions t/0=1@9", "on_commit t/0:10-19→110-119", "on_commit t/0:20-29→120-129", "on_commit t/0:30-39→130-139")
}

// Retries of what was emitted are dropped, too.
func TestForgottenEmits(t *testing.T) {
	b := newBench(t, does(t, "p", "commit", "forget", "only", "0", "attempts", "0"))
	b.assign(0)
	b.ack(0, copied(10, 19))
	b.round(true)
	b.told("p", "on_partitions t/0=1@9", "on_commit flush t/0:10-19→110-119")
}

func TestLogIsLimited(t *testing.T) {
	b := newBench(t, does(t, "p", "commit", "logs"))
	b.assign(0)
	b.ack(0, copied(10, 19))
	b.round(true)
	n := strings.Count(b.log(), `msg="a line"`)
	if n < linesASecond || n > 2*linesASecond { // a second may end meanwhile
		t.Errorf("%d lines", n)
	}
	if lost := b.status("p").LostLines; lost != uint64(1000-n) {
		t.Errorf("%d lines lost of %d said", lost, n)
	}
	var l lines
	for range linesASecond {
		if ok, _ := l.admit(1); !ok {
			t.Fatal("too few lines")
		}
	}
	if ok, _ := l.admit(1); ok {
		t.Error("too many lines")
	}
	if ok, dropped := l.admit(2); !ok || dropped != 1 {
		t.Errorf("the next second: %v, %d dropped", ok, dropped)
	}
}

func TestOutput(t *testing.T) {
	b := newBench(t, does(t, "p", "commit", "print"), does(t, "q", "commit", "longlog"))
	b.assign(0)
	b.ack(0, copied(10, 19))
	b.round(true)
	for _, want := range []string{`level=WARN msg="hello there" plugin=p lane=3 from=guest`, "msg=second", "level=ERROR msg=" + strings.Repeat("x", abi.MaxText) + " plugin=q"} {
		if !strings.Contains(b.log(), want) {
			t.Errorf("no %.200q in the log", want)
		}
	}
	for in, want := range map[string]string{"a\x1b[31m\nb": "a [31m b", "\xff": "�", "ünï": "ünï"} {
		if got := printable(in); got != want {
			t.Errorf("%q is shown as %q, want %q", in, got, want)
		}
	}
}

func TestMetrics(t *testing.T) {
	b := newBench(t, does(t, "p", "commit", "labels"), does(t, "q", "commit", "metrics"))
	b.assign(0)
	for i := range int64(2) {
		b.ack(0, copied(10+10*i, 19+10*i))
		b.round(true)
	}
	all := b.gen.Metrics()
	p, q := all[:2], all[2:]
	if !slices.EqualFunc(p, []Series{
		{Plugin: "p", Name: "seen", Counter: true, Labels: []Label{{"topic", "a"}}, Value: 6},
		{Plugin: "p", Name: "depth", Lane: 3, Value: 42},
	}, func(a, b Series) bool { return fmt.Sprint(a) == fmt.Sprint(b) }) {
		t.Errorf("%+v", p)
	}
	if len(q) != maxSeries || q[99].Name != "m_099" || q[99].Value != 4 {
		t.Errorf("%d series: %+v", len(q), q)
	}
	b.Close(t.Context())
	if all := b.gen.Metrics(); len(all) != 1+maxSeries {
		t.Errorf("a gauge outlives its lane: %+v", all[:2])
	}
}

// What the config does not allow is refused, with all that the call has emitted.
func TestWhatIsNotAllowed(t *testing.T) {
	for want, may := range map[string]Allow{
		"reject (-3): it emits an offset sync, which the config does not allow: set emit.offset_syncs":              {Topics: []string{"frames"}},
		`reject (-3): it emits a record for topic "frames", which the config does not allow: add it to emit.topics`: {OffsetSyncs: true},
	} {
		s := does(t, "p", "partitions", "nothing")
		s.Emit = may
		b := newBench(t, s)
		b.assign(0)
		b.ack(0, copied(10, 19))
		b.round(true)
		b.safe(0, 9)
		if _, why := b.Halted(key(0)); why == nil || !strings.Contains(why.Error(), want) {
			t.Errorf("%v, want %q", why, want)
		}
		if len(b.emits["p"]) != 0 {
			t.Errorf("it has written %+v", b.emits["p"])
		}
	}
}

// What cannot be metered is held to its deadline by wazero, and that is said.
func TestNotMetered(t *testing.T) {
	defer func(f func([]byte, wasm.Bounds) ([]byte, error)) { meter = f }(meter)
	meter = func([]byte, wasm.Bounds) ([]byte, error) { return nil, errors.New("not today") }
	for _, h := range hostile {
		if h.does == "recurse" { // 400 MB
			continue
		}
		s := does(t, "p", "commit", h.does, "status", "5")
		s.Limits = h.limits()
		b := newBench(t, s)
		b.assign(0)
		b.ack(0, copied(10, 19))
		b.round(true)
		checkHostile(t, b, "commit", h.status, h.text)
		if !strings.Contains(b.log(), "cannot be metered") {
			t.Error("not said")
		}
	}
}
