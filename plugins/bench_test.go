package plugins

import (
	"context"
	"fmt"
	"os"
	"testing"

	"mirror/abi"
)

// BenchmarkHook is a call of on_commit that emits an offset sync for each entry. (The
// contract's own trial emitted once a call.)
func BenchmarkHook(b *testing.B) {
	for _, guest := range []string{"c", "rust", "go"} {
		spec := goSpec(b, "")
		if guest != "go" {
			file, err := os.ReadFile("testdata/syncs-" + guest + ".wasm")
			if err != nil {
				b.Fatal(err)
			}
			if spec.Binary, err = Embedded(guest, file); err != nil {
				b.Fatal(err)
			}
		}
		g := load(b, newRecord(), spec)
		defer g.Close()
		i, err := g.programs[0].start(context.Background(), 0)
		if err != nil {
			b.Fatal(err)
		}
		for _, entries := range []int{1, 100, 1000} {
			f := &frame{hook: abi.OnCommit}
			for n := range entries {
				q := &queue{key: key(int32(n % 20)), view: Event{TargetTopic: "a.t"}}
				f.addRange(q, copied(int64(n/20)*100, int64(n/20)*100+99))
			}
			b.Run(fmt.Sprintf("%s/%d", guest, entries), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					emits, err := i.tell(context.Background(), f.hook, 0, 0, f.keys, f.fill)
					if err != nil || len(emits) != entries {
						b.Fatalf("%d emits, %v", len(emits), err)
					}
				}
			})
		}
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
