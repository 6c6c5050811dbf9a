package batch

import (
	"errors"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"
)

func addGolden(f *testing.F) {
	names, err := filepath.Glob("testdata/java/*.bin")
	if err != nil || len(names) == 0 {
		f.Fatal("no files in testdata/java", err)
	}
	for _, name := range names {
		set, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(set)
	}
}

// FuzzSet reads any bytes as a record set and does all that there is to do with what it finds, verified or not.
func FuzzSet(f *testing.F) {
	addGolden(f)
	f.Fuzz(func(t *testing.T, set []byte) {
		a := NewAborted([]kmsg.FetchResponseTopicPartitionAbortedTransaction{{ProducerID: 7, FirstOffset: 100}})
		for {
			b, rest, err := Next(set)
			if err != nil {
				return
			}
			if len(b)+len(rest) != len(set) || len(b) == 0 {
				t.Fatalf("%d bytes and %d left of %d", len(b), len(rest), len(set))
			}
			set = rest
			b = slices.Clone(b)
			_ = b.Verify() // changed bytes rarely have the right checksum
			seal(b)
			err = b.Verify()
			if err != nil && !errors.Is(err, ErrCorrupt) {
				t.Fatal(err)
			}
			_ = b.String()
			path, _ := Decide(b, Conditions{FetchOffset: 101, Aborted: a.Covers(b)})
			useAll(t, b)
			if path == PathRaw && err == nil {
				b.Rewrite(Producer{1, 2}, 3)
				if err := b.Verify(); err != nil {
					t.Fatalf("after Rewrite: %v", err)
				}
			}
		}
	})
}

// useAll opens a batch in every way; those that succeed must agree.
func useAll(t *testing.T, b Batch) {
	var want []rec
	var broken error
	for r, err := range b.Records(testLimit) {
		if broken = err; err == nil {
			want = append(want, rec{Attributes: r.Attributes, Offset: r.Offset, Timestamp: r.Timestamp, Key: r.Key, Value: r.Value})
			for range r.Headers.All() {
				continue
			}
		}
	}
	if broken != nil && !errors.Is(broken, ErrCorrupt) && !errors.Is(broken, ErrTooLarge) {
		t.Fatalf("Records: %v", broken)
	}
	agree := func(what string, out []byte, err error) {
		if err != nil {
			if broken == nil && !errors.Is(err, errUnfit) && !errors.Is(err, ErrIndivisible) {
				t.Fatalf("%s: %v, though %d records can be read", what, err, len(want))
			}
			return
		}
		if broken != nil {
			t.Fatalf("%s takes what Records refuses with %v", what, broken)
		}
		if len(out) == 0 && len(want) == 0 {
			return
		}
		made := Batch(out)
		made.Rewrite(NoProducer, NoSequence)
		if err := made.Verify(); err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		got := records(t, made)
		if len(got) != len(want) {
			t.Fatalf("%s: %d records, want %d", what, len(got), len(want))
		}
		for i, r := range got {
			w := want[i]
			if r.Timestamp != w.Timestamp || r.Attributes != w.Attributes || !slices.Equal(r.Key, w.Key) || !slices.Equal(r.Value, w.Value) ||
				(r.Key == nil) != (w.Key == nil) || (r.Value == nil) != (w.Value == nil) {
				t.Fatalf("%s: record %d is %+v, want %+v", what, i, r, w)
			}
		}
	}
	out, _, err := Reencode(nil, b, ReencodeOptions{FetchOffset: math.MinInt64, MaxDecompressed: testLimit})
	agree("Reencode", out, err)
	out, _, err = Concat(nil, []Batch{b}, testLimit)
	agree("Concat", out, err)
	out, err = Merge(nil, []Batch{b})
	agree("Merge", out, err)
	var none Builder
	none.Add(Record{Timestamp: 1})
	first, err := none.Build(nil, None)
	if err != nil {
		t.Fatal(err)
	}
	_, err = Merge(nil, []Batch{first, b})
	if broken != nil && err == nil {
		t.Fatalf("Merge takes what Records refuses with %v", broken)
	}
	if head, tail, err := Halves(b, testLimit); err == nil && int(head.Count()+tail.Count()) != len(want) {
		t.Fatalf("halves of %d and %d records, want %d", head.Count(), tail.Count(), len(want))
	}
	if head, tail, err := SplitAt(b, 1, testLimit); err == nil && int(head.Count()+tail.Count()) != len(want) {
		t.Fatalf("split into %d and %d records, want %d", head.Count(), tail.Count(), len(want))
	}
}

// FuzzRecords puts any body into a batch that is right otherwise.
func FuzzRecords(f *testing.F) {
	f.Add([]byte("\x0c\x00\x00\x00\x01\x01\x00"), int32(1), byte(None))
	f.Add([]byte("\x0c\x00\x00\x00\x01\x01\x00\x1a\x00\x02\x02\x02k\x04v1\x02\x02h\x02x"), int32(2), byte(None))
	for c := Gzip; c <= Zstd; c++ {
		packed, err := compress(nil, []byte("\x0c\x00\x00\x00\x01\x01\x00\x1a\x00\x02\x02\x02k\x04v1\x02\x02h\x02x"), c)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(packed, int32(2), byte(c))
	}
	f.Fuzz(func(t *testing.T, body []byte, count int32, c byte) {
		useAll(t, sealed(Codec(c&codecMask), count, string(body)))
	})
}

// FuzzWrapper puts any messages into a wrapper of magic 0 or 1.
func FuzzWrapper(f *testing.F) {
	one := rec{Offset: 1, Timestamp: 5, Key: []byte("k"), Value: []byte("v")}
	f.Add([]byte(message(1, 0, one)), byte(1), byte(Gzip))
	f.Add([]byte(message(0, 0, one)), byte(0), byte(LZ4))
	f.Fuzz(func(t *testing.T, set []byte, magic, c byte) {
		codec := Gzip + Codec(c%3)
		packed, err := compress(nil, set, codec)
		if err != nil {
			t.Fatal(err)
		}
		useAll(t, message(int8(magic&1), int8(codec), rec{Offset: 100, Value: packed}))
	})
}
