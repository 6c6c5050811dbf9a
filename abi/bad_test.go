package abi

import (
	"bytes"
	"math"
	"strings"
	"testing"
)

func TestBadFrames(t *testing.T) {
	whole := goldenFrames(t)[2].bytes
	put := func(at int, v ...byte) func([]byte) []byte {
		return func(b []byte) []byte { copy(b[at:], v); return b }
	}
	for _, c := range []struct {
		name, want string
		change     func([]byte) []byte
	}{
		{"empty", "0 bytes", func([]byte) []byte { return nil }},
		{"magic", "magic", put(0, 'X')},
		{"cut", "says that it has", func(b []byte) []byte { return b[:len(b)-1] }},
		{"header too short", "header of 24", put(4, 24)},
		{"header too long", "header of 65528", put(4, 0xf8, 0xff)},
		{"header odd", "header of 33", put(4, 33)},
		{"too many entries", "4097 entries", put(8, 1, 0x10)},
		{"stride short", "entries of 64", put(12, 64)},
		{"stride odd", "entries of 73", put(12, 73)},
		{"entries in the header", "do not lie inside", put(16, 8)},
		{"entries beyond", "do not lie inside", put(16, 0xe8)},
		{"entries far beyond", "do not lie inside", put(16, 0xf8, 0xff, 0xff, 0xff)},
		{"no entries in this kind", "save has no entries", put(6, 6)},
		{"text outside", "text at", put(72, 0xff, 0xff, 0xff, 0x7f)},
		{"text in the header", "text at 0", put(72, 0)},
		{"text too long", "text at", put(76, 0xff, 0xff)},
		{"extras in the header", "extra at 8", put(24, 8, 0)},
		{"extras odd", "extra at", put(24, 0x21)},
		{"extras far beyond", "extra at", put(24, 0xf8, 0xff, 0xff, 0xff)},
		{"extra too long", "more than there are", func(b []byte) []byte { return put(int(le.Uint32(b[24:]))+4, 0xff, 0xff, 0xff, 0xff)(b) }},
		{"extras without end", "extra at", func(b []byte) []byte {
			b = b[:len(b)-8]
			le.PutUint32(b[28:], uint32(len(b)))
			return b
		}},
	} {
		_, err := ParseFrame(c.change(bytes.Clone(whole)))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
	}
}

// What a newer host may write is read: longer headers and entries, other flags and extras.
func TestNewerFrames(t *testing.T) {
	old := goldenFrames(t)[2].bytes
	const more = 16
	b := append(bytes.Clone(old[:HeaderSize]), bytes.Repeat([]byte{0xee}, more)...)
	for i := range len(goldenCommits) {
		b = append(b, old[HeaderSize+i*CommitSize:][:CommitSize]...)
		b = append(b, bytes.Repeat([]byte{0xee}, more)...)
	}
	shift := len(b) - HeaderSize - len(goldenCommits)*CommitSize
	b = append(b, old[HeaderSize+len(goldenCommits)*CommitSize:]...)
	le.PutUint16(b[4:], HeaderSize+more)
	le.PutUint16(b[12:], CommitSize+more)
	le.PutUint16(b[14:], 0x8000|Flush)
	le.PutUint32(b[16:], HeaderSize+more)
	le.PutUint32(b[24:], le.Uint32(b[24:])+uint32(shift))
	le.PutUint32(b[28:], uint32(len(b)))
	for i := range goldenCommits {
		e := b[HeaderSize+more+i*(CommitSize+more):]
		le.PutUint32(e[40:], le.Uint32(e[40:])+uint32(shift))
		le.PutUint32(e[48:], le.Uint32(e[48:])+uint32(shift))
	}
	le.PutUint16(b[le.Uint32(b[24:]):], 999) // was now
	f, err := ParseFrame(b)
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range goldenCommits {
		if got := f.Commit(i); got != want {
			t.Errorf("entry %d: %+v, want %+v", i, got, want)
		}
	}
	if _, ok := f.Extra(TagNow); ok {
		t.Error("the renamed extra is found under its old name")
	}
	if v, ok := f.Extra(TagLane); !ok || le.Uint32(v) != 2 {
		t.Errorf("lane %v %v", v, ok)
	}
}

func TestEncoderRefuses(t *testing.T) {
	var e Encoder
	e.Begin(OnCommit, 0)
	for range MaxEntries + 1 {
		e.Commit(Commit{})
	}
	if _, err := e.Finish(); err == nil || !strings.Contains(err.Error(), "4097 entries") {
		t.Errorf("too many entries: %v", err)
	}
	e.Begin(OnCommit, 0)
	e.Commit(Commit{Topic: strings.Repeat("a", 1<<16)})
	if _, err := e.Finish(); err == nil || !strings.Contains(err.Error(), "string of 65536 bytes") {
		t.Errorf("long topic: %v", err)
	}
	e.Begin(OnRestore, 0)
	e.Extra(TagBlob, make([]byte, MaxFrame))
	if _, err := e.Finish(); err == nil || !strings.Contains(err.Error(), "1048576 are the limit") {
		t.Errorf("large blob: %v", err)
	}
	e.Begin(OnRestore, 0)
	e.Extra(TagBlob, make([]byte, MaxSave))
	if _, err := e.Finish(); err != nil {
		t.Errorf("the largest blob that save may emit does not fit: %v", err)
	}
	// An encoder that failed is as good as new.
	e.Begin(OnCommit, Flush)
	e.Commit(goldenFlush[0])
	if b, err := e.Finish(); err != nil || !bytes.Equal(b, goldenFrames(t)[3].bytes) {
		t.Errorf("after failures: %v, %x", err, b)
	}
}

func TestBadEmits(t *testing.T) {
	record := func(r Record) []byte { return AppendEmit(nil, Emit{Kind: EmitRecord, Record: r}) }
	put := func(b []byte, at int, v ...byte) []byte { copy(b[at:], v); return b }
	for _, c := range []struct {
		name, want string
		b          []byte
	}{
		{"empty", "0 bytes", nil},
		{"kind 0", "kind 0", make([]byte, 8)},
		{"kind 6", "kind 6", put(make([]byte, 8), 0, 6)},
		{"reserved", "where 0 belongs", put(AppendEmit(nil, goldenEmits[0].emit), 2, 1)},
		{"sync short", "of 23 bytes", AppendEmit(nil, goldenEmits[0].emit)[:23]},
		{"sync long", "of 25 bytes", append(AppendEmit(nil, goldenEmits[0].emit), 0)},
		{"sync negative", "offset sync -1", AppendEmit(nil, Emit{Kind: EmitOffsetSync, Upstream: -1})},
		{"record head", "record of 31", record(Record{})[:31]},
		{"record partition", "partition -2", record(Record{Partition: -2})},
		{"record time", "at -2", record(Record{Timestamp: -2})},
		{"record key", "other sizes", put(record(Record{Topic: "t"}), 24, 9, 0, 0, 0)},
		{"record key negative", "other sizes", put(record(Record{Topic: "t"}), 24, 0xfe, 0xff, 0xff, 0xff)},
		{"record value", "other sizes", put(record(Record{Topic: "t"}), 28, 0xff, 0xff, 0xff, 0x7f)},
		{"record rest", "other sizes", append(record(Record{Topic: "t"}), 0)},
		{"many headers", "65535 headers", put(record(Record{Topic: "t"}), 14, 0xff, 0xff)},
		{"header cut", "other sizes", record(Record{Topic: "t", Headers: []Header{{"ab", nil}}})[:42]},
		{"header reserved", "where 0 belongs", put(record(Record{Headers: []Header{{"ab", nil}}}), 34, 1)},
		{"header text", "UTF-8", record(Record{Headers: []Header{{"\xff", nil}}})},
		{"translation short", "of 23 bytes", AppendEmit(nil, goldenEmits[3].emit)[:23]},
		{"translation outcome", "outcome 3", AppendEmit(nil, Emit{Kind: EmitTranslation, Outcome: 3})},
		{"none with an offset", "to 5, outcome 0", AppendEmit(nil, Emit{Kind: EmitTranslation, Offset: 5})},
		{"exact without one", "to -1, outcome 1", AppendEmit(nil, Emit{Kind: EmitTranslation, Offset: -1, Outcome: Exact})},
		{"translation long", "of 47 bytes, want 24, or 48 with a run", byRun(Exact, 5, 0, 9, 0)[:47]},
		{"translation longer", "of 49 bytes", append(byRun(Exact, 5, 0, 9, 0), 0)},
		{"translation reserved", "translation to 5", put(byRun(Exact, 5, 0, 9, 0), 20, 1)},
		{"run before 0", "run from -1 to 9 at 0", byRun(Bound, 5, -1, 9, 0)},
		{"run without records", "run from 5 to 4 at 5", byRun(Bound, 5, 5, 4, 5)},
		{"run at no offset", "run from 0 to 9 at -1", byRun(Bound, 5, 0, 9, -1)},
		{"run of too many", "run from 0 to 9223372036854775807", byRun(Bound, 5, 0, math.MaxInt64, 0)},
		{"run past all offsets", "at 9223372036854775800", byRun(Bound, 5, 0, 9, 9223372036854775800)},
		{"run of no translation", "to none, by the run from 0 to 9 at 0", byRun(NoOffset, -1, 0, 9, 0)},
		{"exact before its run", "exactly 4, by the run from 0 to 9 at 5", byRun(Exact, 4, 0, 9, 5)},
		{"exact past its run", "exactly 16, by the run from 0 to 9 at 5", byRun(Exact, 16, 0, 9, 5)},
		{"save large", "save of", AppendEmit(nil, Emit{Kind: EmitSave, Data: make([]byte, MaxSave+1)})},
		{"schema empty", "schema of 0", AppendEmit(nil, Emit{Kind: EmitSchema})},
		{"schema long", "schema of 65", AppendEmit(nil, Emit{Kind: EmitSchema, Data: bytes.Repeat([]byte{'a'}, 65)})},
		{"schema space", "printable", AppendEmit(nil, Emit{Kind: EmitSchema, Data: []byte("a b")})},
	} {
		if _, err := ParseEmit(c.b); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
	}
}

// byRun is a translation with a run, be it one or not.
func byRun(o Outcome, offset, first, last, target int64) []byte {
	b := AppendEmit(nil, Emit{Kind: EmitTranslation, Offset: offset, Outcome: o})
	for _, n := range []int64{first, last, target} {
		b = le.AppendUint64(b, uint64(n))
	}
	return b
}

// What a run says to the edges of what can be said.
func TestRuns(t *testing.T) {
	for _, c := range []struct {
		b    []byte
		want Run
		last int64
		end  int64
	}{
		{byRun(Exact, 5, 100, 109, 5), Run{100, 5, 10}, 109, 15},  // its first record
		{byRun(Exact, 15, 100, 109, 5), Run{100, 5, 10}, 109, 15}, // behind its last one
		{byRun(Bound, 0, 0, 0, 7), Run{0, 7, 1}, 0, 8},            // a guest may know why
		{byRun(Bound, 0, 1, math.MaxInt64, 0), Run{1, 0, math.MaxInt64}, math.MaxInt64, math.MaxInt64},
		{byRun(Bound, 0, math.MaxInt64, math.MaxInt64, math.MaxInt64-1), Run{math.MaxInt64, math.MaxInt64 - 1, 1}, math.MaxInt64, math.MaxInt64},
	} {
		e, err := ParseEmit(c.b)
		if err != nil || e.Run != c.want || e.Run.Last() != c.last || e.Run.End() != c.end {
			t.Errorf("%+v, to %d, end %d, %v; want %+v", e.Run, e.Run.Last(), e.Run.End(), err, c)
		}
		if again := AppendEmit(nil, e); !bytes.Equal(again, c.b) {
			t.Errorf("%x became %x", c.b, again)
		}
	}
}

func BenchmarkEncode(b *testing.B) {
	var e Encoder
	for b.Loop() {
		e.Begin(OnCommit, 0)
		for i := range 100 {
			c := goldenCommits[0]
			c.Partition = int32(i)
			e.Commit(c)
		}
		if _, err := e.Finish(); err != nil {
			b.Fatal(err)
		}
	}
}
