package fetch

import (
	"slices"
	"sync"
	"testing"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"
)

func TestShare(t *testing.T) {
	for _, c := range []struct {
		bytes, partitions int
		want              int32
	}{
		{4 << 20, 0, 4 << 20},
		{4 << 20, 1, 4 << 20},
		{4 << 20, 3, 1 << 20},
		{4 << 20, 8, 512 << 10},
		{4 << 20, 1000, leastShare},
		{quietBytes, 1000, quietBytes},
	} {
		if got := share(c.bytes, c.partitions); got != c.want {
			t.Errorf("one of %d partitions may take %d of %d bytes, want %d", c.partitions, got, c.bytes, c.want)
		}
	}
}

// TestPartitionsWithoutDataGetALinkOfTheirOwn: what has data is not slowed down by
// all that has none, and what gets data again joins it.
func TestPartitionsWithoutDataGetALinkOfTheirOwn(t *testing.T) {
	b := newBench(t, kfake.NumBrokers(1))
	b.create("t", crowd+8)
	var rs []*reader
	for n := range int32(crowd + 8) {
		rs = append(rs, b.reader("t", n, 0))
	}
	b.run(rs...)
	written := int64(0)
	members := func(quiet bool) int {
		b.fetcher.mu.Lock()
		l := b.fetcher.links[place{b.LeaderFor("t", 0), quiet}]
		b.fetcher.mu.Unlock()
		if l == nil {
			return 0
		}
		l.mu.Lock()
		defer l.mu.Unlock()
		return len(l.members)
	}
	rs[3].until("the first link has no crowd", func() bool {
		b.write("t", 3, 1, 1)
		written++
		return members(false) <= crowd && members(false)+members(true) == crowd+8
	})
	rs[3].gets(1, 0, written)
	if rs[3].p.isQuiet() {
		t.Error("partition 3, which has data, is on the link of the quiet")
	}
	n := int32(slices.IndexFunc(rs, func(r *reader) bool { return r.p.isQuiet() }))
	quiet := members(true)
	b.write("t", n, 1, 1)
	rs[n].gets(1, 0, 1)
	rs[n].until("it has left the link of the quiet", func() bool { return members(true) == quiet-1 })
	b.write("t", n, 1, 1)
	rs[n].gets(1, 0, 2)
}

// TestALargeBatchWidensItsPartitionsShare: of a partition whose batches are larger
// than its share nothing would come but when it is asked for first.
func TestALargeBatchWidensItsPartitionsShare(t *testing.T) {
	b := newBench(t, kfake.NumBrokers(1))
	b.create("t", 1)
	var mu sync.Mutex
	var asked []int32
	b.control(func(_ int32, q *kmsg.FetchRequest) *kmsg.FetchResponse {
		mu.Lock()
		defer mu.Unlock()
		for _, t := range q.Topics {
			for _, p := range t.Partitions {
				asked = append(asked, p.PartitionMaxBytes)
			}
		}
		return nil
	})
	r := b.reader("t", 0, 0)
	b.write("t", 0, 1, 900_000)
	b.run(r)
	r.gets(1, 0, 1)
	r.until("a larger share is asked for", func() bool {
		mu.Lock()
		defer mu.Unlock()
		return asked[0] == budget/4 && slices.Contains(asked, budget)
	})
}
