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

// Claimed says whether the last claim of the partition is this store's.
func (s *Store) Claimed(ctx context.Context, k Key) (bool, error) {
	l := newLoader(s)
	if err := l.run(ctx); err != nil {
		return false, fmt.Errorf("look for the last claim in topic %q on cluster %q: %w", s.topic, s.cluster.Alias(), err)
	}
	return l.claims[k] == string(s.claim()), nil
}
