package offsetsync

import (
	"strconv"
	"strings"
	"testing"

	"mirror/abi"
)

// Whatever bytes there are for the flattened config: the plugin takes them if they say
// what it knows, else it says what is wrong, and never traps.
func FuzzConfig(f *testing.F) {
	for _, flat := range []string{"", "lag_max\x00100\x00mm2_syncs\x00true\x00translate\x00false\x00", "lag_max\x00-1\x00", "lag_max", "\x00\x00", "lag_max\x009223372036854775808\x00"} {
		f.Add(flat)
	}
	f.Fuzz(func(t *testing.T, flat string) {
		g := start(t)
		g.frame.Begin(abi.OnInit, 0)
		g.frame.Extra(abi.TagFlat, []byte(flat))
		if _, err := g.call(abi.OnInit); (err == nil) != isConfig(flat) || err != nil && !strings.HasPrefix(err.Error(), "bad input: config: ") {
			t.Fatalf("%q: %v", flat, err)
		}
	})
}

// isConfig says whether all pairs of keys and values are fine.
func isConfig(flat string) bool {
	parts := strings.Split(flat, "\x00")
	for i := 0; i+1 < len(parts); i += 2 {
		key, value := parts[i], parts[i+1]
		_, err := strconv.ParseInt(value, 10, 64)
		number := err == nil && strings.Trim(value, "0123456789") == ""
		if !(key == "lag_max" && number || (key == "mm2_syncs" || key == "translate") && (value == "true" || value == "false")) {
			return false
		}
	}
	return true
}
