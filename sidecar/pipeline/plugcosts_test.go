package pipeline

import (
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"mirror/sidecar/config"
	"mirror/sidecar/state"
)

// costs counts what a flow has, or does, for its plugins and for what follows them.
type costs struct {
	generations, instances, calls int
	topics                        int // that it has made beside the positions' and the copies
	producers                     int // ids that it has asked for, for clients that write and for partitions
	clients                       int // of either cluster
	goroutines                    int // in all, those of clients and of the clusters' ends too
	asked                         int // requests about groups
}

// costs runs a flow that copies some records, and counts.
func (l *lab) costs(on bool) (c costs) {
	l.Helper()
	var producers, asked atomic.Int64
	l.target.counts(&producers, kmsg.InitProducerID)
	l.source.counts(&asked, kmsg.ListGroups, kmsg.OffsetFetch, kmsg.FindCoordinator)
	l.source.create("t", 1)
	l.source.write("t", 0, values("t", 0, 5)...)
	clients, all := openClients(), runtime.NumGoroutine()
	r := l.start()
	l.copied("t", 0, values("t", 0, 5)...)
	l.saved("t", 0, 4)
	if on {
		l.synced("t", 4, 4)
		eventually(l.T, "groups to be looked at", func() string {
			if asked.Load() == 0 {
				return "nobody asks"
			}
			return ""
		})
	}
	c = costs{
		generations: int(r.generations.Load()), producers: int(producers.Load()), asked: int(asked.Load()),
		clients: openClients() - clients, goroutines: runtime.NumGoroutine() - all,
	}
	for _, lane := range r.lanes {
		if lane.hooks.Load() != nil {
			c.instances++
		}
	}
	for _, p := range r.Status().Plugins {
		for _, n := range p.Calls {
			c.calls += int(n)
		}
	}
	r.stop()
	for _, name := range []string{syncsTopic, state.TopicName("A", config.OffsetSyncPlugin, "."), "A.checkpoints.internal"} {
		if l.target.TopicInfo(name) != nil {
			c.topics++
		}
	}
	return c
}

// counts counts requests.
func (s *side) counts(n *atomic.Int64, keys ...kmsg.Key) {
	for _, key := range keys {
		s.ControlKey(key.Int16(), func(kmsg.Request) (kmsg.Response, error, bool) {
			s.KeepControl()
			n.Add(1)
			return nil, nil, false
		})
	}
}

// openClients counts the clients of the process: each has one such goroutine.
func openClients() int {
	stacks := make([]byte, 8<<20)
	return strings.Count(string(stacks[:runtime.Stack(stacks, true)]), "kgo.(*Client).updateMetadataLoop(")
}

// flowOf is what a file with that text at its end says of plugins and checkpoints.
func flowOf(t *testing.T, text string) func(*config.Flow) {
	t.Helper()
	c, err := config.Parse("mirror.toml", []byte("[clusters.A]\nbootstrap = ['a:1']\n[clusters.B]\nbootstrap = ['b:1']\n[[flows]]\nfrom = 'A'\nto = 'B'\n"+text), os.LookupEnv)
	if err != nil {
		t.Fatal(err)
	}
	return func(f *config.Flow) {
		f.Plugins, f.OffsetSyncs, f.Groups, f.Checkpoints = c.Flows[0].Plugins, c.Flows[0].OffsetSyncs, c.Flows[0].Groups, c.Flows[0].Checkpoints
	}
}

// Switched off in the file the built-in plugin has no instance, no call, no topic, no
// client that writes, no goroutine, and nobody asks about groups. Each is counted beside a
// flow that has it on.
func TestSwitchedOffCostsNothing(t *testing.T) {
	on := newLab(t, flowOf(t, "")).costs(true)
	off := newLab(t, flowOf(t, "[[flows.plugins]]\nname = 'offset-sync'\nenabled = false\n")).costs(false)
	t.Logf("on %+v, off %+v", on, off)
	// What is left is the store of positions, and the one partition's producer.
	if want := (costs{producers: 2, clients: 1, goroutines: off.goroutines}); off != want {
		t.Errorf("switched off it costs %+v, want %+v", off, want)
	}
	for what, n := range map[string][2]int{
		"generations": {on.generations, off.generations}, "instances": {on.instances, off.instances}, "calls": {on.calls, off.calls}, "topics": {on.topics, off.topics},
		"producers": {on.producers, off.producers}, "clients": {on.clients, off.clients}, "goroutines": {on.goroutines, off.goroutines}, "requests about groups": {on.asked, off.asked},
	} {
		if n[0] <= n[1] {
			t.Errorf("%s: %d switched on and %d off, so they are not counted", what, n[0], n[1])
		}
	}
}

// A plugin that is slow slows down: what waits for it of a partition is bounded, for that
// is not fetched meanwhile. Others are, and nothing is lost.
func TestASlowPluginPausesItsPartition(t *testing.T) {
	l := newLab(t, offsetSync)
	l.source.create("t", 1)
	l.source.create("other", 2*(maxLanes*heldTogether/heldMost)) // so many that a partition may have no more than heldMost
	all := values("t", 0, 1)
	l.source.write("t", 0, all...)
	r := l.start()
	l.synced("t", 0, 0)
	release, asked := l.target.hold(t, syncsTopic)
	write := func(name string, n int) {
		more := values(name, 0, n)
		l.source.transactions("t", true, slices.Collect(slices.Chunk(more, 1))...) // each a range and a marker
		all = append(all, more...)
	}
	write("held", 1)
	<-asked // from now on nothing is flushed
	write("waiting", heldMost/2+10)
	eventually(t, "a pause", func() string {
		l.source.write("t", 0, "more") // with what comes it is noticed that too much waits
		all = append(all, "more")
		for _, p := range r.all() {
			if p.key.Topic == "t" && p.heldBy.Load() != nil {
				return ""
			}
		}
		return "it is fetched"
	})
	l.source.write("t", 0, "late") // which may still answer the request that is under way
	for n := range 5 {
		l.source.write("other", 0, fmt.Sprint("o-", n))
		l.copied("other", 0, values("o", 0, n+1)...)
		if n == 0 {
			l.source.write("t", 0, "later")
		}
	}
	if there := l.target.values("A.t", 0); slices.Contains(there, "later") {
		t.Error("records are copied while the plugin is slow")
	}
	if w := r.Status().Plugins[0].Waiting; w < heldMost {
		t.Errorf("%d ranges wait", w)
	}
	release()
	l.copied("t", 0, append(all, "late", "later")...)
	end := l.source.PartitionInfo("t", 0).HighWatermark
	l.saved("t", 0, end-1)
	l.synced("t", end-1, int64(len(all)+1))
	r.stop()
}
