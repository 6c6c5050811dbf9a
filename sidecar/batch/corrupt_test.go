package batch

import (
	"errors"
	"fmt"
	"math"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// sealed is a batch with a right checksum over any body.
func sealed(c Codec, count int32, body string) Batch {
	k := kmsg.RecordBatch{Length: int32(headerSize - prefixSize + len(body)), Magic: 2, Attributes: int16(c), LastOffsetDelta: max(count-1, 0), NumRecords: count, Records: []byte(body)}
	return seal(k.AppendTo(nil))
}

// opened calls all that opens a batch, with its result if that is an error.
func opened(b Batch) map[string]error {
	kept := []byte("kept")
	errs := map[string]error{}
	note := func(name string, out []byte, err error) {
		if err != nil && string(out) != "kept" {
			err = fmt.Errorf("dst came back as %q after %w", out, errors.New(err.Error()))
		}
		errs[name] = err
	}
	out, _, err := Reencode(kept, b, ReencodeOptions{MaxDecompressed: testLimit})
	note("Reencode", out, err)
	out, _, err = Concat(kept, []Batch{b}, testLimit)
	note("Concat", out, err)
	if b.Codec() == None {
		out, err = Merge(kept, []Batch{b})
		note("Merge of one", out, err)
		var w Builder
		w.Add(Record{})
		first, _ := w.Build(nil, None)
		out, err = Merge(kept, []Batch{first, b})
		note("Merge", out, err)
	}
	if b.Count() > 1 {
		_, _, errs["SplitAt"] = SplitAt(b, 1, testLimit)
		_, _, errs["Halves"] = Halves(b, testLimit)
	}
	errs["Records"] = nil
	for _, err := range b.Records(testLimit) {
		errs["Records"] = err
	}
	return errs
}

func TestBrokenRecords(t *testing.T) {
	const ok = "\x0c\x00\x00\x00\x01\x01\x00" // the smallest record, at offset delta 0
	long := func(n int, last byte) string {
		b := make([]byte, n)
		for i := range b {
			b[i] = 0xff
		}
		return string(append(b, last))
	}
	for name, b := range map[string]Batch{
		"no bytes":                         sealed(None, 1, ""),
		"fewer bytes than records":         sealed(None, math.MaxInt32, ok),
		"bytes left over":                  sealed(None, 1, ok+"\x00"),
		"length of 0":                      sealed(None, 1, "\x00\x00\x00\x00\x01\x01\x00"),
		"negative length":                  sealed(None, 1, "\x0b\x00\x00\x00\x01\x01\x00"),
		"length beyond the end":            sealed(None, 1, "\x0e\x00\x00\x00\x01\x01\x00"),
		"length is largest":                sealed(None, 1, "\xfe\xff\xff\xff\x0f\x00\x00\x00\x01\x01\x00"),
		"length overflows":                 sealed(None, 1, long(4, 0x1f)+ok),
		"length does not end":              sealed(None, 1, long(30, 0xff)),
		"timestamp overflows":              sealed(None, 1, "\x28\x00"+long(9, 0x03)+"\x00\x01\x01\x00"+"\x00\x00\x00\x00\x00"),
		"timestamp does not end":           sealed(None, 1, "\x0c\x00"+long(5, 0xff)),
		"offset delta overflows":           sealed(None, 1, "\x14\x00\x00"+long(4, 0x10)+"\x01\x01\x00"),
		"offset delta is negative":         sealed(None, 1, "\x0c\x00\x00\x01\x01\x01\x00"),
		"offset delta beyond the last":     sealed(None, 1, "\x0c\x00\x00\x02\x01\x01\x00"),
		"offset delta twice":               sealed(None, 2, ok+ok),
		"offset deltas fall":               sealed(None, 2, "\x0c\x00\x00\x02\x01\x01\x00"+ok),
		"key beyond the end":               sealed(None, 1, "\x0c\x00\x00\x00\x08\x01\x00"),
		"key is largest":                   sealed(None, 1, "\x14\x00\x00\x00\xfe\xff\xff\xff\x0f\x01\x00"),
		"value beyond the end":             sealed(None, 1, "\x0c\x00\x00\x00\x01\x04\x00"),
		"no number of headers":             sealed(None, 1, "\x0c\x00\x00\x00\x01\x02\x00"),
		"negative number of headers":       sealed(None, 1, "\x0c\x00\x00\x00\x01\x01\x01"),
		"a header that is not there":       sealed(None, 1, "\x0c\x00\x00\x00\x01\x01\x02"),
		"more headers than can be":         sealed(None, 1, "\x14\x00\x00\x00\x01\x01\xfe\xff\xff\xff\x0f"),
		"null key of a header":             sealed(None, 1, "\x10\x00\x00\x00\x01\x01\x02\x01\x01"),
		"header without value":             sealed(None, 1, "\x0e\x00\x00\x00\x01\x01\x02\x00"),
		"header value beyond the end":      sealed(None, 1, "\x10\x00\x00\x00\x01\x01\x02\x00\x04"),
		"bytes after the headers":          sealed(None, 1, "\x0e\x00\x00\x00\x01\x01\x00\x00"),
		"not gzip":                         sealed(Gzip, 1, ok),
		"not snappy":                       sealed(Snappy, 1, "\xff\xff\xff\xff\xff\xff\xff\xff"),
		"snappy without a block's size":    sealed(Snappy, 1, string(xerialHeader)+"\x00\x00"),
		"snappy with a negative size":      sealed(Snappy, 1, string(xerialHeader)+"\xff\xff\xff\xff"),
		"snappy block that is not there":   sealed(Snappy, 1, string(xerialHeader)+"\x00\x00\x00\x05x"),
		"snappy block that is none":        sealed(Snappy, 1, string(xerialHeader)+"\x00\x00\x00\x02\x05x"),
		"snappy header cut off":            sealed(Snappy, 1, string(xerialHeader[:10])),
		"not lz4":                          sealed(LZ4, 1, ok),
		"not zstd":                         sealed(Zstd, 1, ok),
		"no gzip":                          sealed(Gzip, 1, ""),
		"no snappy":                        sealed(Snappy, 1, ""),
		"no lz4":                           sealed(LZ4, 1, ""),
		"no zstd":                          sealed(Zstd, 1, ""),
		"more records than gzip holds":     sealed(Gzip, 2, string(kgoCompress(t, []byte(ok), Gzip))),
		"fewer records than zstd holds":    sealed(Zstd, 1, string(kgoCompress(t, []byte(ok+ok), Zstd))),
		"a codec that Kafka does not have": sealed(7, 1, ok),
	} {
		t.Run(name, func(t *testing.T) {
			for what, err := range opened(b) {
				if !errors.Is(err, ErrCorrupt) {
					t.Errorf("%s: %v", what, err)
				}
			}
		})
	}
	for what, err := range opened(sealed(None, 1, ok)) {
		if err != nil {
			t.Errorf("%s refuses the smallest batch: %v", what, err)
		}
	}
}

func TestUnfitBatches(t *testing.T) {
	log := entries(t, golden(t, "transactions"))
	for name, err := range map[string]error{
		"Merge of nothing":      second(Merge(nil, nil)),
		"Merge of lz4":          second(Merge(nil, log[:1])),
		"Merge of a marker":     second(Merge(nil, []Batch{log[1], log[3]})),
		"Merge of holes":        second(Merge(nil, entries(t, golden(t, "v2-holes-none")))),
		"Merge of messages":     second(Merge(nil, entries(t, golden(t, "v1-none")))),
		"Merge of an empty one": second(Merge(nil, entries(t, golden(t, "v2-empty")))),
		"Concat of nothing":     third(Concat(nil, nil, testLimit)),
		"Concat of a marker":    third(Concat(nil, log[3:], testLimit)),
		"Concat of holes":       third(Concat(nil, entries(t, golden(t, "v2-holes-zstd")), testLimit)),
		"Reencode of a marker":  third(Reencode(nil, log[3], ReencodeOptions{MaxDecompressed: testLimit})),
		"SplitAt of a message":  third(SplitAt(golden(t, "v1-gzip"), 1, testLimit)),
		"Halves of a marker":    third(Halves(log[3], testLimit)),
	} {
		if !errors.Is(err, errUnfit) {
			t.Errorf("%s: %v", name, err)
		}
	}
	// A batch that does not fit ends a concatenation, unless it is the first.
	out, taken, err := Concat(nil, log, testLimit)
	if err != nil || taken != 3 || Batch(out).Count() != 12 {
		t.Errorf("concatenation up to the marker: %d batches, %v", taken, err)
	}
}

func second[A any](_ A, err error) error        { return err }
func third[A, B any](_ A, _ B, err error) error { return err }

func TestDecompressionIsLimited(t *testing.T) {
	const size = 100_000
	var w Builder
	w.Add(Record{Value: make([]byte, size-61-20)})
	plain, err := w.Build(nil, None)
	if err != nil {
		t.Fatal(err)
	}
	records := len(plain) - headerSize
	for _, c := range allCodecs {
		b := sealed(c, 1, string(kgoCompress(t, plain[headerSize:], c)))
		for _, limit := range []int{-1, 0, 1, 100, records - 1} {
			if _, _, err := Reencode(nil, b, ReencodeOptions{MaxDecompressed: limit}); !errors.Is(err, ErrTooLarge) || errors.Is(err, ErrCorrupt) {
				t.Errorf("%v, limit %d of %d: %v", c, limit, records, err)
			}
		}
		if _, _, err := Reencode(nil, b, ReencodeOptions{MaxDecompressed: records}); err != nil {
			t.Errorf("%v, at the limit: %v", c, err)
		}
		if _, _, err := Concat(nil, []Batch{b, b}, 2*records-1); err != nil {
			t.Errorf("%v: %v", c, err)
		}
		if _, taken, _ := Concat(nil, []Batch{b, b}, 2*records-1); taken != 1 {
			t.Errorf("%v: %d batches concatenated, room is for 1", c, taken)
		}
		if _, taken, _ := Concat(nil, []Batch{b, b}, 2*records+10); taken != 2 {
			t.Errorf("%v: %d batches concatenated, room is for 2", c, taken)
		}
	}
	wrapper := entries(t, golden(t, "v1-gzip"))[0]
	if _, _, err := Reencode(nil, wrapper, ReencodeOptions{MaxDecompressed: 100}); !errors.Is(err, ErrTooLarge) {
		t.Errorf("wrapper: %v", err)
	}
}
