package pipeline

import (
	"encoding/binary"
	"hash/crc32"
	"io"
	"math/rand/v2"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"mirror/sidecar/batch"
)

// made is a batch of the values, with timestamps from 1000 on.
func (s *side) made(codec batch.Codec, values ...string) batch.Batch {
	s.t.Helper()
	var w batch.Builder
	for i, v := range values {
		w.Add(batch.Record{Key: []byte("key"), Value: []byte(v), Timestamp: int64(1000 + i)})
	}
	b, err := w.Build(nil, codec)
	if err != nil {
		s.t.Fatal(err)
	}
	batch.Batch(b).Rewrite(batch.NoProducer, batch.NoSequence)
	return b
}

// write stores the values in one batch.
func (s *side) write(topic string, number int32, values ...string) {
	s.t.Helper()
	s.store(topic, number, s.made(batch.None, values...))
}

// store stores the batch as it is.
func (s *side) store(topic string, number int32, b batch.Batch) {
	s.t.Helper()
	if err := s.tryStore(topic, number, b); err != nil {
		s.t.Fatalf("store in %s-%d: %v", topic, number, err)
	}
}

// tryStore is store for who may be cut off meanwhile.
func (s *side) tryStore(topic string, number int32, b batch.Batch) error {
	info := s.TopicInfo(topic)
	req := kmsg.NewPtrProduceRequest()
	req.Acks, req.TimeoutMillis = -1, 10000
	rt := kmsg.NewProduceRequestTopic()
	rt.Topic, rt.TopicID = topic, info.TopicID
	rp := kmsg.NewProduceRequestTopicPartition()
	rp.Partition, rp.Records = number, b
	rt.Partitions = append(rt.Partitions, rp)
	req.Topics = append(req.Topics, rt)
	resp, err := s.cluster.Client().Broker(int(s.LeaderFor(topic, number))).RetriableRequest(s.t.Context(), req)
	if err == nil {
		err = kerr.ErrorForCode(resp.(*kmsg.ProduceResponse).Topics[0].Partitions[0].ErrorCode)
	}
	return err
}

// values are those of all records of the partition, in order; nil where there is
// no such topic.
func (s *side) values(topic string, number int32) (values []string) {
	s.t.Helper()
	info := s.PartitionInfo(topic, number)
	if info == nil {
		return nil
	}
	for offset := info.LogStartOffset; offset < info.HighWatermark; {
		set := s.fetch(topic, number, offset)
		if len(set) == 0 {
			return values // it was deleted meanwhile, or so
		}
		for {
			b, rest, err := batch.Next(set)
			if err == io.EOF || err == batch.ErrPartial {
				break
			}
			if err == nil {
				err = b.Verify()
			}
			if err != nil {
				s.t.Fatalf("%s-%d after offset %d: %v", topic, number, offset, err)
			}
			for r, err := range b.Records(64 << 20) {
				if err != nil {
					s.t.Fatal(err)
				}
				if r.Offset != offset {
					s.t.Fatalf("%s-%d has offset %d where %d is due", topic, number, r.Offset, offset)
				}
				offset++
				values = append(values, string(r.Value))
			}
			set = rest
		}
	}
	return values
}

func (s *side) fetch(topic string, number int32, offset int64) []byte {
	s.t.Helper()
	info := s.TopicInfo(topic)
	if info == nil {
		return nil
	}
	req := kmsg.NewPtrFetchRequest()
	req.MaxBytes = 64 << 20
	rt := kmsg.NewFetchRequestTopic()
	rt.Topic, rt.TopicID = topic, info.TopicID
	rp := kmsg.NewFetchRequestTopicPartition()
	rp.Partition, rp.FetchOffset, rp.PartitionMaxBytes = number, offset, 64<<20
	rt.Partitions = append(rt.Partitions, rp)
	req.Topics = append(req.Topics, rt)
	resp, err := s.cluster.Client().Broker(int(s.LeaderFor(topic, number))).RetriableRequest(s.t.Context(), req)
	if err != nil {
		return nil // it is asked again
	}
	for _, t := range resp.(*kmsg.FetchResponse).Topics {
		for _, p := range t.Partitions {
			return p.RecordBatches
		}
	}
	return nil
}

// later adds to the timestamps of the batch.
func later(b batch.Batch, ms int64) batch.Batch {
	for _, at := range []int{27, 35} { // base and max timestamp
		binary.BigEndian.PutUint64(b[at:], binary.BigEndian.Uint64(b[at:])+uint64(ms))
	}
	return sealed(b)
}

func at(ms int64) time.Time { return time.UnixMilli(ms) }

// sealed gives the batch a checksum that is right.
func sealed(b batch.Batch) batch.Batch {
	binary.BigEndian.PutUint32(b[17:], crc32.Checksum(b[21:], crc32.MakeTable(crc32.Castagnoli)))
	return b
}

// noise is a value that does not compress.
func noise(n int) string {
	b := make([]byte, n)
	rand.NewChaCha8([32]byte{}).Read(b)
	return string(b)
}
