package plugins

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"slices"
	"testing"
	"time"

	"mirror/abi"
)

// hooked are the guests whose hook is measured: in three languages ones that emit an
// offset sync for each entry, and the built-in plugin, which emits what it finds due.
var hooked = []struct {
	name, file string // "": the one in Go, which is built
	each       bool   // an emit for each entry
}{{"c", "testdata/syncs-c.wasm", true}, {"rust", "testdata/syncs-rust.wasm", true}, {"go", "", true}, {"built-in", "offsetsync/offsetsync.wasm", false}}

// begin starts an instance of one of hooked.
func begin(t testing.TB, name, file string) *instance {
	t.Helper()
	spec := goSpec(t, "")
	if file != "" {
		module, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if spec.Binary, err = Embedded(name, module); err != nil {
			t.Fatal(err)
		}
		spec.Config, spec.Emit.Groups = nil, true // which the built-in one needs
	}
	g := load(t, newRecord(), spec)
	t.Cleanup(g.Close)
	i, err := g.programs[0].start(context.Background(), 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(i.drop)
	return i
}

// What is measured does what it should.
func TestHooksThatAreMeasured(t *testing.T) {
	for _, guest := range hooked {
		i := begin(t, guest.name, guest.file)
		f := ranges(i.p, 100)
		for range 3 {
			emits, err := i.tell(context.Background(), f.hook, 0, 0, f.about, f.fill)
			if err != nil || guest.each && len(emits) != 100 || len(emits) == 0 {
				t.Errorf("%s: %d emits, %v", guest.name, len(emits), err)
			}
			goOn(f)
		}
	}
}

// BenchmarkHook is a call of on_commit, with ranges that go on from call to call.
func BenchmarkHook(b *testing.B) {
	for _, guest := range hooked {
		i := begin(b, guest.name, guest.file)
		for _, entries := range []int{1, 100, 1000} {
			f := ranges(i.p, entries)
			b.Run(fmt.Sprintf("%s/%d", guest.name, entries), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					emits, err := i.tell(context.Background(), f.hook, 0, 0, f.about, f.fill)
					if err != nil || guest.each && len(emits) != entries {
						b.Fatalf("%d emits, %v", len(emits), err)
					}
					goOn(f)
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*entries), "ns/entry")
			})
		}
	}
}

const (
	partitionsOfBench = 20
	recordsOfEntry    = 100
)

// ranges is a frame of so many entries of a hundred records, over twenty partitions.
func ranges(p *program, entries int) *frame {
	f := &frame{hook: abi.OnCommit}
	qs := make([]*queue, partitionsOfBench)
	for n := range qs {
		k := key(int32(n))
		qs[n] = &queue{key: k, state: newState(k, p), view: Event{TargetTopic: "a.t"}}
	}
	for n := range entries {
		q := qs[n%partitionsOfBench]
		first := int64(n/partitionsOfBench) * recordsOfEntry
		r := copied(first, first+recordsOfEntry-1)
		f.addRange(q, &r)
	}
	return f
}

// goOn makes the frame that comes after f.
func goOn(f *frame) {
	by := int64((len(f.about)+partitionsOfBench-1)/partitionsOfBench) * recordsOfEntry
	for _, r := range f.ranges {
		r.First, r.Last, r.TargetFirst, r.TargetLast = r.First+by, r.Last+by, r.TargetFirst+by, r.TargetLast+by
	}
}

// BenchmarkStall is how long a guest that is busy until its deadline keeps another
// goroutine from going on: one that waits for the world to stop, as each garbage
// collection does. "nobody" is the same without a guest, what the machine adds.
// worst-ms is the longest of all calls, usual-ms the median of each call's. The
// bound itself, in work between two looks at the clock, is wasm's TestLooksAreNear.
func BenchmarkStall(b *testing.B) {
	for _, does := range []string{"nobody", "loop", "fill", "random"} {
		b.Run(does, func(b *testing.B) {
			var all []time.Duration
			for b.Loop() {
				all = append(all, stall(b, does))
			}
			slices.Sort(all)
			b.ReportMetric(float64(all[len(all)-1].Microseconds())/1e3, "worst-ms")
			b.ReportMetric(float64(all[len(all)/2].Microseconds())/1e3, "usual-ms")
			b.ReportMetric(0, "ns/op")
		})
	}
}

// stall is the longest of the collections during one call of a guest.
func stall(b *testing.B, what string) (longest time.Duration) {
	const busy = 200 * time.Millisecond
	ended := make(chan error, 1)
	if what == "nobody" {
		time.AfterFunc(busy, func() { ended <- nil })
	} else {
		s := does(b, "p", "commit", what)
		s.Limits.Call = busy
		g := load(b, newRecord(), s)
		defer g.Close()
		i, err := g.programs[0].start(context.Background(), 0)
		if err != nil {
			b.Fatal(err)
		}
		defer i.drop()
		f := ranges(g.programs[0], 1)
		go func() {
			_, err := i.tell(context.Background(), f.hook, 0, 0, f.about, f.fill)
			ended <- err
		}()
	}
	for {
		select {
		case err := <-ended:
			if failure, _ := asFailure(err); what != "nobody" && (failure == nil || failure.Status != abi.Deadline) {
				b.Fatalf("%v, want the deadline", err)
			}
			return longest
		default:
		}
		began := time.Now()
		runtime.GC()
		longest = max(longest, time.Since(began))
	}
}

// BenchmarkAcknowledged is what a batch costs on its way.
func BenchmarkAcknowledged(b *testing.B) {
	l := newBench(b, does(b, "p"))
	l.assign(0)
	b.ReportAllocs()
	next := int64(10)
	for b.Loop() {
		l.Acknowledged(key(0), copied(next, next+99))
		next += 100
	}
}

// BenchmarkInstantiate is a fresh instance, as after a trap.
func BenchmarkInstantiate(b *testing.B) {
	for name, spec := range map[string]Spec{"c": does(b, "p"), "go": goSpec(b, "")} {
		g := load(b, newRecord(), spec)
		defer g.Close()
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				s, err := g.Instantiate(context.Background(), 0)
				if err != nil {
					b.Fatal(err)
				}
				s.Close()
			}
		})
	}
}
