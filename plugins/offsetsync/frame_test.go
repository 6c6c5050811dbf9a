package offsetsync

import (
	"encoding/binary"
	"slices"
	"testing"

	"mirror/abi"
)

// What a later minor may write changes nothing: a longer header, longer entries,
// extras and flags that nobody knows.
func TestNewerHost(t *testing.T) {
	g := plugin(t)
	var e abi.Encoder
	e.Begin(abi.OnCommit, 1<<15)
	e.Extra(99, []byte("whatever"))
	e.Commit(run(0, 4, 10))
	e.Commit(run(7, 8, 15))
	frame, err := e.Finish()
	if err != nil {
		t.Fatal(err)
	}
	old, err := plugin(t).raw(abi.OnCommit, frame)
	if err != nil {
		t.Fatal(err)
	}
	wide, err := g.raw(abi.OnCommit, widen(frame, 16, 24))
	if err != nil {
		t.Fatal(err)
	}
	if len(old) != 2 || len(wide) != 2 || !slices.EqualFunc(old, wide, func(a, b abi.Emit) bool {
		return a.Entry == b.Entry && a.Upstream == b.Upstream && a.Downstream == b.Downstream
	}) {
		t.Errorf("emits %v, and of a newer host's frame %v", old, wide)
	}
}

// widen makes a frame's header and entries longer by some bytes of garbage.
func widen(frame []byte, head, entry int) []byte {
	le := binary.LittleEndian
	entries, stride, count := int(le.Uint32(frame[16:])), int(le.Uint16(frame[12:])), int(le.Uint32(frame[8:]))
	garbage := func(n int) []byte { return slices.Repeat([]byte{0xee}, n) }
	out := append(slices.Clone(frame[:abi.HeaderSize]), garbage(head)...)
	for i := range count {
		out = append(append(out, frame[entries+i*stride:][:stride]...), garbage(entry)...)
	}
	rest := entries + count*stride
	shift := uint32(len(out) - rest)
	out = append(out, frame[rest:]...)
	le.PutUint16(out[4:], uint16(abi.HeaderSize+head))
	le.PutUint16(out[12:], uint16(stride+entry))
	le.PutUint32(out[16:], uint32(abi.HeaderSize+head))
	le.PutUint32(out[28:], uint32(len(out)))
	move := func(at int) { le.PutUint32(out[at:], le.Uint32(out[at:])+shift) }
	move(20)
	if le.Uint32(out[24:]) != 0 {
		move(24)
	}
	for i := range count {
		at := abi.HeaderSize + head + i*(stride+entry)
		move(at + 40)
		move(at + 48)
	}
	return out
}

// A host does not send such frames. The plugin says so, and does not trap.
func TestFramesThatAreNone(t *testing.T) {
	var e abi.Encoder
	e.Begin(abi.OnCommit, 0)
	e.Commit(run(0, 4, 10))
	frame, err := e.Finish()
	if err != nil {
		t.Fatal(err)
	}
	with := func(at int, b byte) []byte {
		c := slices.Clone(frame)
		c[at] = b
		return c
	}
	for what, f := range map[string][]byte{
		"nothing": {}, "half a header": frame[:16], "another magic": with(0, 0), "another kind": with(6, byte(abi.OnGroups)),
		"entries past the end": with(8, 200), "entries far away": with(19, 0xff), "short entries": with(12, 64), "cut": frame[:100],
	} {
		if _, err := plugin(t).raw(abi.OnCommit, f); err == nil || err.Error() != "bad input: the frame is not one of mirror_v1, or of another hook" {
			t.Errorf("%s: %v", what, err)
		}
	}
	if _, err := plugin(t).raw(abi.OnCommit, with(abi.HeaderSize+44, 0)); err == nil || err.Error() != "bad input: a topic's name has 1 to 249 bytes" {
		t.Errorf("an entry without a topic: %v", err)
	}
}

func FuzzCommit(f *testing.F) {
	var e abi.Encoder
	e.Begin(abi.OnCommit, abi.Flush)
	e.Commit(run(0, 4, 10))
	e.Commit(nothing(5, 4))
	frame, err := e.Finish()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(slices.Clone(frame))
	f.Fuzz(func(t *testing.T, frame []byte) {
		if parsed, err := abi.ParseFrame(frame); err == nil && parsed.Hook() == abi.OnCommit {
			_, _ = plugin(t).raw(abi.OnCommit, frame) // a trap fails the test
		}
	})
}
