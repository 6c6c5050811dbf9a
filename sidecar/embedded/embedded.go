// Package embedded runs a Kafka cluster inside the process, on loopback and in
// memory: for the demo, for the default config and for tests. It is kfake with
// one broker, made fit to run for long.
package embedded

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
)

const (
	// retentionBytes bounds a partition whose topic does not set
	// retention.bytes itself.
	retentionBytes = 64 << 20
	// segmentBytes is small, because memory is given back by whole segments.
	segmentBytes = 1 << 20
	// cleanEvery is how often retention and compaction run. A partition holds
	// what is written meanwhile on top of its retention.
	cleanEvery = 2 * time.Second
)

// Cluster is a running cluster. Its topics are gone when it is closed.
//
// Memory: a partition keeps retention.bytes of its topic, 64 MiB if that is
// not set, and what is written within two seconds. That holds for compacted
// topics too: kfake applies retention.bytes to them as well, after compaction.
// Whoever creates many partitions should set retention.bytes at creation.
//
// Topics are made by CreateTopics only, never by a mere request for metadata.
type Cluster struct {
	kafka *kfake.Cluster
	addrs []string
	stop  context.CancelFunc
	work  sync.WaitGroup
}

// Start runs a cluster until Close. The alias is its cluster id, as in
// "embedded-primary".
func Start(alias string) (*Cluster, error) {
	kafka, err := kfake.NewCluster(
		kfake.Ports(0),
		kfake.ClusterID("embedded-"+alias),
		kfake.DefaultNumPartitions(1),
		kfake.BrokerConfigs(map[string]string{
			"default.replication.factor": "1",
			"log.retention.bytes":        fmt.Sprint(retentionBytes),
			"log.segment.bytes":          fmt.Sprint(segmentBytes),
		}),
	)
	if err != nil {
		return nil, fmt.Errorf("start the embedded cluster %q: %w", alias, err)
	}
	ctx, stop := context.WithCancel(context.Background())
	c := &Cluster{kafka: kafka, addrs: kafka.ListenAddrs(), stop: stop}
	c.work.Go(func() { c.clean(ctx) })
	return c, nil
}

// Bootstrap is the addresses of the brokers, "127.0.0.1:port".
func (c *Cluster) Bootstrap() []string { return c.addrs }

// Close stops the cluster, which then closes its connections. What it held is
// lost.
func (c *Cluster) Close() {
	c.stop()
	c.work.Wait()
	c.kafka.Close()
}

// clean does what kfake itself does only for topics that set a policy of their
// own, and once an hour.
func (c *Cluster) clean(ctx context.Context) {
	tick := time.NewTicker(cleanEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			c.kafka.Compact() // and retention
		case <-ctx.Done():
			return
		}
	}
}
