package contract

import (
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/twmb/franz-go/pkg/kgo"
)

// GroupTopics makes topics of all the kinds that translating has trouble with: those
// of SyncedTopics, one in every codec, and one with so many small transactions. It
// returns what goes on writing to them.
func (e *Env) GroupTopics(transactions int) (topics []string, more func()) {
	e.Helper()
	synced, write := e.SyncedTopics()
	mixed, small := e.Topic("codecs"), e.Topic("small")
	e.Create(e.Source, mixed, int32(len(codecs)))
	e.Create(e.Source, small, 1)
	stage := 0
	mix := func(transactions int) {
		stage++
		for _, c := range codecs {
			client := e.Source.Client(e, kgo.ProducerBatchCompression(c.codec))
			for p := range codecs {
				e.PutWith(client, mixed, Numbered(int32(p), fmt.Sprintf("stage %d, %s", stage, c.name), 50)...)
			}
			client.Close()
		}
		e.smallTransactions(small, fmt.Sprint("stage ", stage), transactions)
	}
	mix(transactions)
	return append(slices.Clone(synced), mixed, small), func() {
		write()
		mix(moreTransactions)
	}
}

const (
	moreTransactions = 50
	// smallProducers write small transactions side by side: one alone waits for the
	// broker most of the time, and of many the markers come together, which are few gaps.
	smallProducers = 3
)

// smallTransactions writes transactions of one to three records to partition 0 of a
// topic, of which each seventh is aborted.
func (e *Env) smallTransactions(topic, name string, n int) {
	e.Helper()
	errs := make([]error, smallProducers)
	var all sync.WaitGroup
	for i := range errs {
		client := e.transactional(fmt.Sprint("small-", i))
		all.Go(func() {
			for t := i; t < n && errs[i] == nil; t += smallProducers {
				rs := Numbered(0, fmt.Sprintf("%s, transaction %d", name, t), 1+t%3)
				for _, r := range rs {
					r.Topic = topic
				}
				if errs[i] = client.BeginTransaction(); errs[i] == nil {
					errs[i] = errors.Join(client.ProduceSync(e.ctx, rs...).FirstErr(), client.EndTransaction(e.ctx, kgo.TransactionEndTry(t%7 != 0)))
				}
			}
			client.Close()
		})
	}
	all.Wait()
	if err := errors.Join(errs...); err != nil {
		e.Fatalf("transactions on %s: %v", topic, err)
	}
	e.Settled(topic)
}
