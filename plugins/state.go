package plugins

import (
	"bytes"
	"cmp"
	"slices"

	"mirror/abi"
)

// state is a partition's state as an instance sees it: what is kept as of the last
// flush, and what was put since. A fresh instance sees what is kept: it is told again
// what was told since, so both fit. A plugin without a schema has none, which is nil.
type state struct {
	store Store
	kept  *Kept
	limit int64

	wiped bool     // by an event told since: nothing of what is kept belongs to the topic
	puts  []put    // in the order of their keys
	seq   uint64   // of the last one
	id    [16]byte // the topic's, as told
	size  int64    // as the instance sees it
}

func newState(k Key, p *program) *state {
	if p.store == nil {
		return nil
	}
	s := &state{store: p.store, kept: p.store.Take(k), limit: p.spec.Limits.State}
	s.drop()
	return s
}

// give hands it back to the store.
func (s *state) give(k Key) {
	if s != nil {
		s.drop()
		s.store.Give(k)
	}
}

// handed is the state for a plugin that takes the place of another: the same where it
// is of the same schema, and kept in the same store.
func (s *state) handed(k Key, to *program) *state {
	if s == nil || s.store != to.store {
		s.give(k)
		return newState(k, to)
	}
	s.limit = to.spec.Limits.State
	return s
}

// drop forgets what was not flushed.
func (s *state) drop() {
	if s == nil {
		return
	}
	s.wiped, s.puts, s.id, s.size = false, nil, s.kept.topicID, s.kept.size
}

// begins is told with which topic the partition begins for an instance: before
// anything was put.
func (s *state) begins(topicID [16]byte) {
	if s == nil {
		return
	}
	if another(s.kept.topicID, topicID) {
		s.kept.renew(topicID)
	} else if topicID != [16]byte{} {
		s.kept.topicID = topicID
	}
	s.drop()
}

// renew makes it that of a topic of which nothing is kept.
func (s *state) renew(topicID [16]byte) {
	if s != nil {
		s.kept.renew(topicID)
		s.drop()
	}
}

// settle is when what was told is forgotten, and there is nothing to write for it.
func (s *state) settle() {
	if s != nil {
		s.wiped, s.kept.topicID = false, s.id
	}
}

// hear is told of an event before the instance is.
func (s *state) hear(e *Event) {
	if s == nil {
		return
	}
	if e.Kind == abi.Recreated || another(s.id, e.TopicID) {
		s.wiped, s.puts, s.size = true, nil, 0
	}
	if e.TopicID != [16]byte{} {
		s.id = e.TopicID
	}
}

// get is the value of a key, to be used at once.
func (s *state) get(key []byte) ([]byte, bool) {
	if i, ok := findPut(s.puts, key); ok {
		return s.puts[i].value(), !s.puts[i].gone
	}
	if i, ok := find(s.kept.pairs, key); ok && !s.wiped {
		return s.kept.pairs[i].value(), true
	}
	return nil, false
}

// next is the first key after one, nil: there is none.
func (s *state) next(key []byte) []byte {
	i, there := findPut(s.puts, key)
	if there {
		i++
	}
	var kept []pair
	if !s.wiped {
		j, there := find(s.kept.pairs, key)
		if there {
			j++
		}
		kept = s.kept.pairs[j:]
	}
	for puts := s.puts[i:]; ; {
		if len(puts) == 0 {
			if len(kept) == 0 {
				return nil
			}
			return kept[0].name()
		}
		if len(kept) > 0 {
			switch c := bytes.Compare(kept[0].name(), puts[0].name()); {
			case c < 0:
				return kept[0].name()
			case c == 0:
				kept = kept[1:]
			}
		}
		if !puts[0].gone {
			return puts[0].name()
		}
		puts = puts[1:]
	}
}

// undo is how to take a put back.
type undo struct {
	s    *state
	key  []byte
	put  *put // that was there; nil: there was none
	size int64
}

// put changes a key, unless there is no room. gone: there is none of it any more. The
// bytes are copied.
func (s *state) put(key, value []byte, gone bool) (undo, abi.Status) {
	i, there := findPut(s.puts, key)
	at, keeps := find(s.kept.pairs, key)
	old := int64(0)
	switch {
	case there:
		old = s.puts[i].cost()
	case keeps && !s.wiped:
		old = s.kept.pairs[at].cost()
	}
	if size := s.size - old + int64(len(key)+len(value)) + abi.StateCost; !gone && size > s.limit && size > s.size {
		return undo{}, abi.StateFull
	}
	s.seq++
	p := put{pair: newPair(key, value), gone: gone, seq: s.seq}
	u := undo{s: s, key: p.name(), size: s.size}
	s.size += p.cost() - old
	if there {
		was := s.puts[i]
		u.put = &was
	}
	switch {
	case gone && (s.wiped || !keeps): // as if it had never been
		if there {
			s.puts = slices.Delete(s.puts, i, i+1)
		}
	case there:
		s.puts[i] = p
	default:
		s.puts = slices.Insert(s.puts, i, p)
	}
	return u, abi.OK
}

// back takes a put back, those after it first.
func (u undo) back() {
	s := u.s
	i, there := findPut(s.puts, u.key)
	switch {
	case there && u.put == nil:
		s.puts = slices.Delete(s.puts, i, i+1)
	case there:
		s.puts[i] = *u.put
	case u.put != nil:
		s.puts = slices.Insert(s.puts, i, *u.put)
	}
	s.size = u.size
}

// pending says that a flush has something to write.
func (s *state) pending() bool {
	return s != nil && (len(s.puts) > 0 || s.wiped && len(s.kept.pairs) > 0 || s.kept.doubtful())
}

// changes is what a flush has to write, in this order: what the store may have and
// should not, the last thing first; what belongs to another topic; and what was put, in
// order of the last put of each key. So whatever part of it a crash leaves is what
// some of the puts came to, without those after them. doubts: see Kept.sure.
func (s *state) changes(k Key) (all []Change, doubts uint64) {
	set := func(key, value []byte) {
		all = append(all, Change{Key: k, TopicID: s.id, Name: key, Value: value})
	}
	keys, doubts := s.kept.doubted()
	for _, key := range keys {
		name := []byte(key)
		i, keeps := find(s.kept.pairs, name)
		switch {
		case keeps && !s.wiped:
			set(name, s.kept.pairs[i].value())
		case !keeps:
			set(name, nil)
		}
	}
	if s.wiped {
		for _, p := range s.kept.pairs {
			if _, put := findPut(s.puts, p.name()); !put {
				set(p.name(), nil)
			}
		}
	}
	puts := slices.Clone(s.puts)
	slices.SortFunc(puts, func(a, b put) int { return cmp.Compare(a.seq, b.seq) })
	for _, p := range puts {
		if p.gone {
			set(p.name(), nil)
		} else {
			set(p.name(), p.value())
		}
	}
	return all, doubts
}

// flushed is after a write that went well.
func (s *state) flushed(doubts uint64) {
	if s == nil {
		return
	}
	if s.wiped {
		s.kept.pairs, s.kept.size = nil, 0
	}
	s.kept.merge(s.puts)
	s.kept.topicID = s.id
	s.kept.sure(doubts)
	s.drop()
}

// failed is after one of which nobody knows how much was written.
func (s *state) failed(changes []Change) {
	for _, c := range changes {
		s.kept.Doubt(c.Name)
	}
}
