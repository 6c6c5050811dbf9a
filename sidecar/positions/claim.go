package positions

import (
	"cmp"
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
	value, _ := json.Marshal(s.claim()) // of such fields it always succeeds
	records := make([]*kgo.Record, len(ks))
	for i, k := range ks {
		records[i] = &kgo.Record{Key: appendKey(nil, claimant, s.source, k), Value: value}
	}
	if err := s.write(ctx, records); err != nil {
		return fmt.Errorf("claim %d partitions in topic %q on cluster %q: %w", len(ks), s.topic, s.cluster.Alias(), err)
	}
	return nil
}

// claim is the value of a claim. Of two stores the one is the successor that loaded
// the topic when more had been written to it; if as much had been, the one that was
// opened later.
type claim struct {
	Run    string `json:"run"`
	Loaded int64  `json:"loaded"` // offsets of the whole topic
	Opened int64  `json:"opened"` // in ms since the epoch
}

func (s *Store) claim() claim {
	c := claim{Run: s.run, Opened: s.opened.UnixMilli()}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, end := range s.loaded {
		c.Loaded += end
	}
	return c
}

// others is the claim in a record's value, if it is that of another store.
func (s *Store) others(value []byte) (claim, bool) {
	var c claim
	err := json.Unmarshal(value, &c)
	return c, err == nil && c.Run != s.run
}

// after says whether c is the claim of a successor of d's store. It holds one way or
// the other, so that of two stores that see each other's claims one goes on.
func (c claim) after(d claim) bool {
	return cmp.Or(cmp.Compare(c.Loaded, d.Loaded), cmp.Compare(c.Opened, d.Opened), cmp.Compare(c.Run, d.Run)) > 0
}

// Watch calls taken for each partition that a successor of this store claims from
// the time of Load on, until ctx ends. It tells a mirror that was paused, or was
// started twice, that it has been replaced. A predecessor's claim may be written late,
// and says nothing. It is for one goroutine.
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
	ours := s.claim()
	for ctx.Err() == nil {
		// Errors are those of brokers that are away; the client tries again.
		cl.PollFetches(ctx).EachRecord(func(r *kgo.Record) {
			if k, err := parseKey(r.Key, claimant, s.source); err == nil {
				if c, ok := s.others(r.Value); ok && c.after(ours) {
					taken(k)
				}
			}
		})
	}
	return nil
}
