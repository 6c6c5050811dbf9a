package contract

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

// Odd is a source topic of a kind that a mirror may stumble over.
type Odd struct {
	Topic string
	// Stampless says that its records without a timestamp (-1) are its point.
	Stampless bool
	// Later is what happens to it once it is being copied; nil: nothing.
	Later func()
}

// longestName is what a broker takes as a topic's name; the target's begins with
// the source's alias.
const longestName = 249

// frozen keeps the log cleaner away from a topic, whatever its cleanup policy.
// The first may never be less than the second.
var frozen = []string{"max.compaction.lag.ms", "9223372036854775807", "min.compaction.lag.ms", "9223372036854775807", "min.cleanable.dirty.ratio", "1"}

// OddTopics makes topics of all kinds on the source. alias is the longest that
// the source has in the names of target topics.
func (e *Env) OddTopics(alias string) (all []Odd) {
	e.Helper()
	add := func(name string, partitions int32, configs ...string) string {
		e.Create(e.Source, e.Topic(name), partitions, configs...)
		all = append(all, Odd{Topic: e.Topic(name)})
		return e.Topic(name)
	}
	last := func() *Odd { return &all[len(all)-1] }

	add("empty", 3)
	e.fillNamed(add("dots.and_under-scores.v1", 2))
	e.fillNamed(add(strings.Repeat("x", longestName-len(alias+"."+e.Topic(""))), 1))

	topic := add("many-partitions", 50)
	for p := range int32(50) {
		e.Put(e.Source, topic, Numbered(p, fmt.Sprint(p), int(p%7))...) // some have none
	}
	growing := add("growing", 1)
	e.Put(e.Source, growing, Numbered(0, "first", 10)...)
	last().Later = func() {
		e.Grow(e.Source, growing, 4)
		client := e.Source.Client(e) // it knows of the new partitions
		for p := range int32(4) {
			e.PutWith(client, growing, Numbered(p, "grown", 10)...)
		}
	}
	e.fillCodecs(add("codecs", 3))
	e.fillCodecs(add("recompressed", 1, "compression.type", "gzip"))
	e.fillCodecs(add("append-time", 2, "message.timestamp.type", "LogAppendTime"))
	e.fillStampless(add("no-timestamp", 1))
	last().Stampless = true
	e.fillHeaders(add("headers", 1))
	e.fillLargest(add("largest", 1, "max.message.bytes", "4000000", "segment.bytes", "20000000"), 4_000_000)
	e.fillCut(add("cut", 2))
	topic = add("all-trimmed", 1)
	e.Put(e.Source, topic, Numbered(0, "gone", 20)...)
	e.Trim(e.Source, topic, 0, 20)

	e.fillTransactions(add("transactions", 3))
	e.fillMarkers(add("markers", 1))
	last().Later = e.openTransaction(add("opened", 1), false) // of the topic that add has just put there
	last().Later = e.openTransaction(add("hanging", 1), true)

	e.fillCompacted(add("compacted", 2, cleaned...))
	topic = add("configs", 2, "retention.ms", "864000000", "cleanup.policy", "compact,delete", "segment.bytes", "5000000",
		"delete.retention.ms", "1234567", "min.insync.replicas", "1", "unclean.leader.election.enable", "true",
		"message.timestamp.before.max.ms", "999999999999", "flush.messages", "12345")
	for p := range int32(2) {
		e.Put(e.Source, topic, Numbered(p, "kept", 50)...)
	}
	return all
}

func (e *Env) fillNamed(topic string) {
	e.Helper()
	e.Put(e.Source, topic, append(Numbered(0, "named", 20), smallOddRecords(0)...)...)
}

// fillCodecs has batches of all codecs, and every kind of record, in each partition.
func (e *Env) fillCodecs(topic string) {
	e.Helper()
	for p := range e.Ends(e.Source, topic) {
		for _, c := range codecs {
			client := e.Source.Client(e, kgo.ProducerBatchCompression(c.codec))
			e.PutWith(client, topic, oddRecords(int32(p))...)
			e.PutWith(client, topic, Numbered(int32(p), c.name, 100)...)
		}
	}
}

// fillStampless has records that say no time, among others.
func (e *Env) fillStampless(topic string) {
	e.Helper()
	for _, c := range codecs {
		rs := Numbered(0, c.name, 6)
		for i, r := range rs {
			if i%2 == 1 {
				r.Timestamp = time.UnixMilli(-1)
			}
		}
		e.PutWith(e.Source.Client(e, kgo.ProducerBatchCompression(c.codec)), topic, rs...)
	}
}

func (e *Env) fillHeaders(topic string) {
	e.Helper()
	many := &kgo.Record{Value: []byte("a thousand headers")}
	for i := range 1000 {
		many.Headers = append(many.Headers, kgo.RecordHeader{Key: fmt.Sprint("h", i%7), Value: bytes.Repeat([]byte{byte(i)}, i%50)})
	}
	text := func(values ...string) (hs []kgo.RecordHeader) {
		for _, v := range values {
			hs = append(hs, kgo.RecordHeader{Key: "h", Value: []byte(v)})
		}
		return hs
	}
	e.Put(e.Source, topic, many,
		// What looks like JSON, numbers or text in quotes stays as it is.
		&kgo.Record{Value: []byte("looks"), Headers: text("1", "1.50", "true", "null", `"quoted"`, `{"a": 1}`, "[1, 2]", "2026-01-02T03:04:05Z", " blanks ", "\x00\xff")},
		&kgo.Record{Value: []byte("no value"), Headers: []kgo.RecordHeader{{Key: "null"}, {Key: "empty", Value: []byte{}}, {Key: "null"}, {Key: ""}}},
		&kgo.Record{Value: []byte("long"), Headers: []kgo.RecordHeader{{Key: strings.Repeat("k", 5000), Value: make([]byte, 50_000)}, {Key: "ключ", Value: []byte("значение")}}})
}

// fillLargest has a batch of exactly as many bytes as the topic takes.
func (e *Env) fillLargest(topic string, limit int) {
	e.Helper()
	// A batch's header; then the record's length, attributes, timestamp delta,
	// offset delta, no key, the value's length, and no headers.
	const overhead = 61 + 4 + 1 + 1 + 1 + 1 + 4 + 1
	client := e.Source.Client(e, kgo.ProducerBatchMaxBytes(int32(limit)+1000), kgo.ProducerLinger(0))
	value := make([]byte, limit-overhead+1)
	rand.NewChaCha8([32]byte{4}).Read(value)
	err := client.ProduceSync(e.ctx, &kgo.Record{Topic: topic, Value: value}).FirstErr()
	if !errors.Is(err, kerr.MessageTooLarge) {
		e.Fatalf("a record of one byte more than %s takes: %v", topic, err)
	}
	// A record of a few bytes behind it would have MirrorMaker try for ever: its
	// producer puts both in one batch, which is too large, splits that, and does
	// it again.
	neighbour := strings.Repeat("not large ", 100)
	e.PutWith(client, topic, Values(0, neighbour)...)
	e.PutWith(client, topic, &kgo.Record{Value: value[1:]})
	e.PutWith(client, topic, Values(0, neighbour)...)
}

// fillCut has logs that begin in the middle of a batch.
func (e *Env) fillCut(topic string) {
	e.Helper()
	for p, codec := range []kgo.CompressionCodec{kgo.NoCompression(), kgo.ZstdCompression()} {
		client := e.Source.Client(e, kgo.ProducerBatchCompression(codec))
		e.PutWith(client, topic, append(Numbered(int32(p), "cut", 30), smallOddRecords(int32(p))...)...)
		if n := len(e.batches(e.Source, topic, int32(p))); n != 1 {
			e.Fatalf("%s/%d has %d batches, want one", topic, p, n)
		}
		e.Trim(e.Source, topic, int32(p), 17)
		e.PutWith(client, topic, Numbered(int32(p), "more", 5)...)
	}
}

// fillTransactions has transactions that overlap, each third of them aborted.
func (e *Env) fillTransactions(topic string) {
	e.Helper()
	const producers = 3
	var clients []*kgo.Client
	for i := range producers {
		clients = append(clients, e.transactional(fmt.Sprint("overlap-", i)))
	}
	for step := range 30 {
		c := clients[step%producers]
		if step >= producers {
			e.end(c, step%4 != 0)
		}
		e.begin(c)
		for p := range int32(3) {
			e.PutWith(c, topic, Numbered(p, fmt.Sprint("step ", step), 1+step%5)...)
		}
		e.Put(e.Source, topic, Numbered(int32(step%3), fmt.Sprint("between ", step), 2)...)
	}
	for i, c := range clients {
		e.end(c, i != 1)
	}
	e.Settled(topic)
}

// fillMarkers has control batches at both ends of the log.
func (e *Env) fillMarkers(topic string) {
	e.Helper()
	c := e.transactional("markers")
	for i, commit := range []bool{true, false, true, true, false} {
		e.begin(c)
		e.PutWith(c, topic, Values(0, fmt.Sprint("transaction ", i))...)
		e.end(c, commit)
	}
	e.Settled(topic)
	e.Trim(e.Source, topic, 0, 1)
}

// openTransaction leaves a transaction open, before what is written after it, and
// returns what ends it.
func (e *Env) openTransaction(topic string, commit bool) (end func()) {
	e.Helper()
	c := e.transactional(topic)
	e.Put(e.Source, topic, Values(0, "before")...)
	e.begin(c)
	e.PutWith(c, topic, Numbered(0, "inside", 10)...)
	e.Put(e.Source, topic, Numbered(0, "after", 10)...)
	return func() {
		e.end(c, commit)
		e.Settled(topic)
	}
}

// fillCompacted has logs that the cleaner has been through, and will not again,
// here or on a target with the same configs.
func (e *Env) fillCompacted(topic string) {
	e.Helper()
	for p, codec := range []kgo.CompressionCodec{kgo.NoCompression(), kgo.ZstdCompression()} {
		client := e.Source.Client(e, kgo.ProducerBatchCompression(codec))
		for _, tag := range []string{"one", "two"} {
			var rs []*kgo.Record
			for i := range 40 {
				if tag == "one" || i%3 == 0 {
					rs = append(rs, &kgo.Record{Partition: int32(p), Key: fmt.Appendf(nil, "key-%d", i), Value: bytes.Repeat([]byte(tag), 100)})
				}
			}
			e.PutWith(client, topic, append(rs, &kgo.Record{Partition: int32(p), Key: []byte("tombstone")})...)
		}
	}
	for p := range int32(2) {
		e.untilCleaned(topic, p, func(bs []header) bool { return len(bs) > 0 && bs[0].count < bs[0].lastDelta+1 })
	}
	for i := 0; i < len(frozen); i += 2 {
		e.SetConfig(e.Source, topic, frozen[i], frozen[i+1])
	}
}
