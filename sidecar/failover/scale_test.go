package failover

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// crowd answers for many groups, that each have an offset of every partition of a
// topic, and takes checkpoints and commits without keeping them: what is in memory is
// the mirror's.
type crowd struct {
	l                  *lab
	groups, partitions int
	offset             atomic.Int64 // that all of them have
	lists, fetches     atomic.Int64
	written            atomic.Int64 // batches of checkpoints
}

func newCrowd(t testing.TB, groups, partitions int) *crowd {
	c := &crowd{l: newLabOf(t, newSide(t, "A"), newSide(t, "B")), groups: groups, partitions: partitions}
	c.l.mirrors("t", int32(partitions))
	c.offset.Store(1000)
	s := c.l.source.Cluster
	s.ControlKey(kmsg.ListGroups.Int16(), func(r kmsg.Request) (kmsg.Response, error, bool) {
		s.KeepControl()
		c.lists.Add(1)
		resp := r.ResponseKind().(*kmsg.ListGroupsResponse)
		for n := range c.groups {
			if name := fmt.Sprintf("group-%05d", n); s.CoordinatorFor(name) == s.CurrentNode() {
				g := kmsg.NewListGroupsResponseGroup()
				g.Group, g.ProtocolType, g.GroupState, g.GroupType = name, "consumer", "Empty", "classic"
				resp.Groups = append(resp.Groups, g)
			}
		}
		return resp, nil, true
	})
	id := c.l.partitions[0].SourceID
	s.ControlKey(kmsg.OffsetFetch.Int16(), func(r kmsg.Request) (kmsg.Response, error, bool) {
		s.KeepControl()
		c.fetches.Add(1)
		return c.fetch(r.(*kmsg.OffsetFetchRequest), id), nil, true
	})
	b := c.l.target.Cluster
	b.ControlKey(kmsg.Produce.Int16(), func(r kmsg.Request) (kmsg.Response, error, bool) {
		b.KeepControl()
		c.written.Add(1)
		return stored(r.(*kmsg.ProduceRequest)), nil, true
	})
	return c
}

func (c *crowd) fetch(req *kmsg.OffsetFetchRequest, id [16]byte) kmsg.Response {
	resp := req.ResponseKind().(*kmsg.OffsetFetchResponse)
	for _, rg := range req.Groups {
		g := kmsg.NewOffsetFetchResponseGroup()
		g.Group = rg.Group
		t := kmsg.NewOffsetFetchResponseGroupTopic()
		t.Topic, t.TopicID = "t", id
		for n := range c.partitions {
			p := kmsg.NewOffsetFetchResponseGroupTopicPartition()
			p.Partition, p.Offset, p.Metadata = int32(n), c.offset.Load(), kmsg.StringPtr("")
			t.Partitions = append(t.Partitions, p)
		}
		g.Topics = append(g.Topics, t)
		resp.Groups = append(resp.Groups, g)
	}
	return resp
}

// stored is the answer to a produce request that says that all is stored.
func stored(req *kmsg.ProduceRequest) kmsg.Response {
	resp := req.ResponseKind().(*kmsg.ProduceResponse)
	for _, rt := range req.Topics {
		t := kmsg.NewProduceResponseTopic()
		t.Topic, t.TopicID = rt.Topic, rt.TopicID
		for _, rp := range rt.Partitions {
			p := kmsg.NewProduceResponseTopicPartition()
			p.Partition = rp.Partition
			t.Partitions = append(t.Partitions, p)
		}
		resp.Topics = append(resp.Topics, t)
	}
	return resp
}

// heap is what is in use, garbage left out.
func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// heapPeak finds the most that the heap grows to, garbage and all.
func heapPeak() (most func() int64) {
	var peak int64
	var watching sync.WaitGroup
	ctx, stop := context.WithCancel(context.Background())
	watching.Go(func() {
		tick := time.NewTicker(5 * time.Millisecond)
		defer tick.Stop()
		for {
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			peak = max(peak, int64(m.HeapAlloc))
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
		}
	})
	return func() int64 { stop(); watching.Wait(); return peak }
}

// What is remembered is small for each checkpoint, and what a round needs beside that does
// not grow with the number of groups.
func TestManyGroupsAreBounded(t *testing.T) {
	const groups, partitions, each, brokers = 400, 200, 48, 3
	c := newCrowd(t, groups, partitions)
	e := c.l.engine()
	before := heap()
	c.l.once(e)
	if kept := heap() - before; kept > groups*partitions*each+2<<20 {
		t.Errorf("%d bytes are kept for %d checkpoints", kept, groups*partitions)
	}
	if n := e.Status().Checkpoints; n != groups*partitions {
		t.Errorf("%d checkpoints, want %d", n, groups*partitions)
	}
	// One request for each chunk, and one more where it crosses from one broker to the next.
	most := int64(groups*partitions/chunkOffsets + 2*brokers)
	if lists, fetches := c.lists.Load(), c.fetches.Load(); lists != brokers || fetches > most {
		t.Errorf("%d requests for groups and %d for their offsets", lists, fetches)
	}
}

// BenchmarkGroups has 5,000 groups with 200 offsets each: what the first round keeps and
// grows to, and what each further one takes in which all of them have moved.
func BenchmarkGroups(b *testing.B) {
	const groups, partitions = 5000, 200
	c := newCrowd(b, groups, partitions)
	e := c.l.engine()
	before := heap()
	most := heapPeak()
	c.l.once(e)
	first, kept := most()-before, heap()-before
	most = heapPeak()
	c.fetches.Store(0)
	b.ResetTimer()
	for range b.N {
		c.offset.Add(10)
		c.l.once(e)
	}
	b.StopTimer()
	b.ReportMetric(float64(most()-before)/1e6, "MB-peak")
	b.ReportMetric(float64(first)/1e6, "MB-peak-first")
	b.ReportMetric(float64(kept)/1e6, "MB-kept")
	b.ReportMetric(float64(c.fetches.Load())/float64(b.N), "fetches/round")
	b.ReportMetric(b.Elapsed().Seconds()/float64(b.N)*1e9/(groups*partitions), "ns/offset")
}
