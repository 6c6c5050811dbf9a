package contract

import (
	"fmt"
	"math/rand/v2"

	"github.com/twmb/franz-go/pkg/kgo"
)

var limitScenarios = []Scenario{
	{Name: "many-partitions", Run: manyPartitionsShareLittleMemory},
}

var bigTransactionScenarios = []Scenario{
	{Name: "big-transactions", Real: true, Run: transactionsOverManyAnswers},
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
