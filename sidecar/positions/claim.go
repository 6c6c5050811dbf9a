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

// claimKey is a key as Connect makes them: who, and which source.
func (s *Store) claimKey() []byte {
	b := append([]byte("["), appendString(nil, claimant)...)
	b = append(b, `,{"cluster":`...)
	b = appendString(b, s.source)
	return append(b, "}]"...)
}

// Claim says in the topic that from now on the positions of the flow are this
// store's. Two mirrors that run at once can tell by it who came last.
func (s *Store) Claim(ctx context.Context) error {
	if err := s.write(ctx, []*kgo.Record{{Key: s.claimKey(), Value: s.claimValue()}}); err != nil {
		return fmt.Errorf("claim the positions in topic %q on cluster %q: %w", s.topic, s.cluster.Alias(), err)
	}
	return nil
}

func (s *Store) claimValue() []byte {
	b, _ := json.Marshal(map[string]string{"run": s.run}) // of strings it always succeeds
	return b
}

// Claimed says whether the last claim is this store's.
func (s *Store) Claimed(ctx context.Context) (bool, error) {
	l := newLoader(s)
	if err := l.run(ctx); err != nil {
		return false, fmt.Errorf("look for the last claim in topic %q on cluster %q: %w", s.topic, s.cluster.Alias(), err)
	}
	return l.claim == string(s.claimValue()), nil
}
