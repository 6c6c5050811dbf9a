package contract

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"mirror/sidecar/status"
)

var recordScenarios = []Scenario{
	{Name: "records", Run: recordsArriveUnchanged},
	{Name: "backlog", Run: backlogIsMerged},
	{Name: "zip-bomb", Run: hugeBatchCrossesUnopened},
	{Name: "trimmed", Run: cutBatchStartsWhereTheLogDoes},
	{Name: "oversize", Run: batchesTooLargeForTheTargetAreSplit},
}

// codecs are all that a producer may choose, by their numbers in a batch.
var codecs = []struct {
	name  string
	codec kgo.CompressionCodec
}{
	{"none", kgo.NoCompression()},
	{"gzip", kgo.GzipCompression()},
	{"snappy", kgo.SnappyCompression()},
	{"lz4", kgo.Lz4Compression()},
	{"zstd", kgo.ZstdCompression()},
}

// oddRecords has every kind of record that a client can write: null and empty
// are not the same, header names may repeat, times need not rise.
func oddRecords(partition int32) []*kgo.Record {
	random := make([]byte, 300_000)
	rng := rand.NewChaCha8([32]byte{7})
	rng.Read(random)
	return append(smallOddRecords(partition), &kgo.Record{Partition: partition, Value: random},
		&kgo.Record{Partition: partition, Value: bytes.Repeat([]byte("again and again "), 20_000)})
}

// smallOddRecords are those of oddRecords that are not large.
func smallOddRecords(partition int32) []*kgo.Record {
	now := time.Now()
	h := func(key string, value []byte) kgo.RecordHeader { return kgo.RecordHeader{Key: key, Value: value} }
	rs := []*kgo.Record{
		{Key: []byte("key"), Value: []byte("value")},
		{Key: []byte("tombstone")},
		{Value: []byte("no key")},
		{},
		{Key: []byte{}, Value: []byte{}},
		{Value: []byte("headers"), Headers: []kgo.RecordHeader{h("a", []byte("1")), h("a", []byte("2")), h("", nil), h("empty", []byte{}), h("null", nil)}},
		{Value: []byte("epoch"), Timestamp: time.UnixMilli(0)},
		{Value: []byte("ten years ago"), Timestamp: now.AddDate(-10, 0, 0)},
		{Value: []byte("half an hour ahead"), Timestamp: now.Add(30 * time.Minute)},
		{Value: []byte{0, 255, 254, 128}, Key: []byte{0}},
	}
	for _, r := range rs {
		r.Partition = partition
	}
	return rs
}

func recordsArriveUnchanged(e *Env) {
	topic := e.Topic("t")
	const partitions = 3
	e.Create(e.Source, topic, partitions)
	m := e.Start()
	total := uint64(0)
	for _, c := range codecs {
		client := e.Source.Client(e, kgo.ProducerBatchCompression(c.codec))
		for p := range int32(partitions) {
			e.PutWith(client, topic, oddRecords(p)...)
			e.PutWith(client, topic, Numbered(p, c.name, 500)...)
			total += uint64(len(oddRecords(p))) + 500
		}
	}
	m.CaughtUp(topic)
	m.WantSame(topic)
	var records, skipped, copied uint64
	for _, p := range m.Status().Partitions {
		records += p.Records
		skipped += p.Batches[status.PathSkipped]
		copied += p.Batches[status.PathRaw] + p.Batches[status.PathMerged] + p.Batches[status.PathReencoded]
		if p.State != status.Running || p.Lag != 0 {
			e.Errorf("%s/%d is %s with a lag of %d at its end", p.Topic, p.Partition, p.State, p.Lag)
		}
	}
	if records != total || skipped != 0 || copied == 0 {
		e.Errorf("%d records acknowledged, %d batches copied, %d skipped; %d records were produced", records, copied, skipped, total)
	}
}

// A partition with many small uncompressed batches behind gets them in larger
// ones; nothing about the records changes.
func backlogIsMerged(e *Env) {
	topic := e.Topic("t")
	e.Create(e.Source, topic, 2)
	small := e.Source.Client(e, kgo.ProducerBatchMaxBytes(2<<10), kgo.MaxProduceRequestsInflightPerBroker(1))
	for p := range int32(2) {
		for range 10 {
			e.PutWith(small, topic, append(Numbered(p, fmt.Sprintf("%0300d", 0), 300), smallOddRecords(p)...)...)
		}
	}
	m := e.Start()
	m.CaughtUp(topic)
	m.WantSame(topic)
	for p := range int32(2) {
		s, _ := m.Partition(topic, p)
		if s.Batches[status.PathMerged] == 0 {
			e.Errorf("nothing of a backlog of small batches was merged: %v", s.Batches)
		}
	}
}

// A megabyte of zstd may hold a gigabyte. Nothing has to be opened to copy it.
func hugeBatchCrossesUnopened(e *Env) {
	topic := e.Topic("t")
	e.Create(e.Source, topic, 1)
	client := e.Source.Client(e, kgo.ProducerBatchCompression(kgo.ZstdCompression()), kgo.ProducerBatchMaxBytes(48<<20))
	e.PutWith(client, topic, &kgo.Record{Value: make([]byte, 40<<20)})
	e.Put(e.Source, topic, Values(0, "after")...)
	m := e.Start(Flow{Keys: `memory = "4MiB"`})
	m.CaughtUp(topic)
	m.WantSame(topic)
	if s, _ := m.Partition(topic, 0); s.Batches[status.PathReencoded] != 0 {
		e.Errorf("the batch was opened: %v", s.Batches)
	}
}

// DeleteRecords can leave the log's start inside a batch, which still comes whole.
func cutBatchStartsWhereTheLogDoes(e *Env) {
	topic := e.Topic("t")
	e.Create(e.Source, topic, int32(len(codecs)))
	for i, c := range codecs {
		client := e.Source.Client(e, kgo.ProducerBatchCompression(c.codec), kgo.ProducerLinger(0))
		e.PutWith(client, topic, append(Numbered(int32(i), "first", 10), smallOddRecords(int32(i))...)...)
		e.wantCodec(topic, int32(i), i)
		e.Trim(e.Source, topic, int32(i), 4)
	}
	m := e.Start()
	m.CaughtUp(topic)
	var want [][]string
	for range codecs {
		var left []string
		for _, r := range append(Numbered(0, "first", 10)[4:], smallOddRecords(0)...) {
			left = append(left, string(r.Value))
		}
		want = append(want, left)
	}
	e.WantValues(e.Target, m.TargetName(topic), want...)
	m.WantSame(topic)
}

// The target takes less in one batch than the source: batches are split. One
// record that is too large stops its partition alone, until somebody acts.
func batchesTooLargeForTheTargetAreSplit(e *Env) {
	topic := e.Topic("t")
	e.Create(e.Source, topic, 2, "max.message.bytes", "4000000")
	large := e.Source.Client(e, kgo.ProducerBatchMaxBytes(3<<20), kgo.ProducerLinger(0))
	rng := rand.NewChaCha8([32]byte{1})
	random := func(p int32, bytes, n int) (rs []*kgo.Record) {
		for range n {
			v := make([]byte, bytes)
			rng.Read(v)
			rs = append(rs, &kgo.Record{Partition: p, Value: v})
		}
		return rs
	}
	e.PutWith(large, topic, random(0, 1000, 2000)...)
	e.PutWith(large, topic, random(1, 1000, 10)...)
	e.PutWith(large, topic, random(1, 200_000, 1)...) // at offset 10
	e.PutWith(large, topic, random(1, 1000, 10)...)

	m := e.Start(Flow{Tables: "[flows.create]\nconfigs = { \"max.message.bytes\" = \"100000\" }"})
	m.Reached(topic, 0, 1999)
	m.Stalled(topic, 1, 10, "large")
	target := e.Read(e.Target, m.TargetName(topic))
	if n := len(target[0]); n != 2000 {
		e.Errorf("%d of 2000 records arrived of the partition with large batches", n)
	}
	if n := len(target[1]); n != 10 {
		e.Errorf("%d of the 10 records before the one that is too large arrived", n)
	}
	e.PutWith(large, topic, random(0, 1000, 10)...)
	m.Reached(topic, 0, 2009)

	e.SetConfig(e.Target, m.TargetName(topic), "max.message.bytes", "4000000")
	m.CaughtUp(topic)
	m.WantSame(topic)
}
