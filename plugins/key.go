package plugins

import (
	"mirror/abi"
)

// Key is a source topic-partition.
type Key struct {
	Topic     string
	Partition int32
}

// Event is something that happened to a partition.
type Event struct {
	Key
	Kind        abi.Event
	TargetTopic string

	LogStart  int64 // first offset of the source's log; -1: unknown
	Position  int64 // last source offset that is safe on the target, as saved; -1: none
	TargetEnd int64 // next offset of the target partition; -1: unknown

	TopicID, TargetTopicID [16]byte
}

func (e Event) entry() abi.Partition {
	return abi.Partition{Topic: e.Topic, TargetTopic: e.TargetTopic, Partition: e.Partition, Event: e.Kind,
		LogStart: e.LogStart, Position: e.Position, TargetEnd: e.TargetEnd, TopicID: e.TopicID, TargetTopicID: e.TargetTopicID}
}

// Range is a range of source offsets, both ends included, and what has become of it.
type Range struct {
	First, Last             int64
	TargetFirst, TargetLast int64  // -1: nothing was written
	MaxTimestamp            int64  // ms; -1: unknown or no records
	Records, Dropped        uint32 // written, and left out on purpose
	LeaderEpoch             int32  // of the source; -1: unknown
	Replay                  bool   // it was not copied now
}

// join appends b to r if both together say no less than they do one by one.
func (r *Range) join(b Range) bool {
	switch {
	case r.Replay || b.Replay || b.First != r.Last+1 || b.LeaderEpoch != r.LeaderEpoch:
		return false
	case r.TargetFirst < 0 && b.TargetFirst < 0:
	case r.TargetFirst < 0 || b.TargetFirst != r.TargetLast+1 || !r.whole() || !b.whole():
		return false
	}
	if uint64(r.Records)+uint64(b.Records) > 1<<31 || uint64(r.Dropped)+uint64(b.Dropped) > 1<<31 {
		return false
	}
	r.Last = b.Last
	if b.TargetFirst >= 0 {
		r.TargetLast = b.TargetLast
	}
	r.Records += b.Records
	r.Dropped += b.Dropped
	r.MaxTimestamp = max(r.MaxTimestamp, b.MaxTimestamp)
	return true
}

// whole says that source and target offsets map one to one.
func (r *Range) whole() bool {
	return r.Dropped == 0 && r.Last-r.First == r.TargetLast-r.TargetFirst
}

// Emit is what a plugin wants written.
type Emit struct {
	abi.Emit
	// About is the source partition that waits for it; without a topic: none does.
	About Key
}
