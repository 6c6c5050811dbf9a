package main

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"

	"github.com/twmb/franz-go/pkg/kgo"
)

// fillTransactions writes the records in transactions, each of a batch in one
// partition. A commit takes a while, so each partition has a producer of its own.
func fillTransactions(ctx context.Context, c benchCase, records int64, options []kgo.Opt) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	partitions := c.busy()
	failed := make([]error, len(partitions))
	var wg sync.WaitGroup
	for n, partition := range partitions {
		wg.Go(func() {
			share := records / int64(len(partitions))
			if int64(n) < records%int64(len(partitions)) {
				share++
			}
			// The client rearranges the codecs in place, so each has its own.
			own := append(slices.Clone(options), kgo.ProducerBatchCompression(codecs[c.Codec]), kgo.TransactionalID(fmt.Sprintf("bench-%s-%d", c.Name, partition)), kgo.ProducerLinger(0))
			if failed[n] = fillPartition(ctx, c, partition, share, own); failed[n] != nil {
				cancel()
			}
		})
	}
	wg.Wait()
	return errors.Join(failed...)
}

func fillPartition(ctx context.Context, c benchCase, partition int32, records int64, options []kgo.Opt) error {
	client, err := kgo.NewClient(options...)
	if err != nil {
		return err
	}
	defer client.Close()
	random := rand.New(rand.NewPCG(5, uint64(partition)))
	batch := make([]*kgo.Record, 0, c.Transaction)
	for i := int64(0); i < records; i += c.Transaction {
		batch = batch[:0]
		for at := i; at < min(i+c.Transaction, records); at++ {
			batch = append(batch, &kgo.Record{Topic: c.Name, Partition: partition,
				Key: binary.BigEndian.AppendUint64(nil, uint64(at)), Value: value(random, at)})
		}
		if err := client.BeginTransaction(); err != nil {
			return err
		}
		if err := client.ProduceSync(ctx, batch...).FirstErr(); err != nil {
			return err
		}
		if err := client.EndTransaction(ctx, kgo.TryCommit); err != nil {
			return err
		}
	}
	return nil
}
