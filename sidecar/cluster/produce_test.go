package cluster

import (
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// produce writes n records, one a second from the epoch on, to a partition.
func produce(t *testing.T, c *Cluster, topic string, partition int32, n int) {
	t.Helper()
	client, err := c.NewClient(kgo.RecordPartitioner(kgo.ManualPartitioner()))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	for i := range n {
		r := &kgo.Record{Topic: topic, Partition: partition, Value: []byte("v"), Timestamp: time.UnixMilli(int64(i) * 1000)}
		if err := client.ProduceSync(t.Context(), r).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}
}
