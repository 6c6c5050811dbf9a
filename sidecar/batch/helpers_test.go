package batch

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"math"
	"reflect"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"pgregory.net/rapid"
)

// rec is a record in a form that reflect.DeepEqual compares, null and empty apart.
type rec struct {
	Attributes int8
	Offset     int64
	Timestamp  int64
	Key, Value []byte
	Headers    []kgo.RecordHeader
}

type failer interface {
	Helper()
	Fatalf(format string, args ...any)
}

const testLimit = 1 << 20

// records reads b with the package's own iterator.
func records(t failer, b Batch) (out []rec) {
	t.Helper()
	for r, err := range b.Records(testLimit) {
		if err != nil {
			t.Fatalf("%v: %v", b, err)
		}
		c := rec{Attributes: r.Attributes, Offset: r.Offset, Timestamp: r.Timestamp, Key: bytes.Clone(r.Key), Value: bytes.Clone(r.Value)}
		for k, v := range r.Headers.All() {
			c.Headers = append(c.Headers, kgo.RecordHeader{Key: k, Value: bytes.Clone(v)})
		}
		out = append(out, c)
	}
	return out
}

// independent reads a record set with franz-go, which knows no record attributes.
func independent(t failer, set []byte) (out []rec) {
	t.Helper()
	p := kmsg.NewFetchResponseTopicPartition()
	p.RecordBatches = set
	fp, _ := kgo.ProcessFetchPartition(kgo.ProcessFetchPartitionOpts{}, &p, kgo.DefaultDecompressor(), nil)
	if fp.Err != nil {
		t.Fatalf("franz-go reads: %v", fp.Err)
	}
	for _, r := range fp.Records {
		out = append(out, rec{Offset: r.Offset, Timestamp: r.Timestamp.UnixMilli(), Key: r.Key, Value: r.Value, Headers: r.Headers})
	}
	return out
}

// check verifies that b is a batch that a producer may send and that both readers find want in it.
func check(t failer, b Batch, want []rec) {
	t.Helper()
	if next, rest, err := Next(b); err != nil || len(rest) != 0 || len(next) != len(b) {
		t.Fatalf("%v: Next cuts %d of %d bytes: %v", b, len(next), len(b), err)
	}
	if err := b.Verify(); err != nil {
		t.Fatalf("%v: %v", b, err)
	}
	if !b.Dense() || b.BaseOffset() != 0 || b.LeaderEpoch() != -1 || b.Attributes()&^codecMask != 0 || int(b.Count()) != len(want) {
		t.Fatalf("header of a batch of %d records to send: %v", len(want), b)
	}
	latest := want[0].Timestamp
	for _, r := range want {
		latest = max(latest, r.Timestamp)
	}
	if b.MaxTimestamp() != latest {
		t.Fatalf("max timestamp %d, want %d", b.MaxTimestamp(), latest)
	}
	same(t, "own reader", records(t, b), want)
	plain := make([]rec, len(want))
	for i, r := range want {
		plain[i] = r
		plain[i].Attributes = 0
	}
	same(t, "franz-go", independent(t, b), plain)
}

func same(t failer, who string, got, want []rec) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s finds %d records, want %d", who, len(got), len(want))
	}
	for i := range got {
		if !reflect.DeepEqual(got[i], want[i]) {
			t.Fatalf("%s: record %d is\n%+v, want\n%+v", who, i, got[i], want[i])
		}
	}
}

// dense gives rs as they are at offsets from 0 on.
func dense(rs []rec) []rec {
	out := make([]rec, len(rs))
	for i, r := range rs {
		r.Offset = int64(i)
		out[i] = r
	}
	return out
}

// source is a batch in a log, written by franz-go's encoder.
type source struct {
	codec      Codec
	base       int64 // offset
	lastDelta  int32
	timestamp  int64 // base
	appended   int64 // when, if the attributes have logAppendTimeBit
	attributes int16 // beside the codec
	producer   Producer
	sequence   int32
	records    []rec
}

func (s source) batch(t failer) Batch {
	t.Helper()
	var body []byte
	latest := int64(math.MinInt64)
	for _, r := range s.records {
		latest = max(latest, r.Timestamp)
		k := kmsg.Record{Attributes: r.Attributes, TimestampDelta64: r.Timestamp - s.timestamp, OffsetDelta: int32(r.Offset - s.base), Key: r.Key, Value: r.Value}
		for _, h := range r.Headers {
			k.Headers = append(k.Headers, kmsg.Header{Key: h.Key, Value: h.Value})
		}
		one := k.AppendTo(nil) // the length is that of what follows it, one byte while it is 0
		k.Length = int32(len(one) - 1)
		body = k.AppendTo(body)
	}
	if s.attributes&logAppendTimeBit != 0 {
		latest = s.appended
	}
	k := kmsg.RecordBatch{
		FirstOffset: s.base, Length: headerSize - prefixSize, PartitionLeaderEpoch: 5, Magic: 2, Attributes: s.attributes | int16(s.codec),
		LastOffsetDelta: s.lastDelta, FirstTimestamp: s.timestamp, MaxTimestamp: latest, ProducerID: s.producer.ID,
		ProducerEpoch: s.producer.Epoch, FirstSequence: s.sequence, NumRecords: int32(len(s.records)),
		Records: kgoCompress(t, body, s.codec),
	}
	k.Length += int32(len(k.Records))
	return seal(k.AppendTo(nil))
}

// seal sets the checksum of a batch or of a message.
func seal(b Batch) Batch {
	if b.legacy() {
		binary.BigEndian.PutUint32(b[12:], crc32.ChecksumIEEE(b[16:]))
	} else {
		binary.BigEndian.PutUint32(b[17:], crc32.Checksum(b[21:], crc32.MakeTable(crc32.Castagnoli)))
	}
	return b
}

func kgoCompress(t failer, p []byte, c Codec) []byte {
	t.Helper()
	if c == None {
		return p
	}
	codec := [...]kgo.CompressionCodec{Gzip: kgo.GzipCompression(), Snappy: kgo.SnappyCompression(), LZ4: kgo.Lz4Compression(), Zstd: kgo.ZstdCompression()}[c]
	w, err := kgo.DefaultCompressor(codec)
	if err != nil {
		t.Fatalf("%v: %v", c, err)
	}
	out, used := w.Compress(new(bytes.Buffer), p)
	if Codec(used) != c {
		t.Fatalf("franz-go compresses with %v instead of %v", used, c)
	}
	return bytes.Clone(out)
}

func drawBytes(t *rapid.T, label string) []byte {
	if rapid.IntRange(0, 3).Draw(t, label+" null") == 0 {
		return nil
	}
	return append([]byte{}, rapid.SliceOfN(rapid.Byte(), 0, 300).Draw(t, label)...)
}

// drawSource makes any batch of records that a log may hold; with holes, records are missing anywhere. Timestamps stay
// within what franz-go can read.
func drawSource(t *rapid.T, holes bool, codecs ...Codec) source {
	s := source{
		codec:      rapid.SampledFrom(codecs).Draw(t, "codec"),
		base:       rapid.Int64Range(0, 1<<50).Draw(t, "base offset"),
		timestamp:  rapid.Int64Range(-4e12, 4e12).Draw(t, "base timestamp"),
		attributes: int16(rapid.SampledFrom([]int{0, 0, transactionalBit, logAppendTimeBit, deleteHorizonBit}).Draw(t, "attributes")),
		producer:   Producer{rapid.Int64().Draw(t, "producer id"), rapid.Int16().Draw(t, "producer epoch")},
		sequence:   rapid.Int32().Draw(t, "sequence"),
	}
	offset := s.base
	for range rapid.IntRange(1, 12).Draw(t, "count") {
		if holes {
			offset += rapid.SampledFrom([]int64{0, 0, 0, 1, 200}).Draw(t, "hole")
		}
		r := rec{
			Attributes: rapid.Int8().Draw(t, "record attributes"), Offset: offset,
			Timestamp: s.timestamp + rapid.OneOf(rapid.Int64Range(-100, 100), rapid.Int64Range(-4e12, 4e12)).Draw(t, "timestamp delta"),
			Key:       drawBytes(t, "key"), Value: drawBytes(t, "value"),
		}
		for range rapid.SampledFrom([]int{0, 0, 1, 3}).Draw(t, "headers") {
			r.Headers = append(r.Headers, kgo.RecordHeader{Key: rapid.StringN(0, 70, 200).Draw(t, "header"), Value: drawBytes(t, "header value")})
		}
		s.records = append(s.records, r)
		offset++
	}
	s.lastDelta = int32(offset - 1 - s.base)
	if holes {
		s.lastDelta += rapid.SampledFrom([]int32{0, 0, 3}).Draw(t, "hole at the end")
	}
	if s.attributes&logAppendTimeBit != 0 {
		s.appended = rapid.Int64Range(1, 4e12).Draw(t, "time of the append")
	}
	return s
}

// seen is what a consumer sees of the source.
func (s source) seen() []rec {
	out := make([]rec, len(s.records))
	for i, r := range s.records {
		if s.attributes&logAppendTimeBit != 0 {
			r.Timestamp = s.appended
		}
		out[i] = r
	}
	return out
}

var allCodecs = []Codec{None, Gzip, Snappy, LZ4, Zstd}

func TestSourceIsWhatFranzGoReads(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawSource(t, true, allCodecs...)
		b := s.batch(t)
		if err := b.Verify(); err != nil {
			t.Fatal(err)
		}
		same(t, "own reader", records(t, b), s.seen())
		plain := s.seen()
		for i := range plain {
			plain[i].Attributes = 0
		}
		same(t, "franz-go", independent(t, b), plain)
	})
}
