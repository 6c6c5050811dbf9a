package offsetsync

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"mirror/abi"
)

// kept is what the state has of t-0, as "start: value", the oldest chunk first.
func (g *guest) kept() (all []string) {
	x := g.parts.at(partition{"t", 0})
	for _, k := range slices.Backward(x.keys()) {
		start := "?" + k
		if len(k) == 8 {
			start = fmt.Sprint(int64(^binary.BigEndian.Uint64([]byte(k))))
		}
		all = append(all, fmt.Sprintf("%s: %x", start, x.seen[k]))
	}
	return all
}

func (g *guest) assigned(position, end int64) {
	g.t.Helper()
	g.frame.Begin(abi.OnPartitions, 0)
	g.frame.Partition(abi.Partition{Topic: "t", TargetTopic: "A.t", Event: abi.Assigned, LogStart: -1, Position: position, TargetEnd: end})
	if _, err := g.call(abi.OnPartitions); err != nil {
		g.t.Fatal(err)
	}
}

// where asks where on the target a group of t-0 goes on.
func (g *guest) where(offset, position, end int64) answer {
	g.t.Helper()
	a, _ := g.whereBy(offset, position, end)
	return a
}

// whereBy asks also by which run.
func (g *guest) whereBy(offset, position, end int64) (answer, abi.Run) {
	g.t.Helper()
	g.frame.Begin(abi.OnGroups, 0)
	g.frame.Group(abi.Group{Group: "g", Topic: "t", Offset: offset, LogStart: -1, Position: position, TargetEnd: end, LeaderEpoch: -1})
	emits, err := g.call(abi.OnGroups)
	if err != nil || len(emits) != 1 {
		g.t.Fatalf("%v, %v", emits, err)
	}
	return answer{emits[0].Offset, emits[0].Outcome, emits[0].Reason}, emits[0].Run
}

// What is kept, byte by byte: whoever changes this has to change the schema.
func TestChunks(t *testing.T) {
	keeps := func(t *testing.T, g *guest, want ...string) {
		t.Helper()
		g.commit(abi.Flush, nothing(0, -1))
		for i, w := range want { // the spaces are there to be read
			start, value, _ := strings.Cut(w, ": ")
			want[i] = start + ": " + strings.ReplaceAll(value, " ", "")
		}
		if got := g.kept(); !slices.Equal(got, want) {
			t.Errorf("kept\n\t%s\nwant\n\t%s", strings.Join(got, "\n\t"), strings.Join(want, "\n\t"))
		}
	}
	mixed := run(0, 9, 100)
	mixed.DstLast, mixed.Records, mixed.Dropped = 106, 7, 3
	t.Run("transactions", func(t *testing.T) {
		g := plugin(t)
		g.commit(0, run(0, 9, 100), nothing(10, 10), run(11, 20, 110), nothing(21, 21))
		keeps(t, g, "0: 00 65 000a 080a 0800")
		g.commit(0, run(22, 24, 120), run(25, 31, 123))
		keeps(t, g, "0: 00 65 000a 080a 080a")
	})
	t.Run("large numbers", func(t *testing.T) {
		g := plugin(t)
		g.commit(0, run(1000, 1299, 0), nothing(1300, 1315), run(1316, 1316, 500))
		keeps(t, g, "1000: 00 01 00ac02 84010 1c801")
	})
	t.Run("unknown, and on the target others", func(t *testing.T) {
		g := plugin(t)
		g.commit(0, run(0, 9, 100))
		g.assigned(19, 150)
		g.commit(0, run(20, 24, 150))
		keeps(t, g, "0: 00 65 000a 550528")
	})
	t.Run("nothing after what is unknown", func(t *testing.T) {
		g := plugin(t)
		g.commit(0, run(0, 9, 100))
		g.assigned(19, 150)
		g.commit(0, nothing(20, 21))
		keeps(t, g, "0: 00 65 000a 5100 1000")
	})
	t.Run("some left out", func(t *testing.T) {
		g := plugin(t)
		g.commit(0, mixed)
		keeps(t, g, "0: 00 65 550007")
	})
	t.Run("points", func(t *testing.T) {
		g := plugin(t)
		g.commit(abi.Replay, run(5, 5, 7), run(9, 9, 8))
		g.commit(0, run(10, 10, 9))
		keeps(t, g, "5: 00 08 0301 1b01 0001")
	})
	t.Run("an empty target", func(t *testing.T) {
		g := plugin(t)
		g.assigned(4, 0)
		g.commit(0, nothing(5, 6))
		keeps(t, g, "0: 00 01 2d0000 1000")
	})
	t.Run("a new chunk past 256 bytes", func(t *testing.T) {
		g, all := plugin(t), ""
		for i := range int64(130) {
			g.commit(0, run(11*i, 11*i+9, 10*i), nothing(11*i+10, 11*i+10))
			all += "080a"
		}
		old := "0: 00 01 000a" + all[4:4*129]
		keeps(t, g, old+"0800", "1419: 00 8b0a 000a 0800")
		g.commit(0, run(1430, 1439, 1300))
		keeps(t, g, old+"0800", "1419: 00 8b0a 000a 080a")
	})
	t.Run("chunks are sealed together", func(t *testing.T) {
		g, all := plugin(t), ""
		for i := range int64(2200) {
			flags := uint16(0)
			if i%150 == 149 {
				flags = abi.Flush
			}
			g.commit(flags, run(11*i, 11*i+9, 10*i), nothing(11*i+10, 11*i+10))
			all += "080a"
		}
		got := g.kept()
		if first := got[0]; len(got) != 2 || !strings.HasPrefix(first, "0: 8001000a080a") || len(first) < 2*4096 {
			t.Errorf("%d chunks, the first of them %.40s, of %d bytes", len(got), first, len(first)/2)
		}
	})
}

func TestSchema(t *testing.T) {
	g := plugin(t)
	if len(g.emits) != 1 || g.emits[0].Kind != abi.EmitSchema || string(g.emits[0].Data) != "runs-1" {
		t.Errorf("emitted %+v", g.emits)
	}
}

// Without translation nothing is kept, and no group is translated.
func TestTranslateOff(t *testing.T) {
	g := plugin(t, "translate", "false")
	if len(g.emits) != 0 {
		t.Errorf("emitted %+v", g.emits)
	}
	g.assigned(-1, 0)
	same(t, "syncs", g.tell(abi.Flush, run(0, 9, 0)), "0:0", "9:9")
	if a := g.where(3, 9, 10); a != (answer{-1, abi.NoOffset, abi.NotKnown}) || len(g.kept()) != 0 {
		t.Errorf("offset 3: %v; kept: %v", a, g.kept())
	}
}

// The rules that random histories seldom meet.
func TestRules(t *testing.T) {
	g := plugin(t)
	g.assigned(-1, 5)
	for _, c := range []struct {
		what   string
		do     func()
		offset int64
		want   answer
		by     abi.Run
	}{
		{"nothing told", func() {}, 0, answer{-1, abi.NoOffset, abi.NotKnown}, abi.Run{}},
		{"records", func() { g.commit(0, run(10, 19, 5)) }, 10, exact(5), of(10, 19, 5)},
		{"in the run", nil, 15, exact(10), of(10, 19, 5)},
		{"before it", nil, 9, answer{-1, abi.NoOffset, abi.BeforeFirst}, abi.Run{}},
		{"negative", nil, -5, answer{-1, abi.NoOffset, abi.BeforeFirst}, abi.Run{}},
		{"the head", nil, 20, exact(15), of(10, 19, 5)},
		{"past the head", nil, 21, bound(15, abi.Ahead), of(10, 19, 5)},
		{"far past it", nil, math.MaxInt64, bound(15, abi.Ahead), of(10, 19, 5)},
		{"again, with another place", func() { g.commit(0, run(15, 21, 30)) }, 15, exact(30), of(15, 21, 30)},
		{"before that", nil, 14, exact(9), of(10, 14, 5)},
		{"the target has lost the end", func() { g.commit(0, run(22, 22, 12)) }, 19, bound(10, abi.InUnknown), of(10, 14, 5)},
		{"the target has lost it, and something new is there", nil, 12, exact(7), of(10, 14, 5)},
		{"offsets that are none", func() { g.commit(0, run(math.MaxInt64-9, math.MaxInt64-1, 40)) }, 22, exact(12), of(22, 22, 12)},
	} {
		if c.do != nil {
			c.do()
		}
		position := int64(19)
		if c.offset > 21 && c.offset < 100 {
			position = 22
		}
		if got, by := g.whereBy(c.offset, position, -1); got != c.want || by != c.by {
			t.Errorf("%s: offset %d: %v by %+v, want %v by %+v; kept: %s", c.what, c.offset, got, by, c.want, c.by, g.kept())
		}
	}
}

// A range of which something was left out, and the target loses it.
func TestTargetLosesMixedRanges(t *testing.T) {
	g := plugin(t)
	mixed := run(10, 19, 10)
	mixed.DstLast, mixed.Records, mixed.Dropped = 16, 7, 3
	g.commit(abi.Flush, run(0, 9, 0), mixed, run(20, 29, 17))
	g.assigned(29, 12)
	g.commit(abi.Flush, run(30, 39, 12))
	for offset, want := range map[int64]answer{5: exact(5), 9: exact(9), 10: bound(10, abi.InUnknown), 25: bound(10, abi.InUnknown), 30: exact(12), 40: exact(22)} {
		if got := g.where(offset, 39, 22); got != want {
			t.Errorf("offset %d: %v, want %v; kept: %s", offset, got, want, g.kept())
		}
	}
}

// Whatever bytes there are in the state: the plugin does not trap, and goes on.
func FuzzKept(f *testing.F) {
	for _, v := range []string{"0065000a080a0800", "8001000a", "ff", "0065ffffffffffffffff7f0a", "00ffffffffffffffffff01000a", ""} {
		b, _ := hex.DecodeString(v)
		f.Add(b, b, int64(40))
	}
	f.Fuzz(func(t *testing.T, a, b []byte, offset int64) {
		g := plugin(t)
		x := g.parts.at(partition{"t", 0})
		for start, v := range map[uint64][]byte{0: a, 100: b} {
			x.seen[string(binary.BigEndian.AppendUint64(nil, ^start))] = v
		}
		g.assigned(offset, -1)
		g.where(offset, 200, -1)
		g.where(50, 200, -1)
		g.commit(0, run(300, 400, 300), nothing(401, 401), run(402, 402, 401), run(offset&0xffff, offset&0xffff, 500))
		g.commit(abi.Flush, nothing(0, -1))
		g.where(350, 500, -1)
	})
}
