package batch

import (
	"bytes"
	"errors"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func TestRewrittenReadsTheSame(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawSource(t, false, allCodecs...)
		s.attributes &^= logAppendTimeBit
		b := s.batch(t)
		before := bytes.Clone(b)
		p := Producer{rapid.Int64().Draw(t, "id"), rapid.Int16().Draw(t, "epoch")}
		seq := rapid.Int32().Draw(t, "sequence")
		b.Rewrite(p, seq)
		if got := (Producer{b.ProducerID(), b.ProducerEpoch()}); got != p || b.BaseSequence() != seq {
			t.Fatalf("producer %v sequence %d, want %v %d", got, b.BaseSequence(), p, seq)
		}
		if !bytes.Equal(b[headerSize:], before[headerSize:]) || b.BaseTimestamp() != s.timestamp {
			t.Fatalf("the records have changed")
		}
		check(t, b, dense(s.seen()))
	})
}

func TestMergedReadsTheSame(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var bs []Batch
		var want []rec
		for range rapid.IntRange(1, 5).Draw(t, "batches") {
			s := drawSource(t, false, None)
			bs = append(bs, s.batch(t))
			want = append(want, s.seen()...)
		}
		prefix := []byte("kept")
		out, err := Merge(slices.Clone(prefix), bs)
		if err != nil {
			t.Fatal(err)
		}
		b := Batch(out[len(prefix):])
		if len(b) > MergedSize(bs) {
			t.Fatalf("%d bytes, and MergedSize says %d", len(b), MergedSize(bs))
		}
		if !bytes.HasPrefix(out, prefix) {
			t.Fatal("dst is not kept")
		}
		b.Rewrite(NoProducer, NoSequence)
		check(t, b, dense(want))
	})
}

// Timestamps may be anything, and a reader's sum wraps around. Only the own reader takes all of them.
func TestMergedTimestampsAreExact(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var bs []Batch
		var want []int64
		for range 3 {
			s := drawSource(t, false, None)
			s.attributes, s.timestamp = 0, rapid.Int64().Draw(t, "base timestamp")
			for i := range s.records {
				s.records[i].Timestamp = rapid.Int64().Draw(t, "timestamp")
				want = append(want, s.records[i].Timestamp)
			}
			bs = append(bs, s.batch(t))
		}
		out, err := Merge(nil, bs)
		if err != nil {
			t.Fatal(err)
		}
		if len(out) > MergedSize(bs) {
			t.Fatalf("%d bytes, and MergedSize says %d", len(out), MergedSize(bs))
		}
		var got []int64
		for _, r := range records(t, Batch(out)) {
			got = append(got, r.Timestamp)
		}
		if !slices.Equal(got, want) || Batch(out).MaxTimestamp() != slices.Max(want) {
			t.Fatalf("timestamps %v, max %d, want %v", got, Batch(out).MaxTimestamp(), want)
		}
	})
}

func TestReencodedReadsTheSame(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawSource(t, true, allCodecs...)
		o := ReencodeOptions{FetchOffset: s.base + rapid.Int64Range(-2, 6).Draw(t, "fetch offset"), MaxDecompressed: testLimit}
		prefix := []byte("kept")
		out, got, err := Reencode(slices.Clone(prefix), s.batch(t), o)
		if err != nil {
			t.Fatal(err)
		}
		checkReencoded(t, out, prefix, got, s.seen(), o.FetchOffset, s.codec)
	})
}

// checkReencoded checks the batch that follows prefix in out, and its runs, against the records of the source.
func checkReencoded(t failer, out, prefix []byte, got []Run, seen []rec, from int64, c Codec) {
	t.Helper()
	want := slices.DeleteFunc(seen, func(r rec) bool { return r.Offset < from })
	if len(want) == 0 {
		if !bytes.Equal(out, prefix) || len(got) != 0 {
			t.Fatalf("nothing is left, but runs are %v and %d bytes", got, len(out)-len(prefix))
		}
		return
	}
	var offsets []int64
	for i, r := range got {
		if i > 0 && got[i-1].Source+int64(got[i-1].Count) >= r.Source {
			t.Fatalf("runs touch: %v", got)
		}
		for k := range r.Count {
			offsets = append(offsets, r.Source+int64(k))
		}
	}
	if !slices.EqualFunc(offsets, want, func(o int64, r rec) bool { return o == r.Offset }) {
		t.Fatalf("runs %v of records %+v", got, want)
	}
	b := Batch(out[len(prefix):])
	b.Rewrite(NoProducer, NoSequence)
	if b.Codec() != c {
		t.Fatalf("codec %v, want %v", b.Codec(), c)
	}
	check(t, b, dense(want))
}

func TestConcatenatedReadsTheSame(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var bs []Batch
		var all [][]rec
		for range rapid.IntRange(1, 5).Draw(t, "batches") {
			s := drawSource(t, false, allCodecs...)
			bs = append(bs, s.batch(t))
			all = append(all, s.seen())
		}
		limit := rapid.SampledFrom([]int{testLimit, 10_000, 5_000}).Draw(t, "limit")
		out, taken, err := Concat(nil, bs, limit)
		if err != nil {
			if !errors.Is(err, ErrTooLarge) || taken != 0 || limit == testLimit {
				t.Fatalf("taken %d: %v", taken, err)
			}
			return
		}
		if taken < 1 || limit == testLimit && taken != len(bs) {
			t.Fatalf("%d of %d batches taken", taken, len(bs))
		}
		b := Batch(out)
		b.Rewrite(NoProducer, NoSequence)
		if b.Codec() != bs[0].Codec() {
			t.Fatalf("codec %v, want that of the first, %v", b.Codec(), bs[0].Codec())
		}
		check(t, b, dense(slices.Concat(all[:taken]...)))
	})
}

func TestSplitReadsTheSame(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawSource(t, false, allCodecs...)
		n := rapid.Int32Range(-1, int32(len(s.records))+1).Draw(t, "at")
		head, tail, err := SplitAt(s.batch(t), n, testLimit)
		if n <= 0 || int(n) >= len(s.records) {
			if !errors.Is(err, ErrIndivisible) {
				t.Fatalf("split %d records at %d: %v", len(s.records), n, err)
			}
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		checkSplit(t, s, head, tail, int(n))
	})
}

func TestHalvesReadTheSame(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawSource(t, false, allCodecs...)
		head, tail, err := Halves(s.batch(t), testLimit)
		if len(s.records) == 1 {
			if !errors.Is(err, ErrIndivisible) {
				t.Fatalf("halves of one record: %v", err)
			}
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		checkSplit(t, s, head, tail, int(head.Count()))
	})
}

func checkSplit(t failer, s source, head, tail Batch, n int) {
	t.Helper()
	for _, b := range []Batch{head, tail} {
		b.Rewrite(NoProducer, NoSequence)
		if b.Codec() != s.codec {
			t.Fatalf("codec %v, want %v", b.Codec(), s.codec)
		}
	}
	check(t, head, dense(s.seen()[:n]))
	check(t, tail, dense(s.seen()[n:]))
}

func TestBuiltReadsTheSame(t *testing.T) {
	var w Builder // used again and again
	rapid.Check(t, func(t *rapid.T) {
		s := drawSource(t, false, allCodecs...)
		for r, err := range s.batch(t).Records(testLimit) {
			if err != nil {
				t.Fatal(err)
			}
			w.Add(r)
		}
		if w.Len() != len(s.records) {
			t.Fatalf("%d records in the builder, want %d", w.Len(), len(s.records))
		}
		out, err := w.Build(nil, s.codec)
		if err != nil {
			t.Fatal(err)
		}
		b := Batch(out)
		b.Rewrite(NoProducer, NoSequence)
		check(t, b, dense(s.seen()))
	})
}

func TestNextSequence(t *testing.T) {
	const top = 1<<31 - 1
	for _, c := range []struct{ seq, n, want int32 }{
		{0, 1, 1}, {5, 10, 15}, {top - 1, 1, top}, {top, 1, 0}, {top, 3, 2}, {top - 2, 5, 2}, {0, top, top}, {top, top, top - 1},
	} {
		if got := NextSequence(c.seq, c.n); got != c.want {
			t.Errorf("NextSequence(%d, %d) = %d, want %d", c.seq, c.n, got, c.want)
		}
	}
}
