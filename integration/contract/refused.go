package contract

import (
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

var refusedScenarios = []Scenario{
	{Name: "future", Real: true, Run: timestampOutOfRangeStopsItsPartitionOnly},
	{Name: "keyless", Real: true, Run: recordWithoutKeyStopsItsPartitionOnly},
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
