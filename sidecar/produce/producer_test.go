package produce

import (
	"errors"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/kversion"

	"mirror/sidecar/batch"
)

func TestPartitionsOfABrokerShareRequests(t *testing.T) {
	b := newBench(t, kfake.NumBrokers(1))
	b.create("t", 20, nil)
	seen := b.requests()
	var ss []*source
	var ps []*Partition
	for n := range int32(20) {
		s := b.partition("t", n)
		ss, ps = append(ss, s), append(ps, s.p)
		s.push(batch.None, 2)
		s.push(batch.None, 1)
		s.push(batch.LZ4, 3)
	}
	b.run(ps...)
	for _, s := range ss {
		s.stored()
	}
	// All waited when the first request went out: the first two batches of each,
	// merged, and the third in another one, for one is all a request takes of a
	// partition.
	if n := len(seen()); n > 4 {
		t.Errorf("%d requests for 20 partitions with two batches each", n)
	}
	for _, r := range seen() {
		taken := map[int32]bool{}
		for _, rt := range r.Topics {
			for _, rp := range rt.Partitions {
				if taken[rp.Partition] {
					t.Errorf("partition %d is twice in a request", rp.Partition)
				}
				taken[rp.Partition] = true
			}
		}
	}
	a := ss[0].acks
	if len(a) != 2 || !a[0].Merged || a[0].Sources != 2 || a[0].Count != 3 || a[0].TargetOffset != 0 ||
		a[1].Merged || a[1].Sources != 1 || a[1].TargetOffset != 3 || a[1].Sequence != 5 || a[1].Held != 0 {
		t.Errorf("acknowledged %+v", a)
	}
}

func TestAnswersAreFoundByIDAndByName(t *testing.T) {
	old := kversion.V3_0_0() // no topic ids in produce
	for name, opts := range map[string][]kfake.Opt{"id": nil, "name": {kfake.MaxVersions(old)}} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, opts...)
			b.create("t", 1, nil)
			b.create("u", 1, nil)
			seen := b.requests()
			s, u := b.partition("t", 0), b.partition("u", 0)
			b.run(s.p, u.p)
			for range 5 {
				s.push(batch.None, 1)
				u.push(batch.Zstd, 2)
			}
			s.stored()
			u.stored()
			if v := seen()[0].Version; (v >= 13) != (name == "id") {
				t.Errorf("version %d is used", v)
			}
		})
	}
}

// A topic without an id makes the request go by names, also for those with one.
func TestATopicWithoutAnIDGoesByName(t *testing.T) {
	b := newBench(t)
	b.create("t", 2, nil)
	seen := b.requests()
	s, u := b.partition("t", 0), b.partition("t", 1)
	u.p.Reset(Start{Generation: 1, Producer: batch.Producer{ID: 4711}})
	s.push(batch.None, 1)
	u.push(batch.None, 1)
	b.run(s.p, u.p)
	s.stored()
	u.stored()
	for _, r := range seen() {
		for _, rt := range r.Topics {
			if rt.TopicID == [16]byte{} && r.Version > 12 {
				t.Errorf("version %d for a topic without an id", r.Version)
			}
		}
	}
}

func TestALargeBatchIsSplitWhereTheTargetSaysSo(t *testing.T) {
	b := newBench(t)
	b.create("t", 1, map[string]string{"max.message.bytes": "3000"})
	s := b.partition("t", 0)
	b.run(s.p)
	for range 3 {
		s.p.Push(1, s.entry(batch.None, 20, 500))
		s.p.Send()
	}
	s.stored()
	for _, x := range b.batches("t", 0) {
		if len(x) > 3000 {
			t.Errorf("a batch of %d bytes is stored", len(x))
		}
	}
	// A record that is too large by itself is refused, and named.
	s.p.Push(1, s.entry(batch.None, 1, 10))
	s.p.Push(1, s.entry(batch.None, 1, 5000))
	s.p.Push(1, s.entry(batch.None, 1, 10))
	s.p.Send()
	s.until("the refusal", func() bool { return s.refused != nil })
	if s.refused.Offset != 61 || !errors.Is(s.refused.Err, kerr.MessageTooLarge) {
		t.Errorf("refused %+v", s.refused)
	}
	s.holds(61)
}

func TestWhatComesBeforeABadRecordIsStored(t *testing.T) {
	b := newBench(t)
	b.create("t", 1, nil)
	s := b.partition("t", 0)
	b.refuseRecord(t, 7)
	b.run(s.p)
	s.push(batch.None, 3)
	s.until("the first batch", func() bool { return s.acked == 2 })
	s.push(batch.Gzip, 8) // 3 to 10
	s.push(batch.Gzip, 2)
	s.until("the refusal", func() bool { return s.refused != nil })
	if s.refused.Offset != 7 || !errors.Is(s.refused.Err, kerr.InvalidRecord) {
		t.Errorf("refused %+v", s.refused)
	}
	if s.acked != 6 {
		t.Errorf("acknowledged up to %d, want 6", s.acked)
	}
	s.holds(7)
	eventually(t, "the memory of a refused partition", func() bool { return b.frames.InUse() == 0 }) // a request may still be being written
}

// refuseRecord has the cluster refuse batches with the record, as a broker does
// that names it.
func (b *bench) refuseRecord(t *testing.T, value int64) {
	b.ControlKey(int16(kmsg.Produce), func(q kmsg.Request) (kmsg.Response, error, bool) {
		req := q.(*kmsg.ProduceRequest)
		for _, rt := range req.Topics {
			for _, rp := range rt.Partitions {
				for i, v := range valuesOf(rp.Records) {
					if v != value {
						continue
					}
					b.KeepControl()
					resp := req.ResponseKind().(*kmsg.ProduceResponse)
					st := kmsg.NewProduceResponseTopic()
					st.Topic, st.TopicID = rt.Topic, rt.TopicID
					sp := kmsg.NewProduceResponseTopicPartition()
					sp.Partition, sp.ErrorCode, sp.BaseOffset = rp.Partition, kerr.InvalidRecord.Code, -1
					bad := kmsg.NewProduceResponseTopicPartitionErrorRecord()
					bad.RelativeOffset, bad.ErrorMessage = int32(i), kmsg.StringPtr("no good")
					sp.ErrorRecords = append(sp.ErrorRecords, bad)
					st.Partitions = append(st.Partitions, sp)
					resp.Topics = append(resp.Topics, st)
					return resp, nil, true
				}
			}
		}
		return nil, nil, false
	})
}
