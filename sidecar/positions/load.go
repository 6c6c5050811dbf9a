package positions

import (
	"context"
	"errors"
	"fmt"

	"github.com/twmb/franz-go/pkg/kgo"
)

// Load reads the positions of all partitions: all of the topic's committed
// records, up to what was its end when a partition was first read. The last
// record of a key wins, a tombstone removes. Records of other connectors and
// clusters are passed over, and so are those that nobody can read, which is
// logged with their number.
func (s *Store) Load(ctx context.Context) (map[Key]Position, error) {
	l := newLoader(s)
	if err := l.run(ctx); err != nil {
		return nil, fmt.Errorf("load positions from topic %q on cluster %q: %w", s.topic, s.cluster.Alias(), err)
	}
	if l.garbage > 0 {
		s.log.Warn("passed over records that are not positions", "records", l.garbage,
			"partition", l.firstGarbage.partition, "offset", l.firstGarbage.offset, "err", l.firstGarbage.err)
	}
	s.mu.Lock()
	s.loaded = l.ends
	s.mu.Unlock()
	return l.positions, nil
}

// Claimed reads which partitions other stores have claimed in the topic as it is
// now.
func (s *Store) Claimed(ctx context.Context) (map[Key]bool, error) {
	l := newLoader(s)
	if err := l.run(ctx); err != nil {
		return nil, fmt.Errorf("load claims from topic %q on cluster %q: %w", s.topic, s.cluster.Alias(), err)
	}
	return l.claimed, nil
}

// loader is the state of one Load.
type loader struct {
	store     *Store
	ends      map[int32]int64 // by partition
	positions map[Key]Position
	claimed   map[Key]bool // by others, last

	garbage      int
	firstGarbage struct {
		partition int32
		offset    int64
		err       error
	}
}

func newLoader(s *Store) *loader {
	return &loader{store: s, positions: map[Key]Position{}, claimed: map[Key]bool{}}
}

func (l *loader) run(ctx context.Context) (err error) {
	l.ends, err = l.store.cluster.Read(ctx, l.store.topic, nil, l.take)
	return err
}

func (l *loader) take(r *kgo.Record) {
	k, err := parseKey(r.Key, l.store.connector, l.store.source)
	if errors.Is(err, errForeign) {
		if k, err := parseKey(r.Key, claimant, l.store.source); err == nil {
			delete(l.claimed, k)
			if _, others := l.store.others(r.Value); others {
				l.claimed[k] = true
			}
		}
		return
	}
	if err == nil {
		var p Position
		var ok bool
		if p, ok, err = parseValue(r.Value); err == nil {
			if ok {
				l.positions[k] = p
			} else {
				delete(l.positions, k)
			}
			return
		}
	}
	if l.garbage++; l.garbage == 1 {
		l.firstGarbage.partition, l.firstGarbage.offset, l.firstGarbage.err = r.Partition, r.Offset, err
	}
}
