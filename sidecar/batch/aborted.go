package batch

import (
	"cmp"
	"encoding/binary"
	"slices"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// Aborted tells which batches of one fetch response are data of aborted transactions. A broker sends those to a
// reader of committed data as well, with a list of the transactions (KIP-98, "Consumer").
type Aborted struct {
	pending []kmsg.FetchResponseTopicPartitionAbortedTransaction // by first offset
	active  map[int64]struct{}                                   // producers that are within an aborted transaction
}

// NewAborted takes the list of one partition of a response, in any order; it does not keep it. Each response's own
// list is enough.
func NewAborted(list []kmsg.FetchResponseTopicPartitionAbortedTransaction) *Aborted {
	if len(list) == 0 {
		return &Aborted{}
	}
	pending := slices.Clone(list)
	slices.SortStableFunc(pending, func(x, y kmsg.FetchResponseTopicPartitionAbortedTransaction) int {
		return cmp.Compare(x.FirstOffset, y.FirstOffset)
	})
	return &Aborted{pending: pending, active: make(map[int64]struct{})}
}

// Covers tells whether b is data of an aborted transaction. It must be called for each batch of the response in
// order, control batches too. A producer's aborted transaction lasts from its first offset to its abort marker; only
// the id counts, for the marker's epoch may be one higher than the data's. A commit marker ends nothing here: it
// belongs to another transaction.
func (a *Aborted) Covers(b Batch) bool {
	for len(a.pending) > 0 && a.pending[0].FirstOffset <= b.LastOffset() {
		a.active[a.pending[0].ProducerID] = struct{}{}
		a.pending = a.pending[1:]
	}
	if b.Control() {
		if m, err := b.marker(); err == nil && m == markerAbort {
			delete(a.active, b.ProducerID())
		}
		return false
	}
	if !b.Transactional() {
		return false
	}
	_, covered := a.active[b.ProducerID()]
	return covered
}

// Types of control records: the second int16 of the key, after the version. 1 is a commit.
const (
	markerNone  int16 = -1 // no record is left
	markerAbort int16 = 0
)

// marker gives the type of a control batch, which is that of its first record.
func (b Batch) marker() (int16, error) {
	if b.Codec() != None {
		return 0, corrupt("compressed control batch")
	}
	s, err := scan(b, b.body())
	if err != nil {
		return 0, err
	}
	if s.left == 0 {
		return markerNone, nil
	}
	r, err := s.next()
	if err != nil {
		return 0, err
	}
	key := r.record().Key
	if len(key) < 4 {
		return 0, corrupt("control record with a key of %d bytes", len(key))
	}
	return int16(binary.BigEndian.Uint16(key[2:])), nil
}
