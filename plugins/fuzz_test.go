package plugins

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"testing"
	"time"

	"github.com/BurntSushi/toml"
)

// Whatever bytes there are for a plugin: they are refused, or they run, and end.
func FuzzLoad(f *testing.F) {
	for _, file := range []string{"testdata/guest.wasm", "testdata/syncs-c.wasm"} {
		b, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Add(minimal().bytes())
	f.Fuzz(func(t *testing.T, file []byte) {
		b, err := Embedded("fuzz", file)
		if err != nil {
			return
		}
		r := newRecord()
		o := r.options()
		o.CacheDir = ""
		ctx := context.Background()
		s := Spec{Name: "p", Binary: b, Emit: Allow{OffsetSyncs: true, Topics: []string{"frames"}}, Limits: Limits{Memory: 4 << 20, Call: 20 * time.Millisecond}}
		g, err := Load(ctx, o, []Spec{s})
		if err != nil {
			return
		}
		defer g.Close()
		set, err := g.Instantiate(ctx, 3)
		if err != nil {
			return
		}
		l := &bench{NewLane(set, r), r, t, g}
		defer l.Close(ctx)
		l.assign(0)
		l.ack(0, copied(10, 19))
		l.round(true)
		l.Status()
	})
}

// Whatever table there is for a plugin: it is refused, or the guest gets it as JSON,
// and flattened with each value once, in the order of the keys.
func FuzzConfig(f *testing.F) {
	for _, text := range []string{"lag_max = 100\non = true", `names = ["a", "b"]`, "[in]\na = 1.5\n[[each]]\nk = 2026-01-31T01:02:03Z", "a.b = 1\n'a.b' = 2", `a = "\u0000"`, "a = nan"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var table map[string]any
		if _, err := toml.Decode(text, &table); err != nil {
			return
		}
		object, flat, err := encodeConfig(table)
		if err != nil {
			return
		}
		var again any
		if err := json.Unmarshal(object, &again); err != nil {
			t.Fatalf("%s: %v", object, err)
		}
		parts := bytes.Split(flat, []byte{0})
		if n := leaves(again); len(parts) != 2*n+1 || len(parts[2*n]) > 0 {
			t.Fatalf("%q for the %d values of %s", flat, n, object)
		}
		for i := 2; i+1 < len(parts); i += 2 {
			if bytes.Compare(parts[i-2], parts[i]) >= 0 {
				t.Fatalf("%q: %q comes before %q", flat, parts[i-2], parts[i])
			}
		}
	})
}

// leaves counts what is neither an object nor an array.
func leaves(v any) (n int) {
	switch v := v.(type) {
	case map[string]any:
		for _, x := range v {
			n += leaves(x)
		}
	case []any:
		for _, x := range v {
			n += leaves(x)
		}
	default:
		n = 1
	}
	return n
}
