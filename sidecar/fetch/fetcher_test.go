package fetch

import (
	"slices"
	"sync/atomic"
	"testing"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/kversion"
)

func TestAllPartitionsAreReadToTheirEnds(t *testing.T) {
	for name, opts := range map[string][]kfake.Opt{"by id": nil, "by name": {kfake.MaxVersions(kversion.V2_7_0())}} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, opts...)
			b.create("t", 6)
			var rs []*reader
			for n := range int32(6) {
				b.write("t", n, 5, 1)
				r := b.reader("t", n, int64(n))
				if opts != nil {
					r.p.Start(Start{Generation: 1, Offset: int64(n), LeaderEpoch: -1})
				}
				rs = append(rs, r)
			}
			b.run(rs...)
			for n, r := range rs {
				r.gets(1, min(int64(n), 5), 5)
			}
			for n, r := range rs {
				b.write("t", int32(n), 3, 1)
				r.gets(1, min(int64(n), 5), 8)
				if r.until("the end", func() bool { return r.end == 8 }); len(r.failures)+len(r.gaps) > 0 {
					t.Errorf("failures %v, gaps %v", r.failures, r.gaps)
				}
			}
		})
	}
}

func TestWhatAnEarlierGenerationAskedForIsDropped(t *testing.T) {
	b := newBench(t)
	b.create("t", 1)
	b.write("t", 0, 4, 1)
	asked, answered := make(chan struct{}), make(chan struct{})
	var n atomic.Int64
	b.control(func(_ int32, q *kmsg.FetchRequest) *kmsg.FetchResponse {
		if n.Add(1) == 1 {
			close(asked)
			b.SleepControl(func() { <-answered })
		}
		return nil
	})
	r := b.reader("t", 0, 0)
	b.run(r)
	<-asked
	r.start(3, 2)
	r.start(2, 0) // comes too late
	close(answered)
	r.gets(3, 2, 4)
	if len(r.offsets) != 1 {
		t.Errorf("offsets by generation: %v", r.offsets)
	}
}

func TestAStopOutlivesAStartThatCameTooLate(t *testing.T) {
	b := newBench(t)
	b.create("t", 2)
	r, other := b.reader("t", 0, 0), b.reader("t", 1, 0)
	b.run(r, other)
	r.p.Stop(5)
	r.start(4, 0)
	b.write("t", 0, 1, 1)
	for n := range 3 {
		b.write("t", 1, 1, 1)
		other.gets(1, 0, int64(n+1))
	}
	if len(r.offsets) != 0 {
		t.Errorf("a stopped partition got %v", r.offsets)
	}
	r.p.Stop(4) // comes too late, too
	r.start(5, 0)
	r.gets(5, 0, 1)
}

func TestAPausedPartitionIsLeftOut(t *testing.T) {
	b := newBench(t, kfake.NumBrokers(1))
	b.create("t", 2)
	var asked, forgotten atomic.Int64 // partition 0, in the session with the broker
	var shortest atomic.Int32
	b.control(func(_ int32, q *kmsg.FetchRequest) *kmsg.FetchResponse {
		shortest.Store(q.MaxWaitMillis)
		if asksFor(q, 0) {
			asked.Add(1)
		}
		for _, t := range q.ForgottenTopics {
			if slices.Contains(t.Partitions, 0) {
				forgotten.Add(1)
			}
		}
		return nil
	})
	r, other := b.reader("t", 0, 0), b.reader("t", 1, 0)
	b.write("t", 0, 1, 1)
	b.run(r, other)
	r.gets(1, 0, 1)
	r.p.Pause()
	b.write("t", 0, 1, 1) // perhaps the request was on its way
	b.write("t", 1, 1, 1)
	other.gets(1, 0, 1)
	before := asked.Load()
	for n := range 3 {
		b.write("t", 1, 1, 1)
		other.gets(1, 0, int64(n+2))
	}
	if n := asked.Load(); n > before+1 {
		t.Errorf("a paused partition is asked for, %d times", n-before)
	}
	if n := forgotten.Load(); n != 1 {
		t.Errorf("the broker was told %d times to forget the paused partition", n)
	}
	if n := shortest.Load(); n != int32(shortPoll.Milliseconds()) {
		t.Errorf("the broker may hold a request for %d ms while one is paused", n)
	}
	r.p.Resume()
	r.gets(1, 0, 2)
}

// With tight limits only the first partition in a request gets a batch that is
// larger than they are.
func TestLargeBatchesStarveNoPartition(t *testing.T) {
	b := newBench(t, kfake.NumBrokers(1))
	b.create("t", 5)
	var rs []*reader
	for n := range int32(5) {
		for range 4 {
			b.write("t", n, 1, 300<<10) // more than the answer of a quarter of the budget
		}
		rs = append(rs, b.reader("t", n, 0))
	}
	b.run(rs...)
	for _, r := range rs {
		r.gets(1, 0, 4)
	}
}

func TestNothingIsAskedForWhileTheBudgetIsUsedUp(t *testing.T) {
	b := newBench(t, kfake.NumBrokers(1))
	b.create("t", 2)
	var asked atomic.Int64
	b.control(func(int32, *kmsg.FetchRequest) *kmsg.FetchResponse {
		asked.Add(1)
		return nil
	})
	r, other := b.reader("t", 0, 0), b.reader("t", 1, 0)
	r.keeps = true
	for range 8 {
		b.write("t", 0, 1, 250<<10)
	}
	b.run(r, other)
	r.until("a full budget", func() bool { return b.frames.InUse() > budget-250<<10 })
	b.write("t", 1, 1, 1)
	// Whatever is still asked for is not answered with data that the budget has no
	// room for.
	if n := b.frames.InUse(); n > budget {
		t.Errorf("%d bytes are in use, the budget is %d", n, budget)
	}
	if len(other.offsets[1]) != 0 {
		t.Error("the other partition was read without room for it")
	}
	r.release()
	r.gets(1, 0, 8)
	other.gets(1, 0, 1)
}

func TestABatchLargerThanTheBudgetPasses(t *testing.T) {
	b := newBench(t)
	if err := b.CreateTopic("t", 1, map[string]string{"max.message.bytes": "10000000"}); err != nil {
		t.Fatal(err)
	}
	b.write("t", 0, 1, 1)
	b.write("t", 0, 3, budget)
	b.write("t", 0, 1, 1)
	r := b.reader("t", 0, 0)
	b.run(r)
	r.gets(1, 0, 5)
}
