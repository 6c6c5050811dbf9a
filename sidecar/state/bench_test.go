package state

import (
	"context"
	"encoding/binary"
	"fmt"
	"log/slog"
	"runtime"
	"testing"

	"github.com/twmb/franz-go/pkg/kfake"

	"mirror/plugins"
	"mirror/sidecar/cluster"
	"mirror/sidecar/config"
)

// BenchmarkOpen is what a start reads: a thousand partitions of ten values of 4 KiB
// each, room for ten million entries of four bytes. heap-B/kept-B is what a byte of a
// key or value costs in memory.
func BenchmarkOpen(b *testing.B) {
	const partitions, chunks, chunk = 1000, 10, 4096
	fake, err := kfake.NewCluster(kfake.NumBrokers(1))
	if err != nil {
		b.Fatal(err)
	}
	defer fake.Close()
	c, err := cluster.Open(config.Cluster{Alias: "B", Bootstrap: fake.ListenAddrs(), ClientID: "mirror"}, slog.New(slog.DiscardHandler))
	if err != nil {
		b.Fatal(err)
	}
	defer c.Close()
	ctx := context.Background()
	open := func() *Topic {
		t, err := Open(ctx, Options{Cluster: c, Name: topic, Schema: "v1", Log: slog.New(slog.DiscardHandler)})
		if err != nil {
			b.Fatal(err)
		}
		return t
	}
	t := open()
	seed, kept := uint64(1), 0
	for p := range int32(partitions) {
		var changes []plugins.Change
		for n := range chunks {
			value := make([]byte, chunk)
			for i := range value { // little of it compresses
				seed = seed*6364136223846793005 + 1442695040888963407
				value[i] = byte(seed >> 56)
			}
			key := binary.BigEndian.AppendUint64([]byte("r"), uint64(n)*1_000_000)
			changes = append(changes, plugins.Change{Key: plugins.Key{Topic: fmt.Sprint("topic-", p%50), Partition: p / 50}, TopicID: ids, Name: key, Value: value})
			kept += len(key) + len(value)
		}
		if err := t.Write(ctx, changes); err != nil {
			b.Fatal(err)
		}
	}
	t.Close()
	heap := func() uint64 {
		runtime.GC()
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before := heap()
	for b.Loop() {
		if t != nil {
			t.Close()
		}
		t = open()
	}
	b.ReportMetric(float64(heap()-before)/float64(kept), "heap-B/kept-B")
	b.ReportMetric(float64(kept)/1e6, "kept-MB")
	if n := len(t.kept); n != partitions {
		b.Fatalf("%d partitions", n)
	}
	t.Close()
}
