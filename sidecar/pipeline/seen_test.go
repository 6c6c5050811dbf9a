package pipeline

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"mirror/sidecar/batch"
	"mirror/sidecar/positions"
	"mirror/sidecar/status"
)

// What a partition's lag is, by what is known of it. Each case says what the
// clock showed, in seconds, when things happened.
func TestLagInTime(t *testing.T) {
	for name, c := range map[string]struct {
		end, position   int64
		made, seenAtEnd int64 // 0: never
		waits, last     int64 // timestamps
		now             int64
		want            time.Duration
	}{
		"nothing waits":                                            {end: 10, position: 9, made: 100, last: 100, now: 9000},
		"the end is not known":                                     {end: -1, position: 9, made: 100, waits: 50, now: 9000},
		"a backlog: the record's age":                              {end: 10, position: 4, made: 8000, waits: 1000, now: 9000, want: 8000 * time.Second},
		"its age, not that of what came before":                    {end: 10, position: 4, made: 8000, waits: 1000, last: 900, now: 9000, want: 8000 * time.Second},
		"not fetched yet: the one before":                          {end: 10, position: 4, made: 100, last: 8500, now: 9000, want: 500 * time.Second},
		"after a day of idling: since it waits":                    {end: 10, position: 4, made: 100, seenAtEnd: 88_990, last: 2000, now: 89_000, want: 10 * time.Second},
		"written without a pause: the timestamp":                   {end: 10, position: 4, made: 100, seenAtEnd: 100, waits: 8999, last: 8998, now: 9000, want: time.Second},
		"old timestamps: since it waits":                           {end: 10, position: 4, made: 100, seenAtEnd: 8900, waits: 3, now: 9000, want: 100 * time.Second},
		"a timestamp that is ahead says nothing":                   {end: 10, position: 4, made: 100, seenAtEnd: 8900, waits: 9999, now: 9000, want: 100 * time.Second},
		"no timestamp, never at the end: at least since the start": {end: 10, position: 4, made: 8000, waits: -1, now: 9000, want: 1000 * time.Second},
	} {
		p := &partition{end: c.end, position: positions.Plain(c.position), made: time.Unix(c.made, 0), lastTimestamp: c.last * 1000}
		if c.seenAtEnd > 0 {
			p.seenAtEnd = time.Unix(c.seenAtEnd, 0)
		}
		if got := p.lag(time.Unix(c.now, 0), c.waits*1000); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

// A topic that is copied has no lag however long it idles; while the target is
// away lag grows, in records and in time, and ends with the outage.
func TestLagGrowsWhileTheTargetIsAway(t *testing.T) {
	l := newLab(t)
	l.source.create("t", 1)
	l.source.write("t", 0, "of another time") // of 1970
	r := l.start()
	l.copied("t", 0, "of another time")
	l.lag(r, "of what is copied", func(p status.Partition) bool { return p.Lag == 0 && p.LagSeconds == 0 && p.SourceEnd == 1 })
	if p, _ := r.partition("t", 0); !p.LastRecord.Equal(at(1000)) {
		t.Errorf("the last record is of %v, not %v", p.LastRecord, at(1000))
	}

	down := time.Now()
	l.target.net.set(goDown)
	l.source.write("t", 0, "a")
	l.lag(r, "of one record", func(p status.Partition) bool { return p.Lag == 1 && p.LagSeconds > 0 })
	var first float64
	eventually(t, "the target to be out of reach", func() string {
		p, _ := r.partition("t", 0)
		if first = p.LagSeconds; r.partitionOf("t", 0).src.Fetching() {
			return "it is still fetched for"
		}
		return ""
	})
	l.source.write("t", 0, "b", "c") // which is not fetched
	l.lag(r, "of what is not fetched", func(p status.Partition) bool { return p.Lag == 3 && p.LagSeconds > first })
	if p, _ := r.partition("t", 0); p.LagSeconds > time.Since(down).Seconds() {
		t.Errorf("a lag of %v s, %v after nothing was behind", p.LagSeconds, time.Since(down))
	}
	l.target.net.set(work)
	l.copied("t", 0, "of another time", "a", "b", "c")
	l.lag(r, "at the end", func(p status.Partition) bool { return p.Lag == 0 && p.LagSeconds == 0 })
}

func (l *lab) lag(r *running, what string, ok func(status.Partition) bool) {
	l.Helper()
	eventually(l.T, "the lag "+what, func() string {
		if p, found := r.partition("t", 0); !found || !ok(p) {
			return fmt.Sprintf("%+v", p)
		}
		return ""
	})
}

func (f *Flow) partitionOf(topic string, number int32) *partition {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.partitions[positions.Key{Topic: topic, Partition: number}]
}

// What is skipped is counted with the reason, and what is opened too.
func TestPathsAndReasons(t *testing.T) {
	l := newLab(t)
	l.source.create("t", 1)
	l.source.write("t", 0, "gone", "cut-0", "cut-1")
	if err := l.source.DeleteRecords("t", 0, 1); err != nil { // in the midst of a batch
		t.Fatal(err)
	}
	r := l.start()
	l.copied("t", 0, "cut-0", "cut-1") // before the next, or they are merged
	l.source.write("t", 0, "raw-0", "raw-1")
	l.source.transaction("t", false, "no-0", "no-1", "no-2") // a batch each
	l.copied("t", 0, "cut-0", "cut-1", "raw-0", "raw-1")
	l.lag(r, "at the end", func(p status.Partition) bool { return p.Lag == 0 && p.SourceEnd == 9 })
	p, _ := r.partition("t", 0)
	for _, want := range []status.Count{
		{Path: status.PathRaw, Batches: 1, Records: 2, Bytes: uint64(len(l.source.made(batch.None, "raw-0", "raw-1")))},
		{Path: status.PathSkipped, Reason: "aborted", Batches: 3, Records: 3},
		{Path: status.PathSkipped, Reason: "control", Batches: 1, Records: 1},
		{Path: status.PathReencoded, Reason: "cut", Batches: 1, Records: 2},
	} {
		i := slices.IndexFunc(p.Paths, func(c status.Count) bool { return c.Path == want.Path && c.Reason == want.Reason })
		if i < 0 {
			t.Errorf("nothing is %s (%s): %+v", want.Path, want.Reason, p.Paths)
			continue
		}
		got := p.Paths[i]
		if want.Bytes == 0 && got.Bytes > 61 { // more than a header
			got.Bytes = 0
		}
		if got != want {
			t.Errorf("got %+v, want %+v", got, want)
		}
	}
	if len(p.Paths) != 4 || p.Records != 4 || p.Batches[status.PathSkipped] != 4 {
		t.Errorf("%+v", p)
	}
}

func TestLatencies(t *testing.T) {
	var l latencies
	now := time.UnixMilli(1_700_000_000_000)
	for _, ms := range []int64{0, 1, 2, 3, 500, 501, 3_600_000, 3_600_001, -5000 /* a clock ahead */} {
		l.observe(now.UnixMilli()-ms, now)
	}
	l.observe(-1, now) // no timestamp
	h := l.histogram()
	if h.Count != 9 || h.Sum != 7201.008 {
		t.Errorf("count %d, sum %v", h.Count, h.Sum)
	}
	for _, want := range []status.Bucket{{Most: 0.001, Count: 3}, {Most: 0.002, Count: 4}, {Most: 0.005, Count: 5}, {Most: 0.5, Count: 6}, {Most: 1, Count: 7}, {Most: 900, Count: 7}, {Most: 3600, Count: 8}} {
		if !slices.Contains(h.Buckets, want) {
			t.Errorf("no %+v in %+v", want, h.Buckets)
		}
	}
	if n := testing.AllocsPerRun(100, func() { l.observe(1, now) }); n != 0 {
		t.Errorf("%v allocations for each observation", n)
	}
}

// The latency is that of each batch, from its timestamp to the acknowledgement.
func TestLatencyOfAFlow(t *testing.T) {
	l := newLab(t)
	l.source.create("t", 1)
	l.source.store("t", 0, later(l.source.made(batch.None, "old"), time.Now().Add(-90*time.Second).UnixMilli()-1000))
	r := l.start()
	l.copied("t", 0, "old")
	l.saved("t", 0, 0)
	h := r.Status().Latency
	if h.Count != 1 || h.Sum < 90 || h.Sum > 300 {
		t.Errorf("count %d, sum %v s, want one of at least 90", h.Count, h.Sum)
	}
}

// An outage of the target with a great many tries is a few lines in the log, however many partitions wait for it: that it begins
// and what it is, and that it ends.
func TestAnOutageIsAFewLines(t *testing.T) {
	const partitions = 12
	for name, outage := range map[string]struct {
		begin, end func(*lab)
		tries      uint64
	}{
		"unreachable": {func(l *lab) { l.target.net.set(goDown) }, func(l *lab) { l.target.net.set(work) }, 6}, // one for all partitions
		"refusing":    {func(l *lab) { l.target.refuse("A.t") }, func(l *lab) { l.target.heal() }, 20},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // its tries wait for each other's pauses
			l := newLab(t)
			l.source.create("t", partitions)
			r := l.start()
			for n := range int32(partitions) {
				r.runs("t", n)
			}
			before := l.log.Count("")
			outage.begin(l)
			for n := range int32(partitions) {
				l.source.write("t", n, "v")
			}
			eventually(t, "tries", func() string {
				sum := uint64(0)
				for _, n := range r.Status().Errors {
					sum += n
				}
				if sum < outage.tries {
					return fmt.Sprint(r.Status().Errors)
				}
				return ""
			})
			outage.end(l)
			for n := range int32(partitions) {
				l.copied("t", n, "v")
				r.runs("t", n)
			}
			// Two for each partition, its trouble and the end of it, and as many for
			// what belongs to the flow: each cluster's brokers, topics, positions.
			if lines := l.log.Count("") - before; lines > 2*partitions+12 {
				t.Errorf("%d lines:\n%s", lines, l.log)
			}
		})
	}
}

// Why a partition cannot begin is said once, when it was not for a moment only.
func TestAPartitionThatCannotBeginIsSaidOnce(t *testing.T) {
	for failures, lines := range map[int]int{1: 0, 3: 1} {
		t.Run(fmt.Sprint(failures), func(t *testing.T) {
			t.Parallel() // its tries wait for their pauses
			l := newLab(t)
			l.source.create("t", 1)
			l.source.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.ListOffsets}, Err: kerr.UnknownServerError, Count: failures})
			r := l.start()
			r.runs("t", 0)
			if n := l.log.Count("cannot begin yet"); n != lines {
				t.Errorf("it is logged %d times after %d failures, want %d", n, failures, lines)
			}
		})
	}
}
