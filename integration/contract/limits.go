package contract

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

var limitScenarios = []Scenario{
	{Name: "many-partitions", Run: manyPartitionsShareLittleMemory},
	{Name: "large-batch", Run: batchLargerThanTheBudgetPassesAlone},
}

// heavyScenarios are for real brokers: one in the process forgets aborted
// transactions where it cuts an answer, and under the race detector the bomb takes
// minutes.
var heavyScenarios = []Scenario{
	{Name: "big-transactions", Real: true, Run: transactionsOverManyAnswers},
	{Name: "bomb", Real: true, Run: batchTooLargeToBeOpenedStopsItsPartition},
}

// With memory for one batch at a time, every partition gets its turn.
func manyPartitionsShareLittleMemory(e *Env) {
	topic := e.Topic("t")
	const partitions = 100
	e.Create(e.Source, topic, partitions)
	rng := rand.NewChaCha8([32]byte{3})
	var rs []*kgo.Record
	for p := range int32(partitions) {
		for n := range 8 {
			v := make([]byte, 20_000)
			rng.Read(v)
			rs = append(rs, &kgo.Record{Partition: p, Key: fmt.Appendf(nil, "%d-%d", p, n), Value: v})
		}
	}
	e.Put(e.Source, topic, rs...)
	m := e.Start(Flow{Keys: `memory = "1MiB"`})
	m.CaughtUp(topic)
	m.WantSame(topic)
	if s := m.Status(); s.MemoryLimit != 1<<20 {
		e.Errorf("the memory limit is %d, want a MiB", s.MemoryLimit)
	}
}

// Transactions of several producers that are open over many answers of the
// source, so that each answer has to be judged by its own list of aborted ones.
func transactionsOverManyAnswers(e *Env) {
	topic := e.Topic("t")
	e.Create(e.Source, topic, 2)
	rng := rand.New(rand.NewPCG(5, 6))
	producers := []*kgo.Client{e.transactional("a"), e.transactional("b"), e.transactional("c")}
	inside := make([]bool, len(producers))
	for step := range 240 {
		i := rng.IntN(len(producers))
		if !inside[i] {
			e.begin(producers[i])
			inside[i] = true
		}
		v := make([]byte, 60_000)
		for j := range v {
			v[j] = byte(rng.Uint32())
		}
		e.PutWith(producers[i], topic, &kgo.Record{Partition: int32(step % 2), Key: fmt.Appendf(nil, "%d", step), Value: v})
		if rng.IntN(12) == 0 {
			e.end(producers[i], rng.IntN(2) == 0)
			inside[i] = false
		}
	}
	for i, client := range producers {
		if inside[i] {
			e.end(client, i == 0)
		}
	}
	e.Settled(topic)
	m := e.Start(Flow{Keys: `memory = "1MiB"`})
	m.CaughtUp(topic)
	m.WantSame(topic)
}

// A batch that is larger than all memory there is passes once nothing else is
// held, and what comes with it and after it does too. How large an answer is shows
// only when it comes, so that each source broker may send one.
func batchLargerThanTheBudgetPassesAlone(e *Env) {
	topic := e.Topic("t")
	const partitions = 3
	e.Create(e.Source, topic, partitions, "max.message.bytes", "8000000")
	large := e.Source.Client(e, kgo.ProducerBatchMaxBytes(6<<20), kgo.ProducerLinger(0))
	rng := rand.NewChaCha8([32]byte{8})
	for n := range 4 {
		for p := range int32(partitions) {
			e.Put(e.Source, topic, Numbered(p, fmt.Sprint("small ", n), 200)...)
			v := make([]byte, 5<<20)
			rng.Read(v)
			e.PutWith(large, topic, &kgo.Record{Partition: p, Value: v})
		}
	}
	m := e.Start(Flow{Keys: `memory = "1MiB"`})
	held := int64(0)
	m.Wait("the mirror to catch up", func() string {
		held = max(held, m.Status().MemoryInUse)
		for p := range int32(partitions) {
			if s, _ := m.Partition(topic, p); s.Position < 4*201-1 {
				return fmt.Sprintf("partition %d is at %d", p, s.Position)
			}
		}
		return ""
	})
	m.WantSame(topic)
	brokers, err := e.Source.admin.ListBrokers(e.ctx)
	if err != nil {
		e.Fatal(err)
	}
	// A buffer may be a fifth larger than what it holds; and there are the small
	// batches that came before.
	if most := int64(len(brokers)*6<<20 + 1<<20); held > most {
		e.Errorf("it held up to %d bytes, want one batch of 5 MiB for each of %d brokers", held, len(brokers))
	}
}

// What has to be opened is opened up to a limit. (Not to be opened it would pass:
// see the zip bomb of the records' scenarios.)
func batchTooLargeToBeOpenedStopsItsPartition(e *Env) {
	topic := e.Topic("t")
	e.Create(e.Source, topic, 2)
	client := e.Source.Client(e, kgo.ProducerBatchCompression(kgo.ZstdCompression()), kgo.ProducerBatchMaxBytes(400<<20),
		kgo.BrokerMaxWriteBytes(500<<20), kgo.ProducerLinger(time.Second))
	rs := Values(0, "cut off")
	zeros := make([]byte, 1<<20)
	for range 260 {
		rs = append(rs, &kgo.Record{Value: zeros})
	}
	e.PutWith(client, topic, rs...)
	if bs := e.batches(e.Source, topic, 0); len(bs) != 1 {
		e.Fatalf("%d batches, want one", len(bs))
	}
	e.Trim(e.Source, topic, 0, 1) // from now on the batch has to be opened
	e.Put(e.Source, topic, Numbered(0, "behind", 5)...)
	e.Put(e.Source, topic, Numbered(1, "other", 5)...)
	m := e.Start()
	m.Stalled(topic, 0, 1, "256 mib")
	m.Reached(topic, 1, 4)
	m.Wait("nothing to be held", func() string {
		if n := m.Status().MemoryInUse; n != 0 {
			return fmt.Sprintf("%d bytes are", n)
		}
		return ""
	})
	// Whoever trims the batch away has the rest copied.
	e.Trim(e.Source, topic, 0, 261)
	m.CaughtUp(topic)
	m.WantSame(topic)
}
