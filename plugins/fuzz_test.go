package plugins

import (
	"context"
	"os"
	"testing"
	"time"
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
