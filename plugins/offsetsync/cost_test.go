package offsetsync

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sort"
	"testing"

	"mirror/plugins"
)

// topics are kinds of topics, as what a partition is told of so many records.
var topics = []struct {
	name string
	tell func(h *hosted, k plugins.Key, records int, flush func(pieces int))
}{
	{"plain", func(h *hosted, k plugins.Key, records int, flush func(int)) {
		for i := range int64(records) / 1000 {
			h.Acknowledged(k, stored(1000*i, 1000*i+999, 1000*i))
			flush(1)
		}
	}},
	{"compacted", func(h *hosted, k plugins.Key, records int, flush func(int)) {
		r := rand.New(rand.NewPCG(1, 2)) // a third of the offsets are missing
		src, dst := int64(0), int64(0)
		for dst < int64(records) {
			first := src
			for r.IntN(3) > 0 {
				src++
			}
			if n := src - first; n > 0 {
				h.Acknowledged(k, stored(first, src-1, dst))
				dst += n
				flush(1)
			}
			h.Acknowledged(k, marker(src, src))
			src++
		}
	}},
	{"transactional", func(h *hosted, k plugins.Key, records int, flush func(int)) {
		for i := range int64(records) / 10 {
			h.Acknowledged(k, stored(11*i, 11*i+9, 10*i))
			h.Acknowledged(k, marker(11*i+10, 11*i+10))
			flush(1)
		}
	}},
}

// mirror has a kind of topic mirrored, with a flush each so many runs. It says how many
// runs there were.
func (h *hosted) mirror(topic, records, each int) (runs int) {
	k := plugins.Key{Topic: "t"}
	h.assign(k, -1, 0)
	topics[topic].tell(h, k, records, func(n int) {
		if runs += n; runs%each == 0 {
			h.round(true)
		} else if runs%100 == 0 {
			h.round(false)
		}
	})
	h.round(true)
	return runs
}

// BenchmarkState says what a million mirrored records leave in the state, and what is
// written on the way, with a flush each 10, 100 and 1,000 runs.
func BenchmarkState(b *testing.B) {
	for n, topic := range topics {
		for _, each := range []int{10, 100, 1000} {
			b.Run(fmt.Sprintf("%s/flush=%d", topic.name, each), func(b *testing.B) {
				for b.Loop() {
					h := host(b, map[string]any{"mm2_syncs": false})
					runs := h.mirror(n, 1_000_000, each)
					keys, bytes := h.store.size()
					b.ReportMetric(float64(runs), "runs")
					b.ReportMetric(float64(keys), "keys")
					b.ReportMetric(float64(bytes), "state-bytes")
					b.ReportMetric(float64(bytes)/float64(max(1, runs)), "bytes/run")
					b.ReportMetric(float64(h.store.records), "records-written")
					b.ReportMetric(float64(h.store.bytes), "bytes-written")
				}
			})
		}
	}
}

// What is measured stays within bounds: two to three bytes for each run, and a chunk for
// each two thousand of them.
func TestCost(t *testing.T) {
	records := 200_000
	if interpreted {
		records = 20_000
	}
	for n, topic := range topics {
		h := host(t, map[string]any{"mm2_syncs": false})
		runs := h.mirror(n, records, 100)
		if n == 0 {
			runs = 1 // they all go on where the one before ended
		}
		keys, bytes := h.store.size()
		t.Logf("%s: %d runs, %d keys, %d bytes; written: %d records, %d bytes", topic.name, runs, keys, bytes, h.store.records, h.store.bytes)
		if bytes > 60+3*runs || keys > 20+runs/1000 {
			t.Errorf("%s: %d keys, %d bytes for %d runs", topic.name, keys, bytes, runs)
		}
		if flushes := runs/100 + records/100_000 + 1; h.store.bytes > 8*runs+600*flushes {
			t.Errorf("%s: %d bytes were written for %d runs and %d flushes", topic.name, h.store.bytes, runs, flushes)
		}
	}
}

// nowhere is a sink that has written everything at once.
type nowhere struct{}

func (nowhere) Produce(context.Context, string, []plugins.Emit) error { return nil }

// BenchmarkTransactions is the time for a transaction of ten records, in a lane of eight
// partitions: telling of its records and of its marker, the hook, and with each thousandth
// of a partition a flush.
func BenchmarkTransactions(b *testing.B) {
	h := host(b, nil)
	h.Lane = plugins.NewLane(h.load(), nowhere{})
	keys := make([]plugins.Key, 8)
	for n := range keys {
		keys[n] = plugins.Key{Topic: "orders.transactions", Partition: int32(n)}
		h.assign(keys[n], -1, 0)
	}
	b.ReportAllocs()
	for i := int64(0); b.Loop(); i++ {
		n := i / 8
		h.Acknowledged(keys[i%8], stored(11*n, 11*n+9, 10*n), marker(11*n+10, 11*n+10))
		if i%1000 == 999 {
			h.round(i%8000 == 7999)
		}
	}
}

// BenchmarkGroups is the time for a group a hundred thousand runs behind.
func BenchmarkGroups(b *testing.B) {
	h := host(b, map[string]any{"mm2_syncs": false})
	h.mirror(2, 1_000_000, 1000)
	r := rand.New(rand.NewPCG(1, 2))
	asked := make([]plugins.GroupOffset, 10_000)
	for i := range asked {
		asked[i] = plugins.GroupOffset{Key: plugins.Key{Topic: "t"}, Group: "g", Offset: r.Int64N(1_100_000), LeaderEpoch: -1}
	}
	for b.Loop() {
		if _, err := h.Groups(b.Context(), asked); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(asked)), "ns/group")
}

// BenchmarkRepeats says what groups repeat after so many transactions of ten records,
// past the usual limit of a partition's state: how far behind all are exact, how far none
// repeats more than 31 transactions, and what is repeated in all, at most and on average.
func BenchmarkRepeats(b *testing.B) {
	for _, runs := range []int64{3_000_000, 10_000_000, 30_000_000, 100_000_000} {
		b.Run(fmt.Sprintf("runs=%d", runs), func(b *testing.B) {
			h := host(b, map[string]any{"mm2_syncs": false})
			h.mirror(2, 10*int(runs), 1000)
			// repeats are those of groups in a transaction each.
			repeats := func(transactions []int64) (worst, sum int64) {
				var asked []plugins.GroupOffset
				for _, i := range transactions {
					asked = append(asked, plugins.GroupOffset{Key: plugins.Key{Topic: "t"}, Group: "g", Offset: 11*i + i%11, LeaderEpoch: -1})
				}
				got, err := h.Groups(b.Context(), asked)
				if err != nil {
					b.Fatal(err)
				}
				for i, a := range asked {
					n := 10*(a.Offset/11) + a.Offset%11 - got[i].Offset
					if n < 0 || got[i].Offset < 0 {
						b.Fatalf("offset %d becomes %+v", a.Offset, got[i])
					}
					worst, sum = max(worst, n), sum+n
				}
				return worst, sum
			}
			// reach is how far behind groups do not repeat more.
			reach := func(most int64) float64 {
				return float64(sort.Search(int(runs)-4096, func(behind int) bool {
					some := make([]int64, 4096)
					for i := range some {
						some[i] = runs - 1 - int64(behind) - int64(i)
					}
					worst, _ := repeats(some)
					return worst > most
				}))
			}
			for b.Loop() {
				b.ReportMetric(reach(0), "exact-behind")
				b.ReportMetric(reach(310), "310-behind")
				anywhere := make([]int64, 50_000)
				r := rand.New(rand.NewPCG(3, 4))
				for i := range anywhere {
					anywhere[i] = r.Int64N(runs)
				}
				worst, sum := repeats(anywhere)
				b.ReportMetric(float64(worst), "most-repeated")
				b.ReportMetric(float64(sum)/float64(len(anywhere)), "repeated")
			}
		})
	}
}

// BenchmarkCommit is the time of a frame of transactions, with what is kept of them and
// without.
func BenchmarkCommit(b *testing.B) {
	for _, translate := range []bool{false, true} {
		b.Run(fmt.Sprintf("translate=%v", translate), func(b *testing.B) {
			h := host(b, map[string]any{"translate": translate})
			k, i := plugins.Key{Topic: "t"}, int64(0)
			h.assign(k, -1, 0)
			h.round(false)
			for b.Loop() {
				for range 500 {
					h.Acknowledged(k, stored(11*i, 11*i+9, 10*i))
					h.Acknowledged(k, marker(11*i+10, 11*i+10))
					i++
				}
				h.round(i%5000 == 0)
			}
		})
	}
}
