// Package positions keeps where a flow resumes, in MirrorMaker 2's own place
// and format: the compacted topic in which Kafka Connect keeps the source
// offsets of its connectors, on the target cluster. MirrorMaker can go on where
// mirror stopped, and the other way round.
//
// position.go and epochs.go have the model, codec.go the JSON of keys and values, topic.go
// makes and checks the topic, load.go reads it, save.go writes it, claim.go tells
// two mirrors that run at once who came last.
package positions

// Key names a partition by its source topic.
type Key struct {
	Topic     string
	Partition int32
}

// Position is how far a source partition is safe on the target.
//
// When Plain is set only Offset is known, and everything else is as in
// [Plain].
type Position struct {
	// Offset is the last source offset that is safe on the target; -1: nothing
	// yet. Copying resumes at Offset + 1.
	Offset int64
	// ProducerID, ProducerEpoch and Sequence are those of the last batch that
	// was written to the target partition: Sequence is that of its last record.
	// -1: none.
	ProducerID    int64
	ProducerEpoch int16
	Sequence      int32
	// TargetOffset is where the last record that was stored is on the target.
	// Before the producer has stored any it is one before the end that the target
	// had then: what it stores comes after. -1: from the beginning, or not known.
	TargetOffset int64
	// TargetTopicID and SourceTopicID are the topics' ids, zero where a cluster
	// has none (before Kafka 2.8).
	TargetTopicID, SourceTopicID [16]byte
	// SourceLeaderEpoch is the leader epoch of the source batch that holds
	// Offset; -1: not known.
	SourceLeaderEpoch int32
	// SourceEpochs is where the source's leader epochs began, up to Offset. Those
	// that a position does not have are not known.
	SourceEpochs Epochs
	// Plain says that MirrorMaker wrote the position: the offset alone. Save
	// ignores it.
	Plain bool
}

// Plain is the position of which only the offset is known.
func Plain(offset int64) Position {
	return Position{
		Offset: offset, ProducerID: -1, ProducerEpoch: -1, Sequence: -1,
		TargetOffset: -1, SourceLeaderEpoch: -1, Plain: true,
	}
}
