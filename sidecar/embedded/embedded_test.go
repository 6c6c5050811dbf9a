package embedded

import (
	"bytes"
	"context"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func start(t *testing.T) (*Cluster, *kgo.Client) {
	t.Helper()
	c, err := Start("primary")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	client, err := kgo.NewClient(kgo.SeedBrokers(c.Bootstrap()...),
		kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.ProducerBatchCompression(kgo.NoCompression()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	return c, client
}

func TestClusterKeepsWhatIsWritten(t *testing.T) {
	_, client := start(t)
	ctx := context.Background()
	if _, err := kadm.NewClient(client).CreateTopic(ctx, 2, 1, nil, "orders"); err != nil {
		t.Fatal(err)
	}
	if err := client.ProduceSync(ctx, &kgo.Record{Topic: "orders", Partition: 1, Value: []byte("v")}).FirstErr(); err != nil {
		t.Fatal(err)
	}
	ends, err := kadm.NewClient(client).ListEndOffsets(ctx, "orders")
	if err != nil {
		t.Fatal(err)
	}
	for partition, want := range []int64{0, 1} {
		if end, _ := ends.Lookup("orders", int32(partition)); end.Offset != want {
			t.Errorf("partition %d ends at %d, want %d", partition, end.Offset, want)
		}
	}
	meta, err := kadm.NewClient(client).BrokerMetadata(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if meta.Cluster != "embedded-primary" || len(meta.Brokers) != 1 {
		t.Errorf("cluster id %q with %d brokers", meta.Cluster, len(meta.Brokers))
	}
}

func TestTopicsAreNotMadeByAsking(t *testing.T) {
	_, client := start(t)
	admin := kadm.NewClient(client)
	topics, err := admin.ListTopics(context.Background(), "orders")
	if err != nil {
		t.Fatal(err)
	}
	if topics.Has("orders") {
		t.Error("asking for the topic made it")
	}
}

// kfake itself cleans once an hour, and not at all in a cluster whose topics
// set no policy.
func TestMemoryIsBounded(t *testing.T) {
	for name, configs := range map[string]map[string]*string{
		"retention of the topic":   {"retention.bytes": kadm.StringPtr("1048576")},
		"retention of the cluster": nil,
		"compaction":               {"cleanup.policy": kadm.StringPtr("compact"), "retention.bytes": kadm.StringPtr("-1")},
	} {
		t.Run(name, func(t *testing.T) {
			_, client := start(t)
			ctx := context.Background()
			admin := kadm.NewClient(client)
			lower := kadm.AlterConfig{Op: kadm.SetConfig, Name: "log.retention.bytes", Value: kadm.StringPtr("1048576")}
			if _, err := admin.AlterBrokerConfigs(ctx, []kadm.AlterConfig{lower}); err != nil {
				t.Fatal(err)
			}
			if _, err := admin.CreateTopic(ctx, 1, 1, configs, "orders"); err != nil {
				t.Fatal(err)
			}
			value := bytes.Repeat([]byte("x"), 256<<10)
			for range 16 { // 4 MiB, of one key
				if err := client.ProduceSync(ctx, &kgo.Record{Topic: "orders", Key: []byte("k"), Value: value}).FirstErr(); err != nil {
					t.Fatal(err)
				}
			}
			// 1 MiB holds three of these batches.
			waitFor(t, "the first 12 records to go", func() bool {
				starts, err := admin.ListStartOffsets(ctx, "orders")
				if err != nil {
					t.Fatal(err)
				}
				start, _ := starts.Lookup("orders", 0)
				return start.Offset >= 12
			})
		})
	}
}

func waitFor(t *testing.T, what string, ok func() bool) {
	t.Helper()
	deadline := time.After(10 * cleanEvery)
	for tick := time.Tick(20 * time.Millisecond); !ok(); {
		select {
		case <-tick:
		case <-deadline:
			t.Fatalf("waited in vain for %s", what)
		}
	}
}
