package contract

import (
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/twmb/franz-go/pkg/kgo"
)

// GroupTopics makes topics of all the kinds that translating has trouble with: those
// of SyncedTopics, one in every codec, one with small transactions, and, the last one, one
// in which compaction has left so many runs of offsets, each of one record. It returns
// what goes on writing to them.
func (e *Env) GroupTopics(runs int) (topics []string, more func()) {
	e.Helper()
	holes := e.Topic("holes")
	e.Create(e.Source, holes, 1, cleaned...)
	e.fillHoles(holes, runs)
	synced, write := e.SyncedTopics()
	mixed, small := e.Topic("codecs"), e.Topic("small")
	e.Create(e.Source, mixed, int32(len(codecs)))
	e.Create(e.Source, small, 1)
	stage := 0
	mix := func() {
		stage++
		for _, c := range codecs {
			client := e.Source.Client(e, kgo.ProducerBatchCompression(c.codec))
			for p := range codecs {
				e.PutWith(client, mixed, Numbered(int32(p), fmt.Sprintf("stage %d, %s", stage, c.name), 50)...)
			}
			client.Close()
		}
		e.smallTransactions(small, fmt.Sprint("stage ", stage), transactions)
		e.Put(e.Source, holes, Numbered(0, fmt.Sprint("stage ", stage), 20)...)
	}
	mix()
	return append(slices.Clone(synced), mixed, small, holes), func() {
		write()
		mix()
	}
}

// fillHoles leaves a partition of which the log cleaner, which does not come again, has
// removed every other record.
func (e *Env) fillHoles(topic string, runs int) {
	e.Helper()
	var rs []*kgo.Record
	for i := range runs {
		rs = append(rs, &kgo.Record{Key: fmt.Append(nil, i), Value: []byte("kept")}, &kgo.Record{Key: []byte("hole"), Value: fmt.Append(nil, i)})
	}
	e.Put(e.Source, topic, rs...)
	e.untilCleaned(topic, 0, func(bs []header) bool {
		if len(bs) == 0 || bs[0].count == bs[0].lastDelta+1 {
			return false
		}
		holes := 0
		for _, r := range e.Read(e.Source, topic)[0] {
			if string(r.Key) == "hole" {
				holes++
			}
		}
		return holes <= 1 // the last of a key stays
	})
	for i := 0; i < len(frozen); i += 2 {
		e.SetConfig(e.Source, topic, frozen[i], frozen[i+1])
	}
}

const (
	transactions = 200 // small ones, in a stage
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
