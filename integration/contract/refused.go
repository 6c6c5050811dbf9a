package contract

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

var refusedScenarios = []Scenario{
	{Name: "future", Real: true, Run: timestampOutOfRangeStopsItsPartitionOnly},
	{Name: "keyless", Real: true, Run: recordWithoutKeyStopsItsPartitionOnly},
	{Name: "refused-among-others", Real: true, Run: refusedBatchAmongOthersLosesNothing},
}

// refusal plays a topic with two partitions of which one has, in the middle of a
// batch, a record that the target refuses; then the target changes its mind.
func (e *Env) refusal(topic string, bad *kgo.Record, words, create string, relent func(target string)) {
	e.Helper()
	for _, codec := range []kgo.CompressionCodec{kgo.NoCompression(), kgo.Lz4Compression()} {
		client := e.Source.Client(e, kgo.ProducerBatchCompression(codec))
		e.PutWith(client, topic, Numbered(0, "good", 20)...)
	}
	client := e.Source.Client(e, kgo.ProducerBatchCompression(kgo.ZstdCompression()))
	bad.Partition = 1
	rs := append(Numbered(1, "before", 10), bad)
	e.PutWith(client, topic, append(rs, Numbered(1, "after", 5)...)...)
	for i := range 10 { // further batches, which must not overtake it
		e.PutWith(client, topic, Numbered(1, fmt.Sprint("behind-", i), 5)...)
	}

	m := e.Start(Flow{Tables: "[flows.create]\nconfigs = { " + create + " }"})
	m.Reached(topic, 0, 39)
	m.Stalled(topic, 1, 10, words)
	var want []string
	for _, r := range Numbered(1, "before", 10) {
		want = append(want, string(r.Value))
	}
	if got := e.Read(e.Target, m.TargetName(topic))[1]; len(got) != len(want) {
		e.Errorf("%d records of the stalled partition arrived, want the %d before the bad one", len(got), len(want))
	}
	// The other partition goes on.
	e.Put(e.Source, topic, Numbered(0, "more", 5)...)
	m.Reached(topic, 0, 44)
	// It is where it was after a restart, too.
	m.Stop()
	m = e.Start()
	m.Stalled(topic, 1, 10, words)

	relent(m.TargetName(topic))
	m.CaughtUp(topic)
	m.WantSame(topic)
}

func timestampOutOfRangeStopsItsPartitionOnly(e *Env) {
	topic := e.Topic("t")
	e.Create(e.Source, topic, 2, "message.timestamp.after.max.ms", "9223372036854775807")
	e.refusal(topic, &kgo.Record{Key: []byte("k"), Value: []byte("ahead"), Timestamp: time.Now().Add(5 * time.Hour)}, "timestamp",
		`"message.timestamp.after.max.ms" = "3600000"`,
		func(target string) {
			e.SetConfig(e.Target, target, "message.timestamp.after.max.ms", "9223372036854775807")
		})
}

func recordWithoutKeyStopsItsPartitionOnly(e *Env) {
	topic := e.Topic("t")
	e.Create(e.Source, topic, 2)
	e.refusal(topic, &kgo.Record{Value: []byte("no key")}, "key",
		`"cleanup.policy" = "compact"`,
		func(target string) { e.SetConfig(e.Target, target, "cleanup.policy", "delete") })
}

// Oversize is one batch that a topic with Smallest as its configs refuses: it is
// larger than a segment, which the mirror does not look at.
func Oversize() []*kgo.Record {
	var rs []*kgo.Record
	rng := rand.NewChaCha8([32]byte{5})
	for range 15 {
		v := make([]byte, 100_000)
		rng.Read(v)
		rs = append(rs, &kgo.Record{Key: []byte("large"), Value: v})
	}
	return rs
}

// Smallest are the configs of a topic that refuses Oversize.
var Smallest = []string{"segment.bytes", "1048576", "max.message.bytes", "4000000"}

// A batch is refused while others are on their way behind it. Those are refused as
// well, for the gap before them; none of them is stored in its place. What the
// target can have in another form it gets; the others wait until it relents. All of
// it goes on under one producer id with one epoch.
func refusedBatchAmongOthersLosesNothing(e *Env) {
	kinds := []struct {
		name    string
		configs []string
		bad     []*kgo.Record
		words   string // of the stall, "": the mirror can help itself
		relent  []string
	}{
		{"ahead", []string{"message.timestamp.after.max.ms", "3600000"},
			[]*kgo.Record{{Key: []byte("k"), Value: []byte("ahead"), Timestamp: time.Now().Add(5 * time.Hour)}}, "timestamp",
			[]string{"message.timestamp.after.max.ms", "9223372036854775807"}},
		{"keyless", []string{"cleanup.policy", "compact"},
			[]*kgo.Record{{Value: []byte("no key")}}, "key", []string{"cleanup.policy", "delete"}},
		{"large", Smallest, Oversize(), "", nil},
	}
	topics := make([]string, len(kinds))
	for i, k := range kinds {
		topics[i] = e.Topic(k.name)
		e.Create(e.Source, topics[i], 1, "max.message.bytes", "4000000", "message.timestamp.after.max.ms", "9223372036854775807")
		e.Create(e.Target, "src."+topics[i], 1, k.configs...)
	}
	// Compressed: what waits is not merged.
	client := e.Source.Client(e, kgo.ProducerBatchCompression(kgo.Lz4Compression()), kgo.ProducerBatchMaxBytes(4_000_000), kgo.ProducerLinger(0))
	some := func(topic, what string) {
		for i := range 4 {
			e.PutWith(client, topic, Numbered(0, fmt.Sprint(what, i), 3)...)
		}
	}
	m := e.Start()
	for _, topic := range topics {
		some(topic, "first")
	}
	m.CaughtUp(topics...)
	m.Stop() // so that what follows waits, and goes out at once
	for i, k := range kinds {
		some(topics[i], "before")
		e.PutWith(client, topics[i], k.bad...)
		some(topics[i], "behind")
	}
	m = e.Start()
	for i, k := range kinds {
		if k.words != "" {
			m.Stalled(topics[i], 0, 24, k.words)
			e.SetConfig(e.Target, "src."+topics[i], k.relent[0], k.relent[1])
		}
	}
	m.CaughtUp(topics...)
	m.WantSame(topics...)
	for _, topic := range topics {
		type producer struct {
			id    int64
			epoch int16
		}
		all := map[producer]bool{}
		for _, r := range e.Read(e.Target, "src."+topic)[0] {
			all[producer{r.ProducerID, r.ProducerEpoch}] = true
		}
		if len(all) != 1 {
			e.Errorf("%s was written by %v, want one producer", topic, all)
		}
	}
}
