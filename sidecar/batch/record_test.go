package batch

import (
	"reflect"
	"testing"
)

func TestReadingCanStop(t *testing.T) {
	for _, name := range []string{"v0-none", "v0-lz4", "v1-gzip", "v2-none", "v2-zstd"} {
		n := 0
		for _, err := range entries(t, golden(t, name))[0].Records(testLimit) {
			if err != nil {
				t.Fatal(err)
			}
			n++
			break
		}
		if n != 1 {
			t.Errorf("%s: %d records", name, n)
		}
	}
}

func TestHeaders(t *testing.T) {
	type header struct {
		key   string
		value []byte
	}
	for _, c := range []struct {
		name string
		h    Headers
		want []header
	}{
		{"none", nil, nil},
		{"no header", Headers("\x00"), nil},
		{"null and empty", Headers("\x04\x02a\x01\x00\x00"), []header{{"a", nil}, {"", []byte{}}}},
		{"fewer than said", Headers("\x04\x02a\x01"), []header{{"a", nil}}},
		{"key cut off", Headers("\x02\x04a"), nil},
		{"value cut off", Headers("\x02\x02a\x04x"), nil},
		{"negative number", Headers("\x03\x02a\x01"), nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			var got []header
			for k, v := range c.h.All() {
				got = append(got, header{k, v})
			}
			if !reflect.DeepEqual(got, c.want) {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
	for range Headers("\x04\x02a\x01\x00\x00").All() {
		break // must not go on
	}
}

func TestLabels(t *testing.T) {
	for got, want := range map[string]string{
		PathRaw.String(): "raw", PathReencode.String(): "reencode", PathSkip.String(): "skip",
		None.String(): "none", Gzip.String(): "gzip", Snappy.String(): "snappy", LZ4.String(): "lz4", Zstd.String(): "zstd", Codec(6).String(): "codec 6",
	} {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
