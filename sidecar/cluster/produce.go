package cluster

import (
	"context"

	"github.com/twmb/franz-go/pkg/kgo"
)

// ProduceAll produces records and returns nil once all are acknowledged, else the
// first error. Unlike the client's own ProduceSync it returns when ctx ends, also
// while the fate of a record is not known: then, as after any error, the client
// should be closed, and the records' bytes may be read until it is.
func ProduceAll(ctx context.Context, client *kgo.Client, records []*kgo.Record) (failed error) {
	acks := make(chan error, len(records)) // holds them all: nobody may be left to read
	for _, r := range records {
		client.Produce(ctx, r, func(_ *kgo.Record, err error) { acks <- err })
	}
	for range records {
		select {
		case err := <-acks:
			if failed == nil {
				failed = err
			}
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return failed
}
