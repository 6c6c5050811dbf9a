package demo

import (
	"context"
	"fmt"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// topic is one source topic and the traffic it gets.
type topic struct {
	name       string
	what       string // a few words for the summary
	partitions int32
	share      float64 // of all records
	codec      kgo.CompressionCodec
	compacted  bool
	// transactions says that its records come in transactions of two
	// producers at a time, of which some are aborted.
	transactions bool
	record       func(*faker) *kgo.Record // without topic
}

// topics cover what a mirror meets. The shares add up to 1.
var topics = []topic{
	{name: "orders", what: "keys, headers", partitions: 6, share: 0.28, codec: kgo.NoCompression(), record: (*faker).order},
	{name: "clicks", what: "no keys, small records", partitions: 4, share: 0.24, codec: kgo.NoCompression(), record: (*faker).click},
	{name: "customers", what: "compacted, tombstones", partitions: 2, share: 0.08, codec: kgo.NoCompression(), compacted: true, record: (*faker).customer},
	{name: "payments", what: "transactions, some aborted", partitions: 3, share: 0.10, codec: kgo.NoCompression(), transactions: true, record: (*faker).payment},
	{name: "logs-gzip", what: "gzip", partitions: 2, share: 0.06, codec: kgo.GzipCompression(), record: (*faker).logLine},
	{name: "logs-snappy", what: "snappy", partitions: 2, share: 0.06, codec: kgo.SnappyCompression(), record: (*faker).logLine},
	{name: "logs-lz4", what: "lz4", partitions: 2, share: 0.06, codec: kgo.Lz4Compression(), record: (*faker).logLine},
	{name: "logs-zstd", what: "zstd", partitions: 2, share: 0.06, codec: kgo.ZstdCompression(), record: (*faker).logLine},
	{name: "oddities", what: "null and empty keys, values, headers", partitions: 2, share: 0.06, codec: kgo.NoCompression(), record: (*faker).oddity},
}

// Memory stays bounded in a long run because each partition keeps little, and
// correct because the traffic waits when a topic gets as far ahead of the
// comparison as maxAhead records, which fit even if they all are in one
// partition.
const (
	retentionBytes = 1 << 20
	segmentBytes   = 256 << 10
	maxAhead       = 3000
)

func createTopics(ctx context.Context, source *kgo.Client) error {
	admin := kadm.NewClient(source)
	for _, t := range topics {
		configs := map[string]*string{
			"retention.bytes": kadm.StringPtr(fmt.Sprint(retentionBytes)),
			"segment.bytes":   kadm.StringPtr(fmt.Sprint(segmentBytes)),
		}
		if t.compacted {
			configs["cleanup.policy"] = kadm.StringPtr("compact")
		}
		if _, err := admin.CreateTopic(ctx, t.partitions, 1, configs, t.name); err != nil {
			return fmt.Errorf("create the topic %s on the source: %w", t.name, err)
		}
	}
	return nil
}
