package abi

import (
	"bytes"
	"encoding/hex"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the golden files anew")

var (
	sourceID = [16]byte{0: 0x01, 15: 0x0f}
	targetID = [16]byte{0: 0x02, 15: 0x0e}
)

var goldenCommits = []Commit{
	{Topic: "orders", TargetTopic: "primary.orders", Partition: 3, TargetPartition: 3, SrcFirst: 100, SrcLast: 149,
		DstFirst: 90, DstLast: 139, MaxTimestamp: 1_700_000_000_123, Records: 50, LeaderEpoch: 7},
	{Topic: "orders", TargetTopic: "primary.orders", Partition: 3, TargetPartition: 3, SrcFirst: 150, SrcLast: 150,
		DstFirst: -1, DstLast: -1, MaxTimestamp: -1, LeaderEpoch: 7},
	{Topic: "ünïcode", TargetTopic: "primary.ünïcode", Partition: 0, TargetPartition: 0, SrcFirst: 0, SrcLast: 4,
		DstFirst: 0, DstLast: 2, MaxTimestamp: 5, Records: 3, Dropped: 2, LeaderEpoch: -1},
}

var goldenFlush = []Commit{
	{Topic: "orders", TargetTopic: "primary.orders", Partition: 3, TargetPartition: 3, SrcFirst: 151, SrcLast: 150,
		DstFirst: -1, DstLast: -1, MaxTimestamp: -1, LeaderEpoch: -1},
}

var goldenPartitions = []Partition{
	{Topic: "orders", TargetTopic: "primary.orders", Partition: 3, Event: Assigned, LogStart: 10, Position: 99, TargetEnd: 90,
		TopicID: sourceID, TargetTopicID: targetID},
	{Topic: "orders", TargetTopic: "primary.orders", Partition: 4, Event: Recreated, LogStart: 0, Position: -1, TargetEnd: -1},
}

var goldenGroups = []Group{
	{Group: "billing", Topic: "orders", Metadata: "host-1", Partition: 3, Offset: 120, LogStart: 10, Position: 149, TargetEnd: 140, LeaderEpoch: 7},
	{Group: "audit", Topic: "orders", Partition: 3, Offset: 5, LogStart: 10, Position: 149, TargetEnd: 140, LeaderEpoch: -1},
}

type goldenFrame struct {
	name  string
	bytes []byte
}

func goldenFrames(t testing.TB) (all []goldenFrame) {
	t.Helper()
	var e Encoder
	finish := func(name string) {
		b, err := e.Finish()
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, goldenFrame{name, bytes.Clone(b)})
	}
	common := func() {
		e.ExtraUint(TagNow, 1_700_000_001_000)
		e.ExtraUint(TagAttempt, 1)
		e.ExtraUint(TagLane, 2)
		e.ExtraUint(TagGeneration, 9)
	}
	e.Begin(OnInit, 0)
	common()
	e.Extra(TagFlow, []byte("primary->backup"))
	e.Extra(TagConfig, []byte(`{"lag_max":100,"names":["a","b"],"on":true}`))
	e.Extra(TagFlat, []byte("lag_max\x00100\x00names.0\x00a\x00names.1\x00b\x00on\x00true\x00"))
	e.Extra(TagPlugin, []byte("offset-sync"))
	e.ExtraUint(TagHost, Minor)
	e.Extra(TagFrom, []byte("primary"))
	e.Extra(TagTo, []byte("backup"))
	finish("init")

	e.Begin(OnPartitions, 0)
	for _, p := range goldenPartitions {
		e.Partition(p)
	}
	common()
	finish("on_partitions")

	e.Begin(OnCommit, 0)
	for _, c := range goldenCommits {
		e.Commit(c)
	}
	common()
	finish("on_commit")

	e.Begin(OnCommit, Flush)
	for _, c := range goldenFlush {
		e.Commit(c)
	}
	finish("flush")

	e.Begin(OnGroups, 0)
	for _, g := range goldenGroups {
		e.Group(g)
	}
	common()
	finish("on_groups")

	e.Begin(OnRestore, 0)
	common()
	e.Extra(TagBlob, []byte{1, 2, 3})
	finish("restore")
	return all
}

var goldenEmits = []struct {
	name string
	emit Emit
}{
	{"offset_sync", Emit{Kind: EmitOffsetSync, Entry: 1, Upstream: 150, Downstream: 140}},
	{"record", Emit{Kind: EmitRecord, Entry: NoEntry, Record: Record{Topic: "audit-log", Partition: -1, Timestamp: 1_700_000_000_123,
		Key: []byte("k"), Value: []byte{}, Headers: []Header{{"a", []byte("1")}, {"b", nil}}}}},
	{"record_null", Emit{Kind: EmitRecord, Record: Record{Topic: "audit-log", Partition: 2, Timestamp: -1}}},
	{"translation", Emit{Kind: EmitTranslation, Entry: 0, Offset: 111, Outcome: Exact}},
	{"translation_by_run", Emit{Kind: EmitTranslation, Entry: 0, Offset: 111, Outcome: Exact, Run: Run{First: 100, Target: 90, Records: 50}}},
	{"bound_by_run", Emit{Kind: EmitTranslation, Entry: 1, Offset: 140, Outcome: Bound, Reason: InUnknown, Run: Run{First: 100, Target: 90, Records: 50}}},
	{"no_translation", Emit{Kind: EmitTranslation, Entry: 1, Offset: -1, Outcome: NoOffset, Reason: BeforeFirst}},
	{"save", Emit{Kind: EmitSave, Entry: NoEntry, Data: []byte{9, 8, 7}}},
	{"schema", Emit{Kind: EmitSchema, Entry: NoEntry, Data: []byte("runs-1")}},
}

// golden compares b with the file, or writes it.
func golden(t *testing.T, name string, b []byte) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(file, b, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(b, want) {
		t.Errorf("%s:\n%swant\n%s", file, hex.Dump(b), hex.Dump(want))
	}
}

// The bytes are the contract: a change of a golden file is a change of the contract.
func TestGolden(t *testing.T) {
	var about strings.Builder
	for _, g := range goldenFrames(t) {
		golden(t, "frame_"+g.name+".bin", g.bytes)
		f, err := ParseFrame(g.bytes)
		if err != nil {
			t.Fatalf("%s: %v", g.name, err)
		}
		fmt.Fprintf(&about, "frame_%s.bin: %v, flags %d, %d entries of %d bytes\n", g.name, f.Hook(), f.Flags(), f.Count(), f.Stride())
		for i := range f.Count() {
			switch f.Hook() {
			case OnCommit:
				fmt.Fprintf(&about, "  %+v\n", f.Commit(i))
			case OnPartitions:
				fmt.Fprintf(&about, "  %+v\n", f.Partition(i))
			case OnGroups:
				fmt.Fprintf(&about, "  %+v\n", f.Group(i))
			}
		}
		for tag, b := range f.Extras() {
			fmt.Fprintf(&about, "  extra %d: %q\n", tag, b)
		}
	}
	for _, g := range goldenEmits {
		b := AppendEmit(nil, g.emit)
		golden(t, "emit_"+g.name+".bin", b)
		e, err := ParseEmit(b)
		if err != nil {
			t.Fatalf("%s: %v", g.name, err)
		}
		if !reflect.DeepEqual(e, g.emit) {
			t.Errorf("%s: %+v, want %+v", g.name, e, g.emit)
		}
		fmt.Fprintf(&about, "emit_%s.bin: %+v\n", g.name, e)
	}
	golden(t, "golden.txt", []byte(about.String()))
}

func TestFramesReadAsWritten(t *testing.T) {
	frames := map[string]Frame{}
	for _, g := range goldenFrames(t) {
		f, err := ParseFrame(g.bytes)
		if err != nil {
			t.Fatal(err)
		}
		frames[g.name] = f
	}
	for i, want := range goldenCommits {
		if got := frames["on_commit"].Commit(i); got != want {
			t.Errorf("commit %d: %+v, want %+v", i, got, want)
		}
	}
	for i, want := range goldenPartitions {
		if got := frames["on_partitions"].Partition(i); got != want {
			t.Errorf("partition %d: %+v, want %+v", i, got, want)
		}
	}
	for i, want := range goldenGroups {
		if got := frames["on_groups"].Group(i); got != want {
			t.Errorf("group %d: %+v, want %+v", i, got, want)
		}
	}
	if b, ok := frames["restore"].Extra(TagBlob); !ok || !bytes.Equal(b, []byte{1, 2, 3}) {
		t.Errorf("blob %v, %v", b, ok)
	}
	if b, ok := frames["flush"].Extra(TagNow); ok {
		t.Errorf("an extra %v of a frame without any", b)
	}
	if frames["flush"].Flags() != Flush {
		t.Errorf("flags %d, want %d", frames["flush"].Flags(), Flush)
	}
}

// The layouts by hand, from SPEC.md, so that reader and writer cannot agree on
// something else.
func TestCommitLayout(t *testing.T) {
	b := goldenFrames(t)[2].bytes
	at := func(off int, want string) {
		t.Helper()
		if got := hex.EncodeToString(b[off : off+len(want)/2]); got != want {
			t.Errorf("at %d: %s, want %s", off, got, want)
		}
	}
	at(0, "4d495231")          // MIR1
	at(4, "2000"+"0300")       // header_len, kind
	at(8, "03000000")          // count
	at(12, "4800"+"0000")      // stride, flags
	at(16, "20000000")         // entries
	at(20, "f8000000")         // blobs: 32 + 3 * 72
	at(32, "6400000000000000") // src_first 100
	at(40, "9500000000000000") // src_last 149
	at(48, "5a00000000000000") // dst_first 90
	at(56, "8b00000000000000") // dst_last 139
	at(64, "7b68e5cf8b010000") // max_timestamp
	at(72, "f8000000")         // src_topic
	at(76, "0600"+"0e00")      // lengths
	at(80, "fe000000")         // dst_topic
	at(84, "03000000"+"03000000")
	at(92, "32000000"+"00000000") // records, dropped
	at(100, "07000000")           // leader_epoch
	if s := string(b[0xf8:][:20]); s != "ordersprimary.orders" {
		t.Errorf("texts %q", s)
	}
}

func TestTranslationLayout(t *testing.T) {
	e := Emit{Kind: EmitTranslation, Entry: 7, Offset: 140, Outcome: Bound, Reason: InUnknown, Run: Run{First: 100, Target: 90, Records: 50}}
	want := "0300" + "0000" + "07000000" + // kind, entry
		"8c00000000000000" + "0200" + "0300" + "00000000" + // offset, outcome, reason
		"6400000000000000" + "9500000000000000" + "5a00000000000000" // run_first 100, run_last 149, run_target 90
	if got := hex.EncodeToString(AppendEmit(nil, e)); got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if e.Run = (Run{}); hex.EncodeToString(AppendEmit(nil, e)) != want[:48] {
		t.Error("without a run it is not the same, less the run")
	}
}
