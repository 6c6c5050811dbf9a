package produce

import (
	"testing"

	"mirror/sidecar/batch"
	"mirror/sidecar/cluster"
	"mirror/sidecar/wire"
)

type nobody struct{}

func (nobody) Acknowledged(Ack)  {}
func (nobody) Refused(Refusal)   {}
func (nobody) Lost(error)        {}
func (nobody) Shed(int64) uint64 { return 0 }
func (nobody) Ready()            {}
func (nobody) Starved()          {}
func (nobody) Failed(error, int) {}

// What it costs a partition to store 32 batches of 16 KiB: waiting, merged where
// they are not compressed, taken, acknowledged.
func BenchmarkPartition(b *testing.B) {
	for name, codec := range map[string]batch.Codec{"merged": batch.None, "raw": batch.LZ4} {
		b.Run(name, func(b *testing.B) { benchPartition(b, codec) })
	}
}

func benchPartition(b *testing.B, codec batch.Codec) {
	const batches, records = 32, 16
	frames := wire.NewPool(64 << 20)
	producer := New(Options{Leaders: cluster.NewLeaders(nil), Frames: frames, Failed: func(error) {}})
	p := producer.Partition("t", 0, nobody{})
	p.Reset(Start{Producer: batch.Producer{ID: 1}})
	var w batch.Builder
	for range records {
		w.Add(batch.Record{Value: make([]byte, 1000)})
	}
	one, err := w.Build(nil, codec)
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(batches * len(one)))
	b.ReportAllocs()
	for b.Loop() {
		for i := range int64(batches) {
			e := Entry{Frame: frames.Get(len(one)), First: i * records, Last: (i+1)*records - 1, Sources: 1}
			e.Batch = e.Frame.Bytes()
			copy(e.Batch, one)
			p.push(0, e)
		}
		for s := p.take(1); s != nil; s = p.take(1) {
			s.held.Release()
			p.answer(s, answer{})
		}
	}
	if n := frames.InUse(); n != 0 {
		b.Errorf("%d bytes are held", n)
	}
}
