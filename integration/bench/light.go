package main

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

const lightRate = 100 // records a second

// light writes records to the light topic one by one and has for each the time by
// which a consumer of the copy gets it later than a consumer of the source does.
func (l *lab) light(ctx context.Context, j job, records int) ([]time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Duration(records)*time.Second/lightRate+30*time.Second)
	defer cancel()
	err := await(ctx, 100*time.Millisecond, func() error {
		topics, err := l.target.topics(ctx)
		if err == nil && !slices.Contains(topics, j.copyOf(j.light)) {
			err = fmt.Errorf("no topic %s on the target", j.copyOf(j.light))
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	client, err := kgo.NewClient(kgo.SeedBrokers(l.source.near), kgo.ProducerLinger(0),
		kgo.ProducerBatchCompression(codecs[j.Codec]), kgo.DefaultProduceTopic(j.light))
	if err != nil {
		return nil, err
	}
	defer client.Close()

	// The first record, which nobody counts, shows that all are ready.
	at := [2]*arrivals{newArrivals(records + 1), newArrivals(records + 1)}
	var wg sync.WaitGroup
	var failed [3]error
	wg.Go(func() { failed[0] = at[0].read(ctx, l.source.near, j.light) })
	wg.Go(func() { failed[1] = at[1].read(ctx, l.target.near, j.copyOf(j.light)) })
	failed[2] = produceLight(ctx, client, records, func() error {
		for _, a := range at {
			select {
			case <-a.begun:
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		return nil
	})
	if failed[2] != nil {
		cancel()
	}
	wg.Wait()
	if err := errors.Join(failed[:]...); err != nil {
		return nil, fmt.Errorf("light load: %w", err)
	}
	late := make([]time.Duration, records)
	for i := range late {
		late[i] = at[1].times[i+1].Sub(at[0].times[i+1])
	}
	return late, nil
}

// produceLight writes record 0, waits until it was read, and writes the others.
func produceLight(ctx context.Context, client *kgo.Client, records int, begun func() error) error {
	random := rand.New(rand.NewPCG(3, 4))
	record := func(i int) *kgo.Record {
		return &kgo.Record{Key: binary.BigEndian.AppendUint32(nil, uint32(i)), Value: value(random, int64(i))}
	}
	if err := client.ProduceSync(ctx, record(0)).FirstErr(); err != nil {
		return err
	}
	if err := begun(); err != nil {
		return err
	}
	tick := time.NewTicker(time.Second / lightRate)
	defer tick.Stop()
	for i := range records {
		<-tick.C
		client.Produce(ctx, record(i+1), nil) // one that is lost is missed by the readers
	}
	return client.Flush(ctx)
}

// arrivals are the times when a consumer got the records of a topic.
type arrivals struct {
	times []time.Time
	begun chan struct{} // closed with the first record
}

func newArrivals(n int) *arrivals { return &arrivals{make([]time.Time, n), make(chan struct{})} }

// read consumes until every record was there.
func (a *arrivals) read(ctx context.Context, address, topic string) error {
	client, err := kgo.NewClient(kgo.SeedBrokers(address), kgo.ConsumePartitions(
		map[string]map[int32]kgo.Offset{topic: {0: kgo.NewOffset().At(0)}}))
	if err != nil {
		return err
	}
	defer client.Close()
	for missing := len(a.times); missing > 0; {
		fetches := client.PollFetches(ctx)
		now := time.Now()
		if err := fetches.Err(); err != nil {
			return fmt.Errorf("%s: %d of %d records are missing: %w", topic, missing, len(a.times), err)
		}
		fetches.EachRecord(func(r *kgo.Record) {
			i := binary.BigEndian.Uint32(r.Key)
			if !a.times[i].IsZero() {
				return // a copy of a copy
			}
			a.times[i] = now
			if missing--; missing == len(a.times)-1 {
				close(a.begun)
			}
		})
	}
	return nil
}

// quantile is the smallest of all that at least the share q of them do not
// exceed, in milliseconds.
func quantile(all []time.Duration, q float64) Figure {
	if len(all) == 0 {
		return noFigure
	}
	sorted := slices.Sorted(slices.Values(all))
	i := int(math.Ceil(q*float64(len(sorted)))) - 1
	return Figure(sorted[max(0, i)].Seconds() * 1e3)
}
