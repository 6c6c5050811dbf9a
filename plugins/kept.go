package plugins

import (
	"bytes"
	"cmp"
	"iter"
	"maps"
	"slices"
	"sync"

	"mirror/abi"
)

// Kept is the state of a source partition that a plugin has flushed: keys and values,
// sorted, each pair in one piece of memory with a slice header beside it. Who loads it
// uses it alone, then the lane does. Only Doubt and DoubtAll may be called by others.
type Kept struct {
	topicID [16]byte // whose it is; zero: not known
	pairs   []pair   // in the order of their keys
	size    int64    // as limits.state counts
	loaded  []put    // not in pairs yet, in the order in which they were written

	mu     sync.Mutex
	doubts map[string]uint64 // keys of which it is not known what the store has; when that began
	all    uint64            // the same of all keys that are kept; 0: of none
	last   uint64
}

// pair is a key and its value, one after the other; neither ever changes.
type pair struct {
	b   []byte
	key uint16 // bytes of it that are the key
}

func newPair(key, value []byte) pair {
	return pair{append(append(make([]byte, 0, len(key)+len(value)), key...), value...), uint16(len(key))}
}

func (p pair) name() []byte  { return p.b[:p.key:p.key] }
func (p pair) value() []byte { return p.b[p.key:len(p.b):len(p.b)] }
func (p pair) cost() int64   { return int64(len(p.b)) + abi.StateCost }

// put is a change: a pair, or that there is none of the key any more.
type put struct {
	pair
	gone bool
	seq  uint64 // rising
}

// cost is what it adds to a size.
func (p put) cost() int64 {
	if p.gone {
		return 0
	}
	return p.pair.cost()
}

func find(pairs []pair, key []byte) (int, bool) {
	return slices.BinarySearchFunc(pairs, key, func(p pair, key []byte) int { return bytes.Compare(p.name(), key) })
}

func findPut(puts []put, key []byte) (int, bool) {
	return slices.BinarySearchFunc(puts, key, func(p put, key []byte) int { return bytes.Compare(p.name(), key) })
}

// another says that two topics are not the same. Clusters before Kafka 2.8 have no ids.
func another(a, b [16]byte) bool { return a != b && a != [16]byte{} && b != [16]byte{} }

// Load adds what a store has, in the order in which it was written: of a key the last
// value counts, and nil removes it. The bytes are copied. What was written about another
// topic of the name is left behind, to be removed from the store.
func (k *Kept) Load(topicID [16]byte, key, value []byte) {
	if another(k.topicID, topicID) {
		k.settle()
		k.renew(topicID)
	}
	if topicID != [16]byte{} {
		k.topicID = topicID
	}
	k.loaded = append(k.loaded, put{pair: newPair(key, value), gone: value == nil, seq: uint64(len(k.loaded))})
	if len(k.loaded) > 256+len(k.pairs)/2 {
		k.settle()
	}
}

// Loaded says that there is nothing more to load for now.
func (k *Kept) Loaded() {
	k.settle()
	if cap(k.pairs) > len(k.pairs)+len(k.pairs)/8 {
		k.pairs = slices.Clone(k.pairs)
	}
}

// settle sorts what was loaded in.
func (k *Kept) settle() {
	if len(k.loaded) == 0 {
		return
	}
	slices.SortFunc(k.loaded, func(a, b put) int {
		return cmp.Or(bytes.Compare(a.name(), b.name()), cmp.Compare(a.seq, b.seq))
	})
	last := k.loaded[:0]
	for _, p := range k.loaded {
		if n := len(last); n > 0 && bytes.Equal(last[n-1].name(), p.name()) {
			last[n-1] = p
			continue
		}
		last = append(last, p)
	}
	k.merge(last)
	k.loaded = nil
}

// renew makes it another topic's: nothing of what is kept belongs to that.
func (k *Kept) renew(topicID [16]byte) {
	for _, p := range k.pairs {
		k.Doubt(p.name())
	}
	k.topicID, k.pairs, k.size = topicID, nil, 0
}

// merge makes changes, sorted and no two of a key, in time with the number of both.
func (k *Kept) merge(puts []put) {
	var holes []int
	added := 0
	for _, p := range puts {
		at, ok := find(k.pairs, p.name())
		switch {
		case ok && p.gone:
			holes = append(holes, at)
		case ok:
			k.size -= k.pairs[at].cost()
			k.pairs[at] = p.pair
		case !p.gone:
			added++
		}
		k.size += p.cost()
	}
	if len(holes) > 0 {
		out := k.pairs[:holes[0]]
		for n, at := range holes {
			k.size -= k.pairs[at].cost()
			end := len(k.pairs)
			if n+1 < len(holes) {
				end = holes[n+1]
			}
			out = append(out, k.pairs[at+1:end]...)
		}
		clear(k.pairs[len(out):])
		k.pairs = out
	}
	if added > 0 {
		k.insert(puts, added)
	}
}

// insert adds those changes, n of them, that are about keys which there are not yet: from
// the last one on, so that each pair moves once.
func (k *Kept) insert(puts []put, n int) {
	from := len(k.pairs) - 1
	k.pairs = slices.Grow(k.pairs, n)[:len(k.pairs)+n]
	to := len(k.pairs) - 1
	for j := len(puts) - 1; j >= 0 && to > from; j-- {
		p := puts[j]
		if p.gone {
			continue
		}
		for from >= 0 && bytes.Compare(k.pairs[from].name(), p.name()) > 0 {
			k.pairs[to] = k.pairs[from]
			from, to = from-1, to-1
		}
		if from >= 0 && bytes.Equal(k.pairs[from].name(), p.name()) {
			continue // replaced before
		}
		k.pairs[to] = p.pair
		to--
	}
}

// Doubt says that the store may have something else of a key than what is kept, because
// somebody else has written it: it is written again with the next flush.
func (k *Kept) Doubt(key []byte) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.doubts == nil {
		k.doubts = map[string]uint64{}
	}
	k.last++
	k.doubts[string(key)] = k.last
}

// DoubtAll says that the store has lost everything.
func (k *Kept) DoubtAll() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.last++
	k.all = k.last
}

// TopicID is whose it is; zero: not known.
func (k *Kept) TopicID() [16]byte { return k.topicID }

// Pairs are the keys that are kept, in order, with their values.
func (k *Kept) Pairs() iter.Seq2[[]byte, []byte] {
	return func(yield func([]byte, []byte) bool) {
		for _, p := range k.pairs {
			if !yield(p.name(), p.value()) {
				return
			}
		}
	}
}

// Doubted are the keys of which it is not known what the store has.
func (k *Kept) Doubted() []string {
	keys, _ := k.doubted()
	return keys
}

// doubted are the keys in doubt, the last one first, and until when those are.
func (k *Kept) doubted() (keys []string, until uint64) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(k.doubts) > 0 {
		keys = slices.Collect(maps.Keys(k.doubts))
		slices.SortFunc(keys, func(a, b string) int { return cmp.Compare(k.doubts[b], k.doubts[a]) })
	}
	if k.all == 0 {
		return keys, k.last
	}
	for _, p := range k.pairs {
		if _, ok := k.doubts[string(p.name())]; !ok {
			keys = append(keys, string(p.name()))
		}
	}
	return keys, k.last
}

func (k *Kept) doubtful() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return len(k.doubts) > 0 || k.all > 0
}

// sure forgets the doubts up to then: what is kept has been written.
func (k *Kept) sure(until uint64) {
	k.mu.Lock()
	defer k.mu.Unlock()
	maps.DeleteFunc(k.doubts, func(_ string, since uint64) bool { return since <= until })
	if len(k.doubts) == 0 {
		k.doubts = nil
	}
	if k.all <= until {
		k.all = 0
	}
}
