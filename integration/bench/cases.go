package main

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// benchCase is a kind of data, and the link it is mirrored over.
type benchCase struct {
	Name       string `json:"name"` // of its source topic too
	About      string `json:"about"`
	Codec      string `json:"codec"`             // none, lz4, zstd
	BatchBytes int    `json:"batch_limit_bytes"` // of the producer: the records of a batch before compression
	Partitions int    `json:"partitions"`
	Busy       int    `json:"busy_partitions"` // evenly among all; the others stay empty
	// Transaction is how many records each has; 0: the data is not transactional.
	Transaction int64 `json:"records_of_a_transaction,omitempty"`
	// Far is the cluster at the end of a long link, source or target; "": none.
	Far string `json:"far,omitempty"`
	// Share of the size that is used: a single partition over a long link is slow.
	Share int64 `json:"-"`
}

var allCases = []benchCase{
	{Name: "none-16k", About: "uncompressed, 16 KiB batches, 8 partitions", Codec: "none", BatchBytes: 16 << 10, Partitions: 8, Busy: 8, Share: 1},
	{Name: "lz4-16k", About: "lz4, 16 KiB batches, 8 partitions", Codec: "lz4", BatchBytes: 16 << 10, Partitions: 8, Busy: 8, Share: 1},
	{Name: "zstd-16k", About: "zstd, 16 KiB batches, 8 partitions", Codec: "zstd", BatchBytes: 16 << 10, Partitions: 8, Busy: 8, Share: 1},
	{Name: "zstd-900k", About: "zstd, 0.9 MB batches, 8 partitions", Codec: "zstd", BatchBytes: 900_000, Partitions: 8, Busy: 8, Share: 1},
	{Name: "tx-10", About: "lz4, transactions of 10 records, 8 partitions, a quarter of the size", Codec: "lz4", BatchBytes: 16 << 10, Partitions: 8, Busy: 8, Transaction: 10, Share: 4},
	{Name: "wide", About: "lz4, 16 KiB batches, 1,000 partitions of which 20 are busy", Codec: "lz4", BatchBytes: 16 << 10, Partitions: 1000, Busy: 20, Share: 1},
	{Name: "far-target", About: "lz4, 16 KiB batches, 1 partition, a quarter of the size, target 50 ms away", Codec: "lz4", BatchBytes: 16 << 10, Partitions: 1, Busy: 1, Far: "target", Share: 4},
	{Name: "far-source", About: "lz4, 16 KiB batches, 1 partition, a quarter of the size, source 50 ms away", Codec: "lz4", BatchBytes: 16 << 10, Partitions: 1, Busy: 1, Far: "source", Share: 4},
}

// busy has the numbers of the partitions with records.
func (c benchCase) busy() []int32 {
	numbers := make([]int32, c.Busy)
	for i := range numbers {
		numbers[i] = int32(i * (c.Partitions / c.Busy))
	}
	return numbers
}

// pick has those of all whose names are in the list, in the order of all; all of
// them for an empty list.
func pick[T any](what, list string, all []T, name func(T) string) ([]T, error) {
	if list == "" {
		return all, nil
	}
	var names []string
	for _, x := range all {
		names = append(names, name(x))
	}
	wanted := strings.Split(list, ",")
	for _, w := range wanted {
		if !slices.Contains(names, w) {
			return nil, fmt.Errorf("no %s %q: there are %s", what, w, strings.Join(names, ", "))
		}
	}
	var picked []T
	for i, x := range all {
		if slices.Contains(wanted, names[i]) {
			picked = append(picked, x)
		}
	}
	return picked, nil
}

// size is a number of bytes, as a flag.
type size int64

var units = []struct {
	name  string
	bytes int64
}{{"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}, {"", 1}}

// String has the largest unit of which it is a multiple.
func (s *size) String() string {
	for _, u := range units {
		if n := int64(*s); n%u.bytes == 0 && n > 0 {
			return strconv.FormatInt(n/u.bytes, 10) + u.name
		}
	}
	return "0"
}

// Set reads a number with KiB, MiB, GiB or nothing behind it.
func (s *size) Set(text string) error {
	for _, u := range units {
		digits, ok := strings.CutSuffix(text, u.name)
		if n, err := strconv.ParseInt(digits, 10, 64); ok && err == nil && n > 0 && n <= math.MaxInt64/u.bytes {
			*s = size(n * u.bytes)
			return nil
		}
	}
	return errors.New("not a size like 64MiB")
}
