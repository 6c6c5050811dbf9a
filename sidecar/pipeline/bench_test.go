package pipeline

import (
	"encoding/binary"
	"log/slog"
	"testing"

	"mirror/sidecar/batch"
	"mirror/sidecar/cluster"
	"mirror/sidecar/config"
	"mirror/sidecar/fetch"
	"mirror/sidecar/positions"
	"mirror/sidecar/produce"
)

// What a lane's goroutine does with an answer of 64 batches of 16 KiB, by the way
// that they take.
func BenchmarkPrepare(b *testing.B) {
	for name, codec := range map[string]batch.Codec{"raw none": batch.None, "raw lz4": batch.LZ4} {
		b.Run(name, func(b *testing.B) { benchPrepare(b, codec, 0) })
	}
	b.Run("reencode lz4", func(b *testing.B) { benchPrepare(b, batch.LZ4, 0x08) }) // LogAppendTime
}

func benchPrepare(b *testing.B, codec batch.Codec, attributes byte) {
	const batches, records = 64, 16
	quiet := slog.New(slog.DiscardHandler)
	nowhere, err := cluster.Open(config.Cluster{Alias: "A", Bootstrap: []string{"127.0.0.1:1"}}, quiet)
	if err != nil {
		b.Fatal(err)
	}
	defer nowhere.Close()
	f := New(Options{Config: config.Flow{From: "A", To: "B", Memory: 64 << 20, Lanes: 1}, Source: nowhere, Target: nowhere, Log: quiet})
	p := f.newPartition(positions.Key{Topic: "t"}, "A.t")
	start := produce.Start{Producer: batch.Producer{ID: 1}}
	p.dst.Reset(start)
	var set []byte
	for i := range batches {
		var w batch.Builder
		for range records {
			w.Add(batch.Record{Value: []byte(noise(1000))})
		}
		one, err := w.Build(nil, codec)
		if err != nil {
			b.Fatal(err)
		}
		x := batch.Batch(one)
		x.Rewrite(batch.NoProducer, batch.NoSequence)
		one[22] |= attributes
		binary.BigEndian.PutUint64(sealed(x), uint64(i*records)) // its offset is not under the checksum
		set = append(set, x...)
	}
	var t prepared
	b.SetBytes(int64(len(set)))
	b.ReportAllocs()
	for b.Loop() {
		frame := f.frames.Get(len(set))
		copy(frame.Bytes(), set)
		p.prepare(fetch.Data{Set: frame.Bytes(), Frame: frame, LeaderEpoch: -1}, &t)
		p.dst.Reset(start) // gives it all back
	}
}
