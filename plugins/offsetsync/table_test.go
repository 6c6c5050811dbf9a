package offsetsync

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"mirror/abi"
)

// The plugin's table of partitions against a map.
func TestPartitionsAreToldApart(t *testing.T) {
	type key struct {
		topic     string
		partition int32
	}
	rapid.Check(t, func(t *rapid.T) {
		g, known := plugin(t), map[key]int64{}
		for range rapid.IntRange(1, 100).Draw(t, "steps") {
			k := key{rapid.SampledFrom([]string{"t", "u", "tu", "ut", "a.very.long.name"}).Draw(t, "topic"), rapid.Int32Range(0, 20).Draw(t, "partition")}
			if rapid.IntRange(0, 3).Draw(t, "revoke") == 0 {
				g.partition(abi.Revoked, k.topic, k.partition)
				delete(known, k)
				continue
			}
			// The next record of a partition that is known is held back.
			next, ok := known[k]
			c := run(next, next, next)
			c.Topic, c.Partition = k.topic, k.partition
			if got := len(g.commit(0, c)); ok && next < 100 && got != 0 || !ok && got != 1 {
				t.Fatalf("%v, known %v: %d syncs for record %d", k, ok, got, next)
			}
			known[k] = next + 1
		}
	})
}

// Partitions that come and go take no more memory than those of now.
func TestMemory(t *testing.T) {
	g := plugin(t)
	size := func() uint32 { return g.module.Memory().Size() }
	var first uint32
	for round := range 20 {
		for p := range int32(200) {
			c := run(0, 0, 0)
			c.Topic, c.Partition = fmt.Sprintf("round-%d", round), p
			g.tell(0, c)
		}
		if round == 0 {
			first = size()
		}
		for p := range int32(200) {
			g.partition(abi.Revoked, fmt.Sprintf("round-%d", round), p)
		}
	}
	if size() != first || first > 2<<20 {
		t.Errorf("memory grew from %d to %d bytes", first, size())
	}
}
