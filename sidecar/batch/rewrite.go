package batch

import "encoding/binary"

// Producer is who a batch is produced as: an id and an epoch from InitProducerId (KIP-98).
type Producer struct {
	ID    int64
	Epoch int16
}

// NoProducer is a producer without idempotence. Its sequence is [NoSequence].
var NoProducer = Producer{ID: -1, Epoch: -1}

// NoSequence is the base sequence of a batch of [NoProducer].
const NoSequence = -1

// Rewrite turns a batch of magic 2, in place, into one that a producer may send: base offset 0, no leader epoch, of
// the attributes the codec alone, the producer's fields, and the checksum that goes with these. The records stay as they are, and are not looked at: if
// the checksum was wrong, it still is. What must not be sent so, [Decide] tells: above all a control batch, which would come out as data. On a message of magic 0
// or 1 it does nothing.
//
// The rest of the attributes must go: a broker refuses the transactional and control bits outside a transaction, and
// a delete horizon would let the target drop tombstones early.
func (b Batch) Rewrite(p Producer, sequence int32) {
	if b.legacy() {
		return
	}
	before := b.headerSum()
	binary.BigEndian.PutUint64(b, 0)
	binary.BigEndian.PutUint32(b[leaderEpochAt:], ^uint32(0))
	binary.BigEndian.PutUint16(b[attributesAt:], uint16(b.Attributes()&codecMask))
	binary.BigEndian.PutUint64(b[producerIDAt:], uint64(p.ID))
	binary.BigEndian.PutUint16(b[producerEpochAt:], uint16(p.Epoch))
	binary.BigEndian.PutUint32(b[baseSequenceAt:], uint32(sequence))
	b.reseal(before)
}

// NextSequence is the base sequence of the batch after one of n records at seq: sequences wrap to 0 after 2^31-1.
func NextSequence(seq, n int32) int32 {
	return int32((int64(seq) + int64(n)) & 0x7fffffff)
}
