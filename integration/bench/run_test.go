package main

import (
	"encoding/json"
	"math/rand/v2"
	"strings"
	"testing"
	"time"
)

func TestValues(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	seen := map[string]bool{}
	for i := range int64(1000) {
		v := value(random, i)
		if len(v) != valueBytes || !json.Valid(v) || seen[string(v)] {
			t.Fatalf("%d bytes, valid: %v, seen: %v: %s", len(v), json.Valid(v), seen[string(v)], v)
		}
		seen[string(v)] = true
	}
}

// fakeBroker is a broker in this process.
func fakeBroker(t *testing.T) *broker {
	t.Helper()
	b, err := startFake()
	t.Cleanup(b.close)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// A case from its data to its figures, on brokers in the process.
func TestRuns(t *testing.T) {
	l := &lab{options: options{light: 200 * time.Millisecond, limit: time.Minute}, source: fakeBroker(t), target: fakeBroker(t),
		dir: t.TempDir(), progress: t.Output()}
	c := benchCase{Name: "few", Codec: "lz4", BatchBytes: 16 << 10, Partitions: 9, Busy: 3, Share: 2}
	data, err := l.fill(t.Context(), c, 4<<20)
	if err != nil {
		t.Fatal(err)
	}
	if data.Records != 2<<10 || data.Payload != 2<<20 || data.Stored < 1<<18 || data.Stored > 3<<19 || data.Batches < 128 || data.Batches > 150 {
		t.Errorf("data: %+v; want 2 MiB, half the size, in batches of 15 records", data)
	}
	if n, err := l.source.ends(t.Context(), c.Name, []int32{0, 3, 6}); err != nil || n != data.Records {
		t.Errorf("the busy partitions have %d, %v, want %d", n, err, data.Records)
	}
	if n, err := l.source.ends(t.Context(), "another", []int32{0}); err != nil || n != 0 {
		t.Errorf("a topic that is not there has %d, %v", n, err)
	}

	for _, s := range allSubjects[:2] {
		r := l.measure(t.Context(), c, data, s, 1)
		if r.Error != "" {
			t.Fatalf("%s: %s", s.name, r.Error)
		}
		if !r.Memory.known() || !r.First.known() || r.P50.known() == s.apart || r.P99 < r.P50 {
			t.Errorf("%s: %+v", s.name, r)
		}
	}
	r := l.measure(t.Context(), c, data, subject{name: "broken", start: func(j job) (*running, error) {
		p, err := launch("sh", "-c", "echo out of luck; exit 1")
		if err != nil {
			return nil, err
		}
		return j.own(p), nil
	}}, 1)
	if !strings.Contains(r.Error, "out of luck") {
		t.Errorf("a subject that ends: %q", r.Error)
	}

	// Nothing of a run is left when the next begins.
	if err := l.target.clear(t.Context(), ""); err != nil {
		t.Fatal(err)
	}
	if topics, err := l.target.topics(t.Context()); err != nil || len(topics) != 0 {
		t.Errorf("topics %v, %v", topics, err)
	}
}
