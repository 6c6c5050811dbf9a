package batch

import (
	"bytes"
	"encoding/hex"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// The files in testdata/java were written by Kafka's own library, by testdata/Golden.java.

func golden(t testing.TB, name string) []byte {
	t.Helper()
	set, err := os.ReadFile(filepath.Join("testdata", "java", name+".bin"))
	if err != nil {
		t.Fatal(err)
	}
	return set
}

// entries cuts and verifies all of a set.
func entries(t testing.TB, set []byte) (bs []Batch) {
	t.Helper()
	for {
		b, rest, err := Next(set)
		if err == io.EOF {
			return bs
		}
		if err == nil {
			err = b.Verify()
		}
		if err != nil {
			t.Fatal(err)
		}
		bs, set = append(bs, b), rest
	}
}

const goldenTime = 1_700_000_000_000

// goldenRecords are those that Golden.java puts into each batch, at offsets from 100 on.
var goldenRecords = []rec{
	{Offset: 100, Timestamp: goldenTime, Value: []byte("null key")},
	{Offset: 101, Timestamp: goldenTime + 5, Key: []byte{}},
	{Offset: 102, Timestamp: goldenTime - 3, Key: []byte("key"), Value: []byte{}, Headers: []kgo.RecordHeader{
		{Key: "h"}, {Key: "h", Value: []byte("x")}, {Key: "", Value: []byte{}},
	}},
	{Offset: 103, Timestamp: goldenTime + 1000, Key: []byte("large"), Value: bytes.Repeat([]byte("0123456789"), 20)},
}

// goldenWant gives the records that consumers find in a file of testdata/java.
func goldenWant(name string) []rec {
	want := append([]rec(nil), goldenRecords...)
	for i := range want {
		if !strings.HasPrefix(name, "v2") {
			want[i].Headers = nil
		}
		switch {
		case strings.HasPrefix(name, "v0"):
			want[i].Timestamp = -1
		case strings.Contains(name, "-append-"):
			want[i].Timestamp = goldenTime + 77
		}
	}
	if strings.Contains(name, "-holes-") {
		return []rec{want[1], want[3]}
	}
	return want
}

func TestReadsWhatJavaWrites(t *testing.T) {
	names, err := filepath.Glob("testdata/java/v*.bin")
	if err != nil || len(names) < 20 {
		t.Fatalf("%d files: %v", len(names), err)
	}
	for _, name := range names {
		name = strings.TrimSuffix(filepath.Base(name), ".bin")
		if name == "v2-empty" {
			continue
		}
		t.Run(name, func(t *testing.T) {
			var got []rec
			var sent []rec
			var runs []Run
			for _, b := range entries(t, golden(t, name)) {
				if name[1]-'0' != byte(b.Magic()) || !strings.HasSuffix(name, b.Codec().String()) {
					t.Fatalf("%v", b)
				}
				got = append(got, records(t, b)...)
				out, rs, err := Reencode(nil, b, ReencodeOptions{MaxDecompressed: testLimit})
				if err != nil {
					t.Fatal(err)
				}
				c := Batch(out)
				c.Rewrite(NoProducer, NoSequence)
				if c.Codec() != b.Codec() {
					t.Fatalf("codec %v became %v", b.Codec(), c.Codec())
				}
				check(t, c, records(t, c))
				sent = append(sent, records(t, c)...)
				for _, r := range rs {
					for k := range r.Count {
						runs = appendRun(runs, r.Source+int64(k))
					}
				}
			}
			want := goldenWant(name)
			same(t, "own reader", got, want)
			if name[:2] == "v2" {
				same(t, "franz-go", independent(t, golden(t, name)), want)
			}
			wantRuns := []Run{{100, 4}}
			if len(want) == 2 {
				wantRuns = []Run{{101, 1}, {103, 1}}
			}
			if !reflect.DeepEqual(runs, wantRuns) {
				t.Errorf("runs %v, want %v", runs, wantRuns)
			}
			for i := range sent { // of messages that stood alone, each became a batch of its own
				sent[i].Offset = want[i].Offset
			}
			same(t, "re-encoded", sent, want)
		})
	}
}

func TestHeaderOfAJavaBatch(t *testing.T) {
	b := entries(t, golden(t, "v2-gzip"))[0]
	got := []any{b.Magic(), b.BaseOffset(), b.LastOffset(), b.LastOffsetDelta(), b.LeaderEpoch(), b.Attributes(), b.Codec(), b.BaseTimestamp(),
		b.MaxTimestamp(), b.ProducerID(), b.ProducerEpoch(), b.BaseSequence(), b.Count(), b.Dense(), b.Transactional(), b.Control(), b.LogAppendTime(), b.DeleteHorizon()}
	want := []any{int8(2), int64(100), int64(103), int32(3), int32(3), int16(1), Gzip, int64(goldenTime),
		int64(goldenTime + 1000), int64(7), int16(2), int32(40), int32(4), true, false, false, false, false}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("header\n%v, want\n%v", got, want)
	}
	if b := entries(t, golden(t, "v2-append-none"))[0]; !b.LogAppendTime() || b.MaxTimestamp() != goldenTime+77 {
		t.Errorf("time of the append: %v", b)
	}
	if b := entries(t, golden(t, "v2-holes-lz4"))[0]; !b.DeleteHorizon() || b.Count() != 2 || b.LastOffsetDelta() != 3 || b.Dense() {
		t.Errorf("a cleaned batch: %v", b)
	}
	if b := entries(t, golden(t, "v2-empty"))[0]; b.Count() != 0 || b.LastOffset() != 103 || b.Dense() {
		t.Errorf("an empty batch: %v", b)
	}
}

func TestHeaderOfAMessage(t *testing.T) {
	b := entries(t, golden(t, "v1-append-snappy"))[0]
	got := []any{b.Magic(), b.BaseOffset(), b.LastOffset(), b.LastOffsetDelta(), b.LeaderEpoch(), b.Codec(), b.LogAppendTime(), b.BaseTimestamp(), b.MaxTimestamp(),
		b.ProducerID(), b.ProducerEpoch(), b.BaseSequence(), b.Count(), b.Dense(), b.Transactional(), b.Control(), b.DeleteHorizon()}
	want := []any{int8(1), int64(103), int64(103), int32(0), int32(-1), Snappy, true, int64(goldenTime + 77), int64(goldenTime + 77),
		int64(-1), int16(-1), int32(-1), int32(-1), false, false, false, false}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("header\n%v, want\n%v", got, want)
	}
	if b := entries(t, golden(t, "v0-none"))[3]; b.Count() != 1 || b.LastOffset() != 103 || b.MaxTimestamp() != -1 {
		t.Errorf("a plain message: %v", b)
	}
	before := bytes.Clone(b)
	if b.Rewrite(Producer{1, 1}, 1); !bytes.Equal(b, before) {
		t.Error("Rewrite changed a message")
	}
}

// Two records, one with null key and value, as a producer sends them; written by hand from
// https://kafka.apache.org/documentation/#recordbatch. The checksum is the one that franz-go accepts below.
const byHand = "0000000000000000" + "00000046" + "ffffffff" + "02" + "00000000" + "0000" + "00000001" +
	"0000018bcfe56800" + "0000018bcfe56801" + "0000000000001234" + "0007" + "00000063" + "00000002" +
	"0c" + "00" + "00" + "00" + "01" + "01" + "00" + // 6 bytes: attributes, deltas 0 and 0, null, null, no headers
	"1a" + "00" + "02" + "02" + "02" + "6b" + "04" + "7631" + "02" + "02" + "68" + "02" + "78" // deltas 1 and 1, "k", "v1", h=x

func TestMadeAsByHand(t *testing.T) {
	want, err := hex.DecodeString(byHand)
	if err != nil {
		t.Fatal(err)
	}
	var w Builder
	w.Add(Record{Timestamp: goldenTime})
	w.Add(Record{Timestamp: goldenTime + 1, Key: []byte("k"), Value: []byte("v1"), Headers: Headers("\x02\x02h\x02x")})
	out, err := w.Build(nil, None)
	if err != nil {
		t.Fatal(err)
	}
	Batch(out).Rewrite(Producer{0x1234, 7}, 0x63)
	independent(t, out) // checks the checksum
	copy(want[crcAt:attributesAt], out[crcAt:attributesAt])
	if !bytes.Equal(out, want) {
		t.Errorf("got\n%x, want\n%x", out, want)
	}
}

func TestAbortedTransactions(t *testing.T) {
	type list = []kmsg.FetchResponseTopicPartitionAbortedTransaction
	abort := func(pid, first int64) kmsg.FetchResponseTopicPartitionAbortedTransaction {
		return kmsg.FetchResponseTopicPartitionAbortedTransaction{ProducerID: pid, FirstOffset: first}
	}
	// The batches: 0 data of 7 at 100, 1 data of 8 at 104, 2 data of 9 at 108 in no transaction, 3 abort of 7 at 112,
	// 4 data of 7 at 113, 5 commit of 8 at 117, 6 commit of 7 at 118.
	whole := []int{0, 1, 2, 3, 4, 5, 6}
	for _, c := range []struct {
		name    string
		list    list
		batches []int
		want    []int64
	}{
		{"none", nil, whole, nil},
		{"one", list{abort(7, 100)}, whole, []int64{100}},
		{"began before the response", list{abort(7, 3)}, whole, []int64{100}},
		{"begins within the batch", list{abort(7, 103)}, whole, []int64{100}},
		{"begins later than all of the response", list{abort(8, 500), abort(7, 100)}, whole, []int64{100}},
		{"two of one producer, not sorted", list{abort(7, 113), abort(7, 100)}, whole, []int64{100, 113}},
		{"several producers", list{abort(8, 104), abort(7, 100)}, whole, []int64{100, 104}},
		{"the response starts at the marker", list{abort(7, 100)}, whole[3:], nil},
		{"a commit marker does not end it", list{abort(7, 0)}, []int{6, 4}, []int64{113}},
		{"another producer's marker does not end it", list{abort(8, 0)}, []int{3, 1}, []int64{104}},
		{"data outside of transactions", list{abort(9, 0)}, whole, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			a := NewAborted(c.list)
			var got []int64
			log := entries(t, golden(t, "transactions"))
			for _, i := range c.batches {
				if b := log[i]; a.Covers(b) {
					got = append(got, b.BaseOffset())
				}
			}
			if !reflect.DeepEqual(got, c.want) {
				t.Errorf("covers batches at %v, want %v", got, c.want)
			}
		})
	}
}
