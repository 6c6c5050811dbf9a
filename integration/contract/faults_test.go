package contract

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// environment is a number that the environment may set.
func environment(t testing.TB, name string, usual uint64) uint64 {
	s := os.Getenv(name)
	if s == "" {
		return usual
	}
	n, err := strconv.ParseUint(s, 10, 64)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return n
}

// TestFaults has everything fail now and then that can fail for a moment, on both
// sides, at random: every record arrives, once, in order. Each round has a seed of its
// own, which is its name: MIRROR_TEST_SEED=that MIRROR_TEST_ROUNDS=1 does the same
// again, as far as the time that things take allows.
func TestFaults(t *testing.T) {
	rounds := environment(t, "MIRROR_TEST_ROUNDS", 30)
	first := environment(t, "MIRROR_TEST_SEED", uint64(rand.Uint32()))
	failed, done := 0, map[string]int{}
	t.Run("round", func(t *testing.T) {
		for seed := first; seed < first+rounds; seed++ {
			r := &round{rng: rand.New(rand.NewPCG(seed, 0))}
			Play(t, func(t testing.TB) Pair {
				r.source, r.target = newFaultyCluster(t, 2*seed), newFaultyCluster(t, 2*seed+1)
				return Pair{Source: NewCluster(t, r.source.ListenAddrs(), ""), Target: NewCluster(t, r.target.ListenAddrs(), "")}
			}, []Scenario{{Name: fmt.Sprint(seed), Alone: true, Run: func(e *Env) { r.play(e, seed) }}})
			for _, c := range []*faultyCluster{r.source, r.target} {
				n, kinds := c.mend()
				failed += n
				for kind, n := range kinds {
					done[kind] += n
				}
			}
		}
	})
	t.Logf("rounds %d to %d: %d errors, and on connections %v", first, first+rounds-1, failed, done)
	if rounds >= 30 && (failed < 2*int(rounds) || len(done) < 4) {
		t.Error("there were few faults: the rounds prove little")
	}
}

// round is one run of a mirror through faults.
type round struct {
	rng            *rand.Rand
	source, target *faultyCluster
}

func (r *round) play(e *Env, seed uint64) {
	topic := e.Topic("t")
	partitions := int32(1 + r.rng.IntN(4))
	e.Create(e.Source, topic, partitions)
	flow := Flow{Keys: fmt.Sprintf("commit_interval = %q\ngrace = %q\nmemory = %q\n",
		pick(r.rng, "20ms", "200ms", "5s"), pick(r.rng, "10ms", "1s", "10s"), pick(r.rng, "1MiB", "64MiB"))}
	written := 0
	write := func() {
		client := e.Source.Client(e, kgo.ProducerBatchCompression(codecs[r.rng.IntN(len(codecs))].codec), kgo.ProducerBatchMaxBytes(int32(pick(r.rng, 1<<10, 16<<10, 1<<20))))
		age := pick(r.rng, 0, time.Minute, 30*24*time.Hour)
		var rs []*kgo.Record
		for range 20 + r.rng.IntN(200) {
			n := numbered(topic, written, partitions)
			n.Timestamp = time.Now().Add(-age)
			rs = append(rs, n)
			written++
		}
		r.source.quietly(func() { e.PutWith(client, topic, rs...) })
		client.Close()
	}
	write()
	for _, c := range []*faultyCluster{r.source, r.target} {
		if r.rng.IntN(4) > 0 {
			c.fail(4+r.rng.IntN(40), seed)
		}
		c.shake(r.rng.IntN(4) > 0)
	}
	m := e.Start(flow)
	for range 2 + r.rng.IntN(5) {
		write()
		switch r.rng.IntN(7) {
		case 0:
			r.source.ShufflePartitionLeaders()
		case 1, 2:
			r.target.ShufflePartitionLeaders()
		case 3:
			r.source.cut()
		case 4:
			r.target.cut()
		case 5:
			m.Stop()
			m = e.Start(flow)
		}
	}
	r.source.mend()
	r.target.mend()
	m.CaughtUp(topic)
	m.WantSame(topic)
	m.Stop()
}

// pick is one of the values.
func pick[T any](rng *rand.Rand, values ...T) T { return values[rng.IntN(len(values))] }
