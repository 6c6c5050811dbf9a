package demo

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"mirror/sidecar/embedded"
)

func TestTraffic(t *testing.T) {
	cluster, err := embedded.Start(from)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cluster.Close)
	client, err := kgo.NewClient(kgo.SeedBrokers(cluster.Bootstrap()...))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	if err := createTopics(t.Context(), client); err != nil {
		t.Fatal(err)
	}
	// clicks is too far ahead to be written to.
	tr := newTraffic(t.Context(), cluster.Bootstrap(), 2000, func(topic string) int {
		if topic == "clicks" {
			return maxAhead
		}
		return maxAhead - 1
	})
	ctx, stop := context.WithTimeout(t.Context(), time.Second)
	defer stop()
	if err := tr.run(ctx); err != nil {
		t.Fatal(err)
	}

	admin := kadm.NewClient(client)
	for _, topic := range topics {
		ends, err := admin.ListEndOffsets(t.Context(), topic.name)
		if err != nil {
			t.Fatal(err)
		}
		var offsets int64
		ends.Each(func(o kadm.ListedOffset) { offsets += o.Offset })
		w := tr.written[topic.name]
		records := w.records.Load()
		switch {
		case topic.name == "clicks":
			if records != 0 || offsets != 0 {
				t.Errorf("clicks: %d records although it is far ahead", offsets)
			}
		case topic.transactions:
			markers := offsets - records - w.aborted.Load()
			ended := w.commits.Load() + w.abortions.Load()
			if w.commits.Load() == 0 || records == 0 || markers < 1 || markers > ended*int64(topic.partitions) {
				t.Errorf("%s: %d records in %d commits, %d aborted in %d, but %d offsets", topic.name, records, w.commits.Load(),
					w.aborted.Load(), w.abortions.Load(), offsets)
			}
		case records == 0 || records != offsets:
			t.Errorf("%s: counted %d records, the log has %d", topic.name, records, offsets)
		}
	}

	// All transactions have ended: what read-committed consumers see is all there is.
	stable, err := admin.ListCommittedOffsets(t.Context(), "payments")
	if err != nil {
		t.Fatal(err)
	}
	ends, err := admin.ListEndOffsets(t.Context(), "payments")
	if err != nil {
		t.Fatal(err)
	}
	stable.Each(func(o kadm.ListedOffset) {
		if end, _ := ends.Lookup(o.Topic, o.Partition); end.Offset != o.Offset {
			t.Errorf("payments/%d: stable up to %d of %d", o.Partition, o.Offset, end.Offset)
		}
	})
}

// A topic that refuses what is written ends the traffic with its name.
func TestTrafficTellsWhatIsRefused(t *testing.T) {
	cluster, err := embedded.Start(from)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cluster.Close)
	client, err := kgo.NewClient(kgo.SeedBrokers(cluster.Bootstrap()...))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	if err := createTopics(t.Context(), client); err != nil {
		t.Fatal(err)
	}
	small := kadm.AlterConfig{Op: kadm.SetConfig, Name: "max.message.bytes", Value: kadm.StringPtr("50")}
	if _, err := kadm.NewClient(client).AlterTopicConfigs(t.Context(), []kadm.AlterConfig{small}, "logs-gzip"); err != nil {
		t.Fatal(err)
	}
	err = newTraffic(t.Context(), cluster.Bootstrap(), 2000, func(string) int { return 0 }).run(t.Context())
	if !errors.Is(err, kerr.MessageTooLarge) || !strings.HasPrefix(err.Error(), "write to the source topic logs-gzip: ") {
		t.Error(err)
	}
}
