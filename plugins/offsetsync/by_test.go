package offsetsync

import (
	"encoding/binary"
	"encoding/hex"
	"strings"
	"testing"

	"mirror/abi"
)

// of is the run with a first and a last source offset, and where on the target it begins.
func of(first, last, target int64) abi.Run {
	return abi.Run{First: first, Target: target, Records: last - first + 1}
}

// by holds an answer and its run to what they should be.
func (g *guest) by(t *testing.T, offset, position int64, want answer, run abi.Run) {
	t.Helper()
	if got, by := g.whereBy(offset, position, -1); got != want || by != run {
		t.Errorf("offset %d: %v by %+v, want %v by %+v; kept: %s", offset, got, by, want, run, g.kept())
	}
}

// By which run an answer goes.
func TestAnswersGoByRuns(t *testing.T) {
	mixed := run(10, 19, 110)
	mixed.DstLast, mixed.Records, mixed.Dropped = 116, 7, 3
	t.Run("that which follows, where nothing comes before it", func(t *testing.T) {
		g := plugin(t)
		g.commit(0, run(0, 9, 100), nothing(10, 12), run(13, 19, 110), nothing(20, 20))
		g.by(t, 9, 20, exact(109), of(0, 9, 100))
		g.by(t, 10, 20, exact(110), of(13, 19, 110))
		g.by(t, 12, 20, exact(110), of(13, 19, 110))
		g.by(t, 20, 20, exact(117), of(13, 19, 110)) // the one before, as none follows yet
		g.by(t, 21, 20, exact(117), of(13, 19, 110))
		g.by(t, 30, 20, bound(117, abi.Ahead), of(13, 19, 110))
	})
	t.Run("none, where there is no record yet", func(t *testing.T) {
		g := plugin(t)
		g.assigned(-1, 0)
		g.by(t, 0, -1, exact(0), abi.Run{})
		g.by(t, 5, -1, bound(0, abi.Ahead), abi.Run{})
	})
	t.Run("none, behind a range of which something was left out", func(t *testing.T) {
		g := plugin(t)
		g.commit(0, run(0, 9, 100), mixed)
		g.by(t, 15, 19, bound(110, abi.InUnknown), of(0, 9, 100))
		g.by(t, 20, 19, exact(117), abi.Run{})
		g.assigned(29, 150)
		g.commit(0, run(30, 39, 150))
		g.by(t, 25, 39, bound(117, abi.InUnknown), abi.Run{})
	})
	t.Run("a point that was read back", func(t *testing.T) {
		g := plugin(t)
		g.commit(abi.Replay, run(5, 5, 7), run(9, 9, 8))
		g.by(t, 5, 9, bound(7, abi.BeforeFirst), of(5, 5, 7))
		g.by(t, 7, 9, bound(8, abi.BeforeFirst), of(5, 5, 7))
		g.by(t, 10, 9, bound(9, abi.BeforeFirst), of(9, 9, 8))
		g.commit(0, run(10, 19, 9)) // which makes no run of it
		g.by(t, 9, 19, bound(8, abi.BeforeFirst), of(9, 9, 8))
		g.by(t, 10, 19, exact(9), of(10, 19, 9))
	})
	t.Run("the last one before what is unknown", func(t *testing.T) {
		g := plugin(t)
		g.commit(0, run(0, 9, 100), nothing(10, 10))
		g.assigned(19, 150)
		g.commit(0, nothing(20, 21))
		g.by(t, 11, 21, bound(110, abi.InUnknown), of(0, 9, 100))
		g.by(t, 22, 21, bound(110, abi.InUnknown), of(0, 9, 100))
		g.commit(0, run(22, 29, 150))
		g.by(t, 11, 29, bound(110, abi.InUnknown), of(0, 9, 100))
		g.by(t, 22, 29, exact(150), of(22, 29, 150))
	})
	t.Run("also where that is in the chunk before", func(t *testing.T) {
		g, at := plugin(t), int64(0)
		for ; at < 11*140; at += 11 {
			g.commit(0, run(at, at+9, at/11*10), nothing(at+10, at+10))
		}
		g.assigned(at+99, 5000)
		g.commit(0, nothing(at+100, at+100))
		g.commit(abi.Flush, nothing(0, -1))
		if kept := g.kept(); len(kept) != 2 {
			t.Fatalf("kept: %s", kept)
		}
		last := of(at-11, at-2, 1390)
		g.by(t, at+50, at+100, bound(1400, abi.InUnknown), last)
		g.by(t, at+101, at+100, bound(1400, abi.InUnknown), last)
		g.assigned(at+199, 5000)
		g.commit(0, run(at+200, at+209, 5000))
		g.by(t, at+150, at+209, bound(1400, abi.InUnknown), last)
	})
}

// A crash between two writes has left what the first chunk says of a run that is in the
// second one by now, and has another end there.
func TestRunOfAChunkThatWasCutShort(t *testing.T) {
	g := plugin(t)
	x := g.parts.at(partition{"t", 0})
	for start, v := range map[uint64]string{
		0:  "00 01 0028 5032",   // 0-39 at 0; 50-99 at 40
		50: "00 29 0014 040528", // 50-69 at 40; 70-74 at 100
	} {
		b, err := hex.DecodeString(strings.ReplaceAll(v, " ", ""))
		if err != nil {
			t.Fatal(err)
		}
		x.seen[string(binary.BigEndian.AppendUint64(nil, ^start))] = b
	}
	g.assigned(74, -1)
	g.by(t, 39, 74, exact(39), of(0, 39, 0))
	g.by(t, 45, 74, exact(40), of(50, 69, 40))
	g.by(t, 60, 74, exact(50), of(50, 69, 40))
	g.by(t, 72, 74, exact(102), of(70, 74, 100))
	g.by(t, 80, 74, bound(105, abi.Ahead), of(70, 74, 100))
}
