package offsets

import (
	"context"

	"github.com/twmb/franz-go/pkg/kgo"
)

// Syncs is a flow's topic of offset syncs. It is connected to with the first Write
// or Read. Its methods may be called by several goroutines.
type Syncs struct{ *store }

// NewSyncs does no I/O.
func NewSyncs(o TopicOptions) *Syncs { return &Syncs{newStore(o, "offset syncs")} }

// Write writes syncs and returns nil once all in-sync replicas have every one of
// them. What can be retried is retried until ctx ends. After an error some of them
// may be there; writing them again is safe. The topic is made when it is missing:
// one partition, compacted.
func (t *Syncs) Write(ctx context.Context, syncs []Sync) error {
	records := make([]*kgo.Record, len(syncs))
	for i, s := range syncs {
		records[i] = &kgo.Record{Topic: t.o.Name, Key: s.AppendKey(nil), Value: s.AppendValue(nil)}
	}
	return t.write(ctx, records)
}

// Read reads all syncs that the topic has now, in order; none where it does not
// exist. Records that are no syncs are passed over.
func (t *Syncs) Read(ctx context.Context) (syncs []Sync, err error) {
	err = t.read(ctx, func(r *kgo.Record) {
		if s, err := ParseSync(r.Key, r.Value); err == nil {
			syncs = append(syncs, s)
		}
	})
	if err != nil {
		return nil, err
	}
	return syncs, nil
}
