package resume

import (
	"errors"
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"mirror/sidecar/batch"
	"mirror/sidecar/positions"
)

const room = 1 << 20

// log is a partition's batches.
type log []Batch

func (l log) all(yield func(Batch, error) bool) {
	for _, b := range l {
		if !yield(b, nil) {
			return
		}
	}
}

// build makes a batch of records with these values at these offsets.
func build(t interface{ Fatal(...any) }, codec batch.Codec, base int64, values []string) batch.Batch {
	var w batch.Builder
	for i, v := range values {
		w.Add(batch.Record{Key: fmt.Append(nil, "k", v), Value: []byte(v), Timestamp: int64(1000 + i)})
	}
	b, err := w.Build(nil, codec)
	if err != nil {
		t.Fatal(err)
	}
	out := batch.Batch(b)
	out.Rewrite(batch.NoProducer, batch.NoSequence)
	setBase(out, base)
	return out
}

// setBase sets the base offset, which is outside the checksum.
func setBase(b batch.Batch, base int64) {
	for i := range 8 {
		b[i] = byte(base >> (56 - 8*i))
	}
}

var us = batch.Producer{ID: 9, Epoch: 1}

// mirrored turns source batches into what a mirror may have stored of them: raw,
// merged, split, in parts.
type mirrored struct {
	batches  log
	sequence int32
	end      int64
}

func (m *mirrored) add(b batch.Batch) {
	c := append(batch.Batch(nil), b...)
	c.Rewrite(us, m.sequence)
	m.sequence = batch.NextSequence(m.sequence, c.Count())
	setBase(c, m.end)
	m.end += int64(c.Count())
	m.batches = append(m.batches, Batch{Batch: c})
}

func TestEverythingStoredIsFound(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var source log
		var offsets []int64 // of the records that are copied
		var data []batch.Batch
		codecs := rapid.IntRange(0, 4)
		at := positions.Position{Offset: rapid.Int64Range(-1, 50).Draw(t, "position"), ProducerID: us.ID, ProducerEpoch: us.Epoch,
			Sequence: int32(rapid.SampledFrom([]int{-1, 0, 41, 2147483646, 2147483647}).Draw(t, "sequence")), TargetOffset: 100}
		offset := at.Offset + 1
		n := 0
		for range rapid.IntRange(0, 8).Draw(t, "batches") {
			var values []string
			for range rapid.IntRange(1, 5).Draw(t, "records") {
				values = append(values, fmt.Sprint("v", n))
				n++
			}
			b := build(t, batch.Codec(codecs.Draw(t, "codec")), offset, values)
			switch rapid.IntRange(0, 4).Draw(t, "kind") {
			case 0:
				source = append(source, Batch{Batch: b, Aborted: true})
			case 1: // compacted away: offsets without a batch
			default:
				source = append(source, Batch{Batch: b})
				data = append(data, b)
				for i := range values {
					offsets = append(offsets, offset+int64(i))
				}
			}
			offset += int64(len(values))
		}
		m := mirrored{sequence: batch.NextSequence(at.Sequence, 1), end: at.TargetOffset + 1}
		for i := 0; i < len(data); {
			switch k := rapid.IntRange(1, len(data)-i).Draw(t, "together"); {
			case k > 1 || rapid.Bool().Draw(t, "reencoded"):
				out, taken, err := batch.Concat(nil, data[i:i+k], room)
				if err != nil || taken != k {
					t.Fatal(taken, err)
				}
				if b := batch.Batch(out); b.Count() > 1 && rapid.Bool().Draw(t, "split") {
					b.Rewrite(us, 0)
					head, tail, err := batch.Halves(b, room)
					if err != nil {
						t.Fatal(err)
					}
					m.add(head)
					m.add(tail)
				} else {
					m.add(b)
				}
				i += k
			default:
				m.add(data[i])
				i++
			}
		}
		// The kill: some of it was stored. Others write to the topic as well.
		stored := m.batches[:rapid.IntRange(0, len(m.batches)).Draw(t, "stored")]
		target := log{}
		records := 0
		for _, b := range stored {
			if rapid.Bool().Draw(t, "somebody else's before it") {
				target = append(target, Batch{Batch: build(t, batch.None, 0, []string{"x"})})
			}
			target = append(target, b)
			records += int(b.Count())
		}

		f := Match(source.all, target.all, at, Options{MaxDecompressed: room})
		if f.Rest != nil {
			t.Fatal(f.Rest)
		}
		want := at
		if records > 0 {
			want.Offset = offsets[records-1]
			want.TargetOffset = stored[len(stored)-1].LastOffset()
			want.Sequence = batch.NextSequence(at.Sequence, int32(records))
			want.SourceLeaderEpoch = -1
		}
		if f.At != want {
			t.Fatalf("position %+v, want %+v", f.At, want)
		}
		i := 0
		for _, r := range f.Ranges {
			for k := range r.Count {
				if r.Source+k != offsets[i] || r.Target+k != at.TargetOffset+1+int64(i) {
					t.Fatalf("record %d: source %d is said to be at target %d, want %d at %d", i, r.Source+k, r.Target+k, offsets[i], at.TargetOffset+1+int64(i))
				}
				i++
			}
		}
		if i != records {
			t.Fatalf("%d records in the ranges, %d were stored", i, records)
		}
	})
}

func TestWhatIsNotTheSourcesIsNotSkipped(t *testing.T) {
	at := positions.Position{Offset: 9, ProducerID: us.ID, ProducerEpoch: us.Epoch, Sequence: -1, TargetOffset: 99}
	one, two := build(t, batch.None, 10, []string{"a", "b"}), build(t, batch.Zstd, 12, []string{"c", "d"})
	same := func(bs ...batch.Batch) log {
		m := mirrored{end: 100}
		for _, b := range bs {
			m.add(b)
		}
		return m.batches
	}
	gap := same(one, two)
	gap[1].Rewrite(us, 5)
	setBase(gap[1].Batch, 102)
	cases := []struct {
		name           string
		source, target log
		offset         int64 // of the position found
	}{
		{"another value", log{{Batch: one}, {Batch: two}}, same(one, build(t, batch.Zstd, 12, []string{"c", "x"})), 11},
		{"the source was compacted", log{{Batch: build(t, batch.None, 11, []string{"b"})}, {Batch: two}}, same(one, two), 9},
		{"the source is shorter", log{{Batch: one}}, same(one, two), 11},
		{"the target lost a batch", log{{Batch: one}, {Batch: two}}, gap, 11},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			f := Match(c.source.all, c.target.all, at, Options{MaxDecompressed: room})
			if !errors.Is(f.Rest, ErrMismatch) {
				t.Errorf("error %v, want a mismatch", f.Rest)
			}
			if f.At.Offset != c.offset {
				t.Errorf("position %d, want %d: only what matched may be skipped", f.At.Offset, c.offset)
			}
		})
	}
}

// A position in the middle of a batch: the target took the first part only.
func TestAPositionInsideABatch(t *testing.T) {
	whole := build(t, batch.None, 10, []string{"a", "b", "c"})
	m := mirrored{end: 51, sequence: 2}
	m.add(build(t, batch.None, 0, []string{"x", "y", "c"}))
	_, tail, err := batch.SplitAt(m.batches[0].Batch, 2, room)
	if err != nil {
		t.Fatal(err)
	}
	m = mirrored{end: 51, sequence: 2}
	m.add(tail)
	at := positions.Position{Offset: 11, ProducerID: us.ID, ProducerEpoch: us.Epoch, Sequence: 1, TargetOffset: 50}
	f := Match(log{{Batch: whole}}.all, m.batches.all, at, Options{MaxDecompressed: room})
	if f.Rest != nil || f.At.Offset != 12 || len(f.Ranges) != 1 || f.Ranges[0] != (Range{Source: 12, Target: 51, Count: 1}) {
		t.Fatalf("%+v", f)
	}
}

func TestTimestampsOfATargetThatStampsItself(t *testing.T) {
	s := build(t, batch.None, 0, []string{"a"})
	var w batch.Builder
	w.Add(batch.Record{Key: []byte("ka"), Value: []byte("a"), Timestamp: 77})
	b, err := w.Build(nil, batch.None)
	if err != nil {
		t.Fatal(err)
	}
	m := mirrored{}
	m.add(b)
	at := positions.Position{Offset: -1, ProducerID: us.ID, ProducerEpoch: us.Epoch, Sequence: -1, TargetOffset: -1}
	for _, stamps := range []bool{false, true} {
		f := Match(log{{Batch: s}}.all, m.batches.all, at, Options{MaxDecompressed: room, AppendTime: stamps})
		if (f.Rest == nil) != stamps {
			t.Errorf("target stamps %v: %v", stamps, f.Rest)
		}
	}
}
