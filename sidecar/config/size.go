package config

import (
	"math"
	"strconv"
	"strings"
)

var sizeUnits = []struct {
	name  string
	bytes int64
}{
	{"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}, {"TiB", 1 << 40},
	{"KB", 1e3}, {"kB", 1e3}, {"MB", 1e6}, {"GB", 1e9}, {"TB", 1e12},
	{"B", 1}, {"", 1},
}

// parseSize reads a whole number of bytes like "64KiB", "1GB" or "512".
func parseSize(s string) (n int64, ok bool) {
	for _, u := range sizeUnits {
		digits, ok := strings.CutSuffix(s, u.name)
		if !ok {
			continue
		}
		count, err := strconv.ParseUint(strings.TrimSpace(digits), 10, 63)
		if err != nil || int64(count) > math.MaxInt64/u.bytes {
			return 0, false
		}
		return int64(count) * u.bytes, true
	}
	return 0, false
}
