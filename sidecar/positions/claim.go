package positions

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/twmb/franz-go/pkg/kgo"
)

// claimant is the "connector" of the claims, by which MirrorMaker takes them for
// somebody else's positions.
const claimant = "mirror"

// Claim says in the topic that from now on the partitions are this store's. Two
// mirrors that run at once can tell by it who came last.
func (s *Store) Claim(ctx context.Context, ks []Key) error {
	if len(ks) == 0 {
		return nil
	}
	records := make([]*kgo.Record, len(ks))
	for i, k := range ks {
		records[i] = &kgo.Record{Key: appendKey(nil, claimant, s.source, k), Value: s.claim()}
	}
	if err := s.write(ctx, records); err != nil {
		return fmt.Errorf("claim %d partitions in topic %q on cluster %q: %w", len(ks), s.topic, s.cluster.Alias(), err)
	}
	return nil
}

func (s *Store) claim() []byte {
	b, _ := json.Marshal(map[string]string{"run": s.run}) // of strings it always succeeds
	return b
}

// Watch calls taken for each partition that another store claims after this one
// has, from the time of Load on, until ctx ends. It tells a mirror that was paused,
// or was started twice, that it has been replaced. A claim before this one's own is
// that of a predecessor, however late it was written. It is for one goroutine.
func (s *Store) Watch(ctx context.Context, taken func(Key)) error {
	for ctx.Err() == nil {
		if err := s.watch(ctx, taken); err != nil {
			return fmt.Errorf("watch topic %q on cluster %q: %w", s.topic, s.cluster.Alias(), err)
		}
	}
	return nil
}

// watch is Watch until the topic is made again.
func (s *Store) watch(ctx context.Context, taken func(Key)) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	s.mu.Lock()
	s.rewatch = cancel
	from := make(map[int32]kgo.Offset, len(s.loaded))
	for n, offset := range s.loaded {
		from[n] = kgo.NewOffset().At(offset)
	}
	s.mu.Unlock()
	cl, err := s.cluster.NewClient(
		kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{s.topic: from}),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()),
	)
	if err != nil {
		return err
	}
	defer cl.Close()
	ours := string(s.claim())
	claimed := map[Key]bool{}
	for ctx.Err() == nil {
		// Errors are those of brokers that are away; the client tries again.
		cl.PollFetches(ctx).EachRecord(func(r *kgo.Record) {
			switch k, err := parseKey(r.Key, claimant, s.source); {
			case err != nil: // something else
			case string(r.Value) == ours:
				claimed[k] = true
			case claimed[k]:
				taken(k)
			}
		})
	}
	return nil
}
