package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/twmb/franz-go/pkg/kgo"
)

const loopChild = "child-kgo"

// loop copies topics as anyone would with franz-go, at its defaults but for the
// source's codec. Arguments: source, target, codec, alias, topics.
func loop(args []string) error {
	if len(args) < 5 {
		return errors.New("want source, target, codec, alias, topics")
	}
	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	consumer, err := kgo.NewClient(kgo.SeedBrokers(args[0]), kgo.ConsumeTopics(args[4:]...))
	if err != nil {
		return err
	}
	defer consumer.Close()
	producer, err := kgo.NewClient(kgo.SeedBrokers(args[1]), kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.ProducerBatchCompression(codecs[args[2]]))
	if err != nil {
		return err
	}
	defer producer.Close()
	for ctx.Err() == nil {
		fetches := consumer.PollFetches(ctx)
		for _, e := range fetches.Errors() {
			return fmt.Errorf("fetch %s/%d: %w", e.Topic, e.Partition, e.Err)
		}
		fetches.EachRecord(func(r *kgo.Record) {
			r.Topic = args[3] + "." + r.Topic
			producer.Produce(ctx, r, func(r *kgo.Record, err error) {
				if err != nil {
					cancel(fmt.Errorf("produce %s/%d: %w", r.Topic, r.Partition, err))
				}
			})
		})
	}
	return context.Cause(ctx)
}
