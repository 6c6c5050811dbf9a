package contract

import (
	"fmt"
	"math/rand/v2"

	"github.com/twmb/franz-go/pkg/kgo"

	"mirror/sidecar/status"
)

var transactionScenarios = []Scenario{
	{Name: "transactions", Run: onlyCommittedRecordsAreCopied},
	{Name: "open-transaction", Run: openTransactionHoldsBackWhatFollows},
	{Name: "uncommitted", Run: readUncommittedCopiesAbortedRecords},
	{Name: "markers-only", Run: positionPassesWhatIsNotCopied},
}

// transactional makes a producer with a transactional id of its own.
func (e *Env) transactional(id string) *kgo.Client {
	return e.Source.Client(e, kgo.TransactionalID(e.Topic(id)), kgo.ProducerLinger(0),
		kgo.ProducerBatchCompression(kgo.Lz4Compression()))
}

func (e *Env) begin(client *kgo.Client) {
	e.Helper()
	if err := client.BeginTransaction(); err != nil {
		e.Fatal(err)
	}
}

func (e *Env) end(client *kgo.Client, commit bool) {
	e.Helper()
	if err := client.EndTransaction(e.ctx, kgo.TransactionEndTry(commit)); err != nil {
		e.Fatal(err)
	}
}

// Settled waits until no transaction is open on a topic of the source. A marker
// comes a moment after its transaction has ended for the producer.
func (e *Env) Settled(topic string) {
	e.Helper()
	e.Eventually("the ends of transactions on "+topic, func() string {
		stable := e.offsets(e.Source.admin.ListCommittedOffsets, topic)
		for p, end := range e.Ends(e.Source, topic) {
			if stable[p] < end {
				return fmt.Sprintf("partition %d is stable up to %d of %d", p, stable[p], end)
			}
		}
		return ""
	})
}

// Producers with transactions that overlap in all ways, some aborted, and one
// without, write to the same partitions.
func onlyCommittedRecordsAreCopied(e *Env) {
	topic := e.Topic("t")
	const partitions = 2
	e.Create(e.Source, topic, partitions)
	m := e.Start()
	producers := []*kgo.Client{e.transactional("a"), e.transactional("b"), e.transactional("c")}
	inside := make([]bool, len(producers))
	// Every value's fate is decided here, so that the target is also compared
	// with what was meant, not only with what a consumer of the source sees.
	pending := make([][][]*string, len(producers)) // by producer and partition
	var logs [partitions][]*string                 // in log order; an aborted value becomes ""
	rng := rand.New(rand.NewPCG(1, 2))
	for step := range 250 {
		i := rng.IntN(len(producers) + 1)
		p := int32(rng.IntN(partitions))
		v := fmt.Sprintf("step-%d", step)
		if i == len(producers) {
			e.Put(e.Source, topic, Values(p, v)...)
			logs[p] = append(logs[p], &v)
			continue
		}
		if !inside[i] {
			e.begin(producers[i])
			inside[i], pending[i] = true, make([][]*string, partitions)
		}
		if step > 200 || rng.IntN(4) == 0 {
			commit := rng.IntN(2) == 0
			e.end(producers[i], commit)
			inside[i] = false
			for p := range pending[i] {
				for _, v := range pending[i][p] {
					if !commit {
						*v = ""
					}
				}
			}
			continue
		}
		e.PutWith(producers[i], topic, Values(p, v)...)
		logs[p] = append(logs[p], &v)
		pending[i][p] = append(pending[i][p], &v)
	}
	for i, client := range producers {
		if inside[i] {
			e.end(client, true)
		}
	}
	e.Settled(topic)
	m.CaughtUp(topic)
	m.WantSame(topic)
	var want [][]string
	for _, log := range logs {
		var kept []string
		for _, v := range log {
			if *v != "" {
				kept = append(kept, *v)
			}
		}
		want = append(want, kept)
	}
	e.WantValues(e.Target, m.TargetName(topic), want...)
	// On the target they are ordinary records: no markers take up offsets.
	for p, end := range e.Ends(e.Target, m.TargetName(topic)) {
		if end != int64(len(want[p])) {
			e.Errorf("partition %d of the target ends at %d and has %d records", p, end, len(want[p]))
		}
	}
}

func openTransactionHoldsBackWhatFollows(e *Env) {
	topic, other := e.Topic("t"), e.Topic("other")
	e.Create(e.Source, topic, 1)
	e.Create(e.Source, other, 1)
	m := e.Start()
	e.Put(e.Source, topic, Values(0, "before")...)
	producer := e.transactional("open")
	e.begin(producer)
	e.PutWith(producer, topic, Values(0, "inside")...)
	e.Put(e.Source, topic, Values(0, "after")...)
	e.Put(e.Source, other, Values(0, "free")...)
	m.Reached(topic, 0, 0)
	m.Reached(other, 0, 0)
	e.WantValues(e.Target, m.TargetName(topic), []string{"before"})
	e.end(producer, true)
	e.Settled(topic)
	m.CaughtUp(topic)
	e.WantValues(e.Target, m.TargetName(topic), []string{"before", "inside", "after"})
	m.WantSame(topic)
}

func readUncommittedCopiesAbortedRecords(e *Env) {
	topic := e.Topic("t")
	e.Create(e.Source, topic, 1)
	producer := e.transactional("p")
	for i, commit := range []bool{true, false, true, false} {
		e.begin(producer)
		e.PutWith(producer, topic, Values(0, fmt.Sprintf("%d-%v", i, commit))...)
		e.end(producer, commit)
	}
	e.Settled(topic)
	m := e.Start(Flow{Uncommitted: true})
	m.CaughtUp(topic)
	e.WantValues(e.Target, m.TargetName(topic), []string{"0-true", "1-false", "2-true", "3-false"})
	if s, _ := m.Partition(topic, 0); s.Batches[status.PathSkipped] != 4 {
		e.Errorf("%d batches skipped, want the 4 markers", s.Batches[status.PathSkipped])
	}
}

// A log that has nothing to copy is passed all the same, and is not read again.
func positionPassesWhatIsNotCopied(e *Env) {
	topic := e.Topic("t")
	e.Create(e.Source, topic, 1)
	producer := e.transactional("p")
	for range 3 {
		e.begin(producer)
		e.PutWith(producer, topic, Values(0, "never")...)
		e.end(producer, false)
	}
	e.Settled(topic)
	m := e.Start()
	m.CaughtUp(topic)
	e.WantValues(e.Target, m.TargetName(topic), nil)
	m.Stop()

	m = e.Start()
	m.Reached(topic, 0, 5) // three records, three markers
	if s, _ := m.Partition(topic, 0); s.Batches[status.PathSkipped] != 0 {
		e.Errorf("%d batches were read again after a restart", s.Batches[status.PathSkipped])
	}
}
