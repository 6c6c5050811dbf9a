package contract

import (
	"fmt"
	"slices"

	"github.com/twmb/franz-go/pkg/kgo"

	"mirror/sidecar/compare"
	"mirror/sidecar/offsets"
)

// Synced is a topic that was copied, by whomever, with offset syncs beside.
type Synced struct {
	Source, Target *Cluster
	Topic, Copy    string   // its names on them
	Syncs          string   // the topic of the offset syncs
	On             *Cluster // has that topic
}

// Syncs are a topic's offset syncs, as they were written, and the records that they
// are about; by partition.
type Syncs struct {
	Pairs          [][]offsets.Sync
	Source, Target [][]*kgo.Record
}

// WantSyncs waits until all of the topic is copied and the last pair of each
// partition is that of its last record, and checks that each pair is of one record:
// the same on both sides. So none is of a marker, or of a record that was aborted.
// A partition without records has no pair.
func (e *Env) WantSyncs(about Synced) *Syncs {
	e.Helper()
	s := &Syncs{Source: e.Read(about.Source, about.Topic)}
	e.Eventually("the last offset syncs of "+about.Copy, func() string {
		if !e.Exists(about.On, about.Syncs) {
			return "there is no topic " + about.Syncs
		}
		if !e.Exists(about.Target, about.Copy) {
			return "there is no topic " + about.Copy
		}
		s.Pairs = e.OffsetSyncs(about.On, about.Syncs, about.Topic, len(s.Source))
		for p, rs := range s.Source {
			if len(rs) > 0 && (len(s.Pairs[p]) == 0 || last(s.Pairs[p]).Upstream != last(rs).Offset) {
				return fmt.Sprintf("partition %d has no pair of the last record, %d, at the end of %v", p, last(rs).Offset, s.Pairs[p])
			}
		}
		// What was stored twice is to be told of its last copy.
		s.Target = e.Read(about.Target, about.Copy)
		for p, rs := range s.Source {
			if len(rs) == 0 {
				continue
			}
			copied := -1
			for i, r := range s.Target[p] {
				if same(last(rs), r) {
					copied = i
				}
			}
			if copied < 0 || last(s.Pairs[p]).Downstream != s.Target[p][copied].Offset {
				return fmt.Sprintf("partition %d ends with the pair %v, which is not of the last copy", p, last(s.Pairs[p]))
			}
		}
		return ""
	})
	for p := range s.Source {
		at, copied := byOffset(s.Source[p]), byOffset(s.Target[p])
		for _, pair := range s.Pairs[p] {
			if !same(at[pair.Upstream], copied[pair.Downstream]) {
				e.Errorf("%s, partition %d: the pair %d, %d is not of one record", about.Copy, p, pair.Upstream, pair.Downstream)
			}
		}
	}
	return s
}

// WantGaps checks what MirrorMaker leaves to chance and the built-in plugin, where
// it was on all the time and gaps are few, does not: the first record after each gap
// at the source, and the first of all, has its pair.
func (s *Syncs) WantGaps(e *Env) {
	e.Helper()
	for p, rs := range s.Source {
		before := int64(-2)
		for _, r := range rs {
			has := slices.ContainsFunc(s.Pairs[p], func(s offsets.Sync) bool { return s.Upstream == r.Offset })
			if r.Offset != before+1 && !has {
				e.Errorf("%s, partition %d: %d is the first record after a gap and has no pair", r.Topic, p, r.Offset)
			}
			before = r.Offset
		}
	}
}

// WantNear checks how far off a reader of all pairs is, who translates to one after
// the nearest at or before a record: never past it, and by no more than the record is
// away from the end, or the lag. That, too, MirrorMaker leaves to chance. It is
// for copies that have each record once, in order.
func (s *Syncs) WantNear(e *Env, lag int64) {
	e.Helper()
	for p, rs := range s.Source {
		copied, pairs := s.Target[p], s.Pairs[p]
		before := offsets.Sync{Upstream: -1, Downstream: -1}
		for _, r := range rs {
			for len(copied) > 0 && !same(r, copied[0]) {
				copied = copied[1:]
			}
			if len(copied) == 0 {
				e.Errorf("%s, partition %d: %d is not on the target, or not in order", r.Topic, p, r.Offset)
				break
			}
			for len(pairs) > 0 && pairs[0].Upstream <= r.Offset {
				before, pairs = pairs[0], pairs[1:]
			}
			at, translated := copied[0].Offset, before.Downstream
			if before.Upstream < r.Offset {
				translated++
			}
			if wrong := at - translated; wrong < 0 || wrong > max(lag, last(s.Target[p]).Offset-at) {
				e.Errorf("%s, partition %d: %d, at %d on the target, is translated to %d", r.Topic, p, r.Offset, at, translated)
			}
		}
	}
}

func last[T any](all []T) T { return all[len(all)-1] }

// same says whether there are both records, and one is a copy of the other.
func same(r, copied *kgo.Record) bool {
	return r != nil && copied != nil && compare.Diff(Comparable(r), Comparable(copied)) == ""
}

func byOffset(rs []*kgo.Record) map[int64]*kgo.Record {
	at := map[int64]*kgo.Record{}
	for _, r := range rs {
		at[r.Offset] = r
	}
	return at
}

// SyncedTopics makes topics at the source whose offsets are not those of their
// copies, each for another reason, and returns what goes on writing to them.
func (e *Env) SyncedTopics() (topics []string, more func()) {
	e.Helper()
	add := func(name string, partitions int32, configs ...string) string {
		e.Create(e.Source, e.Topic(name), partitions, configs...)
		topics = append(topics, e.Topic(name))
		return e.Topic(name)
	}
	compacted := add("compacted", 2, cleaned...)
	e.fillCompacted(compacted)
	plain := add("plain", 3) // one partition stays empty
	stage := 0
	put := func() {
		stage++ // no value comes twice
		name := fmt.Sprint("stage ", stage)
		e.Put(e.Source, plain, slices.Concat(Numbered(0, name, 1000), Numbered(1, name, 3))...)
		e.Put(e.Source, compacted, slices.Concat(Numbered(0, name, 20), Numbered(1, name, 150))...)
	}
	put()
	transactions := add("transactions", 3)
	e.fillTransactions(transactions)
	aborted := add("aborted", 1)
	producer := e.transactional("aborts")
	abort := func(topic string) {
		e.begin(producer)
		e.PutWith(producer, topic, Numbered(0, "aborted", 5)...)
		e.end(producer, false)
		e.Settled(topic)
	}
	abort(aborted)
	e.Trim(e.Source, plain, 0, 300) // the first record is not at 0
	return topics, func() {
		put()
		client := e.transactional("more")
		for range 3 {
			e.transact(client, transactions)
			put()
		}
		abort(transactions) // the log ends with what is not copied
		abort(aborted)
	}
}
