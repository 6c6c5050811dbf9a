package produce

import (
	"mirror/sidecar/batch"
	"mirror/sidecar/wire"
)

// Entry is a batch that waits to be stored on the target, and the source
// offsets that are done with once it is.
type Entry struct {
	// Batch is what is sent: dense, magic 2. Its producer fields are set when it
	// is sent for the first time.
	Batch batch.Batch
	// Frame holds Batch's bytes. One count of it belongs to the entry, from Push
	// until the batch is acknowledged or dropped.
	Frame *wire.Frame
	// Runs are the source offsets of the records. Nil: one run from First.
	Runs []batch.Run
	// First is the first source offset covered, Last the last one. Offsets
	// between them that no run has hold no record (compacted away, control
	// batches, aborted data).
	First, Last int64
	// LeaderEpoch is the source's, of the last batch covered.
	LeaderEpoch int32
	// Sources is the number of source batches in it.
	Sources int
	// Reason is why the records were decoded, "": they were not.
	Reason batch.Reason
}

// Split parts what e says of the source after the first n records. The batches
// and frames of the parts are up to the caller.
func (e *Entry) Split(n int32) (head, tail Entry) {
	head, tail = *e, *e
	head.Runs, tail.Runs = splitRuns(e.runs(), n)
	head.Last = e.Offset(n - 1)
	tail.First = head.Last + 1
	head.Sources = 0 // counted once, with the last part
	return head, tail
}

// splitRuns parts rs after n records.
func splitRuns(rs []batch.Run, n int32) (a, b []batch.Run) {
	for _, r := range rs {
		k := min(n, r.Count)
		if k > 0 {
			a = append(a, batch.Run{Source: r.Source, Count: k})
		}
		if k < r.Count {
			b = append(b, batch.Run{Source: r.Source + int64(k), Count: r.Count - k})
		}
		n -= k
	}
	return a, b
}

// Offset is the source offset of the i-th record.
func (e *Entry) Offset(i int32) int64 {
	for _, r := range e.runs() {
		if i < r.Count {
			return r.Source + int64(i)
		}
		i -= r.Count
	}
	return e.Last
}

// runs is never nil.
func (e *Entry) runs() []batch.Run {
	if e.Runs != nil {
		return e.Runs
	}
	return []batch.Run{{Source: e.First, Count: e.Batch.Count()}}
}

// sent is an entry that has a sequence.
type sent struct {
	Entry
	sequence int32
	count    int32
	merged   bool
	tries    int
	stored   bool  // acknowledged although one before it failed
	unsure   bool  // a try failed in a way that does not tell whether it is stored
	aside    bool  // it is in a frame of its own
	base     int64 // its first target offset, once stored

	// For the request that take hands it to: the bytes are held for as long as
	// the request is written, even if the partition drops them meanwhile.
	topic [16]byte
	held  *wire.Frame
}

// Ack says that records are stored on the target, or, with a Count of 0, that
// source offsets need no storing.
type Ack struct {
	// Runs are the source offsets of the records, in order.
	Runs []batch.Run
	// Last is the last source offset that is done with.
	Last int64
	// LeaderEpoch is the source's, of the last batch covered.
	LeaderEpoch int32
	// Count records were stored from TargetOffset on; that is -1 where the
	// broker had the batch already and did not say from where.
	Count        int32
	TargetOffset int64
	// Producer and Sequence are those of the last record.
	Producer batch.Producer
	Sequence int32
	// Bytes is the size of the batch as it was sent, Held that of what still
	// waits or is on its way.
	Bytes, Held int
	// Sources is the number of source batches. Merged: they were copied into one
	// without being decoded. Reason: why they were decoded, "": they were not.
	Sources int
	Merged  bool
	Reason  batch.Reason
	// Timestamp is the largest of the records, in ms since the epoch; -1: they
	// have none.
	Timestamp int64
}

// Refusal says which record the target will not have.
type Refusal struct {
	Offset int64 // source offset
	Err    error
}

// Owner is told what becomes of a partition's batches. Its methods are called
// with the partition locked: they must be quick and must not call it back.
type Owner interface {
	// Acknowledged is called in the order of source offsets.
	Acknowledged(Ack)
	// Refused says that the partition has stopped and has dropped all it held;
	// it does nothing until Reset.
	Refused(Refusal)
	// Lost is Refused because the broker's idea of the sequence is not ours: what
	// it has stored has to be looked at.
	Lost(error)
	// Shed says that what is not stored has been dropped, from this source offset
	// on, so that it holds no memory while the target is out of reach. From now on
	// only pushes of the returned generation are taken, and none is wanted before
	// Ready.
	Shed(from int64) (generation uint64)
	// Ready ends a Shed: the leader is within reach.
	Ready()
	// Starved says that small batches wait because the link is long: Compact is
	// worth calling, by the goroutine that owns the source partition.
	Starved()
	// Failed says that storing failed for the n-th time in a row: the leader's
	// answer, its connection, or that there is none. It is tried again.
	Failed(err error, n int)
}
