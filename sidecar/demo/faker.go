package demo

import (
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"strings"

	"github.com/twmb/franz-go/pkg/kgo"
)

// faker makes up records. The same seed makes the same records.
type faker struct {
	*rand.Rand
	partitions int32
	n          int // records made so far
}

func newFaker(seed uint64, partitions int32) *faker {
	return &faker{Rand: rand.New(rand.NewPCG(seed, 0)), partitions: partitions}
}

// customers is how many keys the compacted topic has, so that most records
// supersede another one.
const customers = 500

func (f *faker) pick(words ...string) string { return words[f.IntN(len(words))] }

// keyed puts records of one key into one partition.
func (f *faker) keyed(key, value string) *kgo.Record {
	h := fnv.New32a()
	h.Write([]byte(key))
	return &kgo.Record{Partition: int32(h.Sum32() % uint32(f.partitions)), Key: []byte(key), Value: []byte(value)}
}

func (f *faker) order() *kgo.Record {
	f.n++
	id := f.IntN(10_000)
	var items strings.Builder
	for i := range 1 + f.IntN(4) {
		if i > 0 {
			items.WriteByte(',')
		}
		fmt.Fprintf(&items, `{"sku":"%08x","name":%q,"quantity":%d,"cents":%d}`, f.Uint32(), f.pick("chair", "lamp", "desk", "shelf", "rug"), 1+f.IntN(3), f.IntN(50_000))
	}
	r := f.keyed(fmt.Sprintf("customer-%d", id), fmt.Sprintf(`{"order":%d,"customer":%d,"items":[%s]}`, f.n, id, items.String()))
	r.Headers = []kgo.RecordHeader{
		{Key: "trace", Value: fmt.Appendf(nil, "%016x", f.Uint64())},
		{Key: "content-type", Value: []byte("application/json")},
	}
	return r
}

func (f *faker) click() *kgo.Record {
	f.n++
	return &kgo.Record{Partition: f.Int32N(f.partitions),
		Value: fmt.Appendf(nil, `{"page":"/%s/%d","ms":%d}`, f.pick("shop", "blog", "help"), f.IntN(1000), f.IntN(2000))}
}

// customer is a profile, and now and then a tombstone. The first record of
// each partition is never superseded: kfake moves the start of a log to the
// oldest record that its cleaner keeps, and would overtake those who read.
func (f *faker) customer() *kgo.Record {
	n := f.n
	f.n++
	if n < int(f.partitions) {
		return &kgo.Record{Partition: int32(n), Key: fmt.Appendf(nil, "founder-%d", n), Value: []byte(`{"since":2009}`)}
	}
	id := f.IntN(customers)
	r := f.keyed(fmt.Sprintf("customer-%d", id), fmt.Sprintf(`{"id":%d,"visits":%d,"plan":%q}`, id, n, f.pick("free", "team", "company")))
	if f.IntN(20) == 0 {
		r.Value = nil
	}
	return r
}

func (f *faker) payment() *kgo.Record {
	f.n++
	account := f.IntN(5000)
	return f.keyed(fmt.Sprintf("account-%d", account), fmt.Sprintf(`{"payment":"%016x","account":%d,"cents":%d,"currency":%q}`,
		f.Uint64(), account, f.IntN(1_000_000), f.pick("EUR", "USD", "JPY", "PLN")))
}

func (f *faker) logLine() *kgo.Record {
	f.n++
	return &kgo.Record{Partition: f.Int32N(f.partitions), Value: fmt.Appendf(nil,
		"level=%s service=%s request=%016x path=/api/v1/%s/%d status=%d took=%dms message=%q",
		f.pick("info", "info", "info", "warn", "error"), f.pick("cart", "search", "login"), f.Uint64(),
		f.pick("items", "users", "sessions"), f.IntN(100_000), 200+100*f.IntN(4), f.IntN(900), "request was handled by the upstream pool")}
}

// oddity goes in turn through what is easily confused on the way.
func (f *faker) oddity() *kgo.Record {
	n := f.n
	f.n++
	key, value := fmt.Appendf(nil, "key-%d", n), fmt.Appendf(nil, "value-%d", n)
	r := &kgo.Record{Partition: f.Int32N(f.partitions), Key: key, Value: value}
	switch n % 10 {
	case 0:
		r.Key, r.Value = nil, nil
	case 1:
		r.Key, r.Value = []byte{}, []byte{}
	case 2:
		r.Value = nil
	case 3:
		r.Value = []byte{}
	case 4:
		r.Key = nil
	case 5:
		r.Headers = []kgo.RecordHeader{{Key: "null", Value: nil}, {Key: "empty", Value: []byte{}}}
	case 6:
		r.Headers = []kgo.RecordHeader{{Key: "same", Value: []byte("1")}, {Key: "same", Value: []byte("2")}, {Key: "", Value: []byte("no name")}}
	case 7:
		r.Value = []byte{0, 1, 2, 0xfd, 0xfe, 0xff}
	case 8:
		if n%400 == 8 {
			r.Value = make([]byte, 60_000)
		}
	}
	return r
}
