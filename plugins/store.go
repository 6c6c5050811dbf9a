package plugins

import (
	"context"
	"sync"
)

// Change is what becomes of a key of a partition's state.
type Change struct {
	Key              // the source partition
	TopicID [16]byte // of the source topic; zero: the cluster has none
	Name    []byte   // the key
	Value   []byte   // nil: there is none any more
}

// Store keeps the state of one plugin, as one schema writes it. Its methods may be
// called by several goroutines.
type Store interface {
	// Take gives what is kept of a partition to a lane, which alone uses it until it
	// gives it back. It is quick.
	Take(Key) *Kept
	// Give takes it back, as it was last written.
	Give(Key)
	// Write returns nil once all is safe. Changes of one partition become safe in order.
	// After an error nobody knows how many have. The bytes never change.
	Write(ctx context.Context, changes []Change) error
}

// MemoryStore is a Store that ends with the process: for plugins that run without a
// cluster.
type MemoryStore struct {
	mu   sync.Mutex
	kept map[Key]*Kept
}

// NewMemoryStore makes an empty one.
func NewMemoryStore() *MemoryStore { return &MemoryStore{kept: map[Key]*Kept{}} }

// Take implements Store.
func (s *MemoryStore) Take(k Key) *Kept {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.kept[k] == nil {
		s.kept[k] = &Kept{}
	}
	return s.kept[k]
}

// Give implements Store: what is kept stays where it is.
func (s *MemoryStore) Give(Key) {}

// Write implements Store: what is written is in what is kept.
func (s *MemoryStore) Write(context.Context, []Change) error { return nil }
