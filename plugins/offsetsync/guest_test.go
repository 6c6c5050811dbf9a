package offsetsync

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"mirror/abi"
)

// plugin is an instance with a config, as "key", "value", ...
func plugin(t tester, config ...string) *guest {
	t.Helper()
	g := start(t)
	if err := g.init(config...); err != nil {
		t.Fatal(err)
	}
	return g
}

func (g *guest) init(config ...string) error {
	g.frame.Begin(abi.OnInit, 0)
	if len(config) > 0 {
		g.frame.Extra(abi.TagFlat, []byte(strings.Join(config, "\x00")+"\x00"))
	}
	_, err := g.call(abi.OnInit)
	return err
}

// run is a range of records of t-0 that were stored one after the other.
func run(first, last, stored int64) abi.Commit {
	return abi.Commit{Topic: "t", TargetTopic: "A.t", SrcFirst: first, SrcLast: last, DstFirst: stored, DstLast: stored + last - first,
		Records: uint32(last - first + 1)}
}

// nothing is a range that left no record.
func nothing(first, last int64) abi.Commit {
	return abi.Commit{Topic: "t", TargetTopic: "A.t", SrcFirst: first, SrcLast: last, DstFirst: -1, DstLast: -1}
}

// commit is one call of on_commit.
func (g *guest) commit(flags uint16, entries ...abi.Commit) []abi.Emit {
	g.t.Helper()
	g.frame.Begin(abi.OnCommit, flags)
	for _, e := range entries {
		g.frame.Commit(e)
	}
	emits, err := g.call(abi.OnCommit)
	if err != nil {
		g.t.Fatal(err)
	}
	for _, e := range emits {
		if e.Kind != abi.EmitOffsetSync {
			g.t.Fatalf("emitted %v", e.Kind)
		}
	}
	return emits
}

// tell is commit with the syncs as "topic-partition upstream:downstream", without
// the topic and partition where they are t-0.
func (g *guest) tell(flags uint16, entries ...abi.Commit) []string {
	g.t.Helper()
	var syncs []string
	for _, e := range g.commit(flags, entries...) {
		about := ""
		if c := entries[e.Entry]; c.Topic != "t" || c.Partition != 0 {
			about = fmt.Sprintf("%s-%d ", c.Topic, c.Partition)
		}
		syncs = append(syncs, about+pair(e))
	}
	return syncs
}

func pair(e abi.Emit) string { return fmt.Sprintf("%d:%d", e.Upstream, e.Downstream) }

func (g *guest) partition(event abi.Event, topic string, partition int32) {
	g.t.Helper()
	g.frame.Begin(abi.OnPartitions, 0)
	g.frame.Partition(abi.Partition{Topic: topic, Partition: partition, Event: event})
	if _, err := g.call(abi.OnPartitions); err != nil {
		g.t.Fatal(err)
	}
}

func same(t *testing.T, what string, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s: syncs %v, want %v", what, got, want)
	}
}

func TestSyncs(t *testing.T) {
	t.Run("one record at a time, as MirrorMaker's page has it: after 0 come 101 and 202", func(t *testing.T) {
		g := plugin(t)
		for i := range int64(300) {
			var want []string
			if i == 0 || i == 101 || i == 202 {
				want = append(want, fmt.Sprintf("%d:%d", i, i))
			}
			same(t, fmt.Sprint("record ", i), g.tell(0, run(i, i, i)), want...)
		}
	})
	t.Run("a run", func(t *testing.T) {
		g := plugin(t)
		same(t, "0 to 250", g.tell(0, run(0, 250, 1000)), "0:1000", "101:1101", "202:1202")
		same(t, "it goes on", g.tell(0, run(251, 302, 1251)))
		same(t, "past the lag", g.tell(0, run(303, 303, 1303)), "303:1303")
	})
	t.Run("of a long run those near its end", func(t *testing.T) {
		g := plugin(t, "lag_max", "9")
		// Due after 0: 10, 20, ... 1000. The last, and 1, 2, 4, ... 64 before it.
		same(t, "0 to 1005", g.tell(0, run(0, 1005, 0)), "0:0", "360:360", "680:680", "840:840", "920:920", "960:960", "980:980", "990:990", "1000:1000")
		same(t, "flush", g.tell(abi.Flush, nothing(1006, 1005)), "1005:1005")
	})
	t.Run("gaps", func(t *testing.T) {
		g := plugin(t)
		same(t, "three runs", g.tell(0, run(0, 4, 0), nothing(5, 6), run(7, 9, 5), run(20, 20, 8)), "0:0", "7:5", "20:8")
		same(t, "the target alone", g.tell(0, run(21, 21, 50)))
		same(t, "nothing stored", g.tell(0, nothing(22, 30)))
		same(t, "after it", g.tell(0, run(31, 31, 51)), "31:51")
	})
	t.Run("the target rewound", func(t *testing.T) {
		g := plugin(t)
		same(t, "before", g.tell(0, run(0, 9, 100)), "0:100")
		same(t, "after", g.tell(0, run(10, 11, 3)), "10:3")
	})
	t.Run("a flush writes what was held back, once", func(t *testing.T) {
		g := plugin(t)
		same(t, "records", g.tell(0, run(0, 4, 0)), "0:0")
		same(t, "flush", g.tell(abi.Flush, nothing(5, 4)), "4:4")
		same(t, "again", g.tell(abi.Flush, nothing(5, 4)))
		same(t, "with records", g.tell(abi.Flush, run(5, 5, 5), run(6, 7, 6)), "7:7")
		// It does not count for the lag: 101 is due 101 after 0.
		same(t, "lag", g.tell(0, run(8, 101, 8)), "101:101")
		same(t, "the last one was due", g.tell(abi.Flush, nothing(102, 101)))
		same(t, "one that begins with the flush", g.tell(abi.Flush, run(103, 110, 102)), "103:102", "110:109")
	})
	t.Run("a flush is for its partitions", func(t *testing.T) {
		g := plugin(t)
		other := run(0, 3, 7)
		other.Topic, other.Partition = "u", 5
		same(t, "records", g.tell(0, run(0, 3, 0), other), "0:0", "u-5 0:7")
		same(t, "flush of one", g.tell(abi.Flush, nothing(4, 3)), "3:3")
		same(t, "flush of the other", g.tell(abi.Flush, abi.Commit{Topic: "u", Partition: 5, SrcFirst: 4, SrcLast: 3, DstFirst: -1, DstLast: -1}), "u-5 3:10")
	})
	t.Run("a range with something left out is one point, its last", func(t *testing.T) {
		g := plugin(t)
		dropped := run(0, 9, 0)
		dropped.DstLast, dropped.Records, dropped.Dropped = 6, 7, 3
		same(t, "dropped", g.tell(0, dropped), "9:6")
		wide := run(10, 19, 7)
		wide.DstLast = 30 // foreign records in between
		same(t, "others wrote", g.tell(0, wide), "19:30")
		same(t, "next", g.tell(0, run(20, 20, 31)))
	})
	t.Run("replayed points are known", func(t *testing.T) {
		g := plugin(t)
		same(t, "replay", g.tell(abi.Replay, run(40, 40, 20), run(99, 99, 50)))
		same(t, "flush", g.tell(abi.Flush, nothing(100, 99)))
		same(t, "going on", g.tell(0, run(100, 110, 51)))
		same(t, "the lag counts from there", g.tell(0, run(111, 250, 62)), "200:151")
	})
	t.Run("off", func(t *testing.T) {
		g := plugin(t, "mm2_syncs", "false")
		same(t, "records", g.tell(0, run(0, 1000, 0)))
		same(t, "flush", g.tell(abi.Flush, nothing(1001, 1000)))
	})
	t.Run("without a lag to keep to", func(t *testing.T) {
		g := plugin(t, "lag_max", fmt.Sprint(math.MaxInt64))
		same(t, "records", g.tell(0, run(0, math.MaxInt64-1, 0)), "0:0")
		same(t, "flush", g.tell(abi.Flush, nothing(0, -1)), "9223372036854775806:9223372036854775806")
	})
}

// A frame may have so many long runs that all their syncs are more than a call may
// emit. Then there are fewer for each, near its end.
func TestNeverMoreSyncsThanACallMayEmit(t *testing.T) {
	g := plugin(t, "lag_max", "0")
	var entries []abi.Commit
	for i := range int64(abi.MaxEntries) {
		e := run(1000000*i, 1000000*i+99999, 100000*i)
		e.Partition = int32(i / 64) // of more in one frame some have none
		entries = append(entries, e)
	}
	syncs := g.commit(abi.Flush, entries...)
	bytes := len(syncs) * (24 + abi.EmitCost)
	if bytes > abi.MaxEmits || bytes < abi.MaxEmits/2 {
		t.Errorf("%d syncs, %d bytes: %d are the limit", len(syncs), bytes, abi.MaxEmits)
	}
	var first []string
	for _, s := range syncs[:10] {
		first = append(first, pair(s))
	}
	same(t, "the first run", first, "0:0", "99871:99871", "99935:99935", "99967:99967", "99983:99983", "99991:99991", "99995:99995", "99997:99997", "99998:99998", "99999:99999")
}

func TestEvents(t *testing.T) {
	for _, c := range []struct {
		event   abi.Event
		forgets bool
	}{{abi.Assigned, false}, {abi.LogStartMoved, false}, {abi.Revoked, true}, {abi.Recreated, true}, {abi.Truncated, true}, {99, false}} {
		g := plugin(t)
		g.tell(0, run(0, 4, 0))
		g.partition(c.event, "t", 1)
		g.partition(c.event, "u", 0)
		g.partition(c.event, "t", 0)
		if c.forgets {
			same(t, fmt.Sprint("flush after event ", c.event), g.tell(abi.Flush, nothing(5, 4)))
			same(t, fmt.Sprint("record after event ", c.event), g.tell(0, run(5, 5, 5)), "5:5")
		} else {
			same(t, fmt.Sprint("flush after event ", c.event), g.tell(abi.Flush, nothing(5, 4)), "4:4")
			same(t, fmt.Sprint("record after event ", c.event), g.tell(0, run(5, 5, 5)))
		}
	}
}

func TestConfig(t *testing.T) {
	for _, c := range []struct {
		config []string
		want   string // of the error; "": none
	}{
		{nil, ""},
		{[]string{"lag_max", "0", "mm2_syncs", "true"}, ""},
		{[]string{"lag_max", "9223372036854775807"}, ""},
		{[]string{"lag_max", "9223372036854775808"}, `config: lag_max is "9223372036854775808", want a number of offsets from 0 on`},
		{[]string{"lag_max", "-1"}, `config: lag_max is "-1", want a number of offsets from 0 on`},
		{[]string{"lag_max", "1.5"}, `config: lag_max is "1.5", want a number of offsets from 0 on`},
		{[]string{"lag_max", ""}, `config: lag_max is "", want a number of offsets from 0 on`},
		{[]string{"mm2_syncs", "yes"}, `config: mm2_syncs is "yes", want true or false`},
		{[]string{"translate", "false"}, ""},
		{[]string{"translate", "1"}, `config: translate is "1", want true or false`},
		{[]string{"lag_may", "1"}, `config: no key "lag_may": there are lag_max, mm2_syncs and translate`},
		{[]string{strings.Repeat("long", 1000), "1"}, `config: no key "longlong`},
	} {
		err := start(t).init(c.config...)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.HasPrefix(err.Error(), "bad input: "+c.want)) {
			t.Errorf("%.60q: %v, want %q", c.config, err, c.want)
		}
	}
}
