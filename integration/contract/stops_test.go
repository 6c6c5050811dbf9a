package contract

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"
)

// TestGroupsStopAnywhere has groups commit anywhere, at any moment, while records and
// transactions are written, the mirror is restarted and both sides fail now and then:
// on the target each goes on exactly where it stopped. MIRROR_TEST_ROUNDS and
// MIRROR_TEST_SEED are those of TestFaults.
func TestGroupsStopAnywhere(t *testing.T) {
	rounds := environment(t, "MIRROR_TEST_ROUNDS", 8)
	first := environment(t, "MIRROR_TEST_SEED", uint64(rand.Uint32()))
	for seed := first; seed < first+rounds; seed++ {
		r := &stopRound{rng: rand.New(rand.NewPCG(seed, 2)), at: map[string][]int64{}}
		Play(t, func(t testing.TB) Pair {
			r.source, r.target = newFaultyCluster(t, 2*seed), newFaultyCluster(t, 2*seed+1)
			return Pair{Source: NewCluster(t, r.source.ListenAddrs(), ""), Target: NewCluster(t, r.target.ListenAddrs(), "")}
		}, []Scenario{{Name: fmt.Sprint(seed), Run: func(e *Env) { r.play(e, seed) }}})
	}
}

// stopRound is one run of a mirror with groups.
type stopRound struct {
	rng            *rand.Rand
	source, target *faultyCluster
	topic          string
	written        int
	producer       *kgo.Client
	at             map[string][]int64 // what groups have committed
}

func (r *stopRound) play(e *Env, seed uint64) {
	r.topic = e.Topic("t")
	partitions := int32(1 + r.rng.IntN(3))
	e.Create(e.Source, r.topic, partitions)
	r.producer = e.transactional("p")
	flow := Flow{Keys: fmt.Sprintf("commit_interval = %q\ngrace = %q\n", pick(r.rng, "20ms", "200ms", "5s"), pick(r.rng, "1ms", "10s")),
		Tables: "[flows.checkpoints]\ninterval = \"100ms\"\nsync_groups = true\n"}
	r.write(e, partitions)
	for _, c := range []*faultyCluster{r.source, r.target} {
		if r.rng.IntN(3) > 0 {
			c.fail(10+r.rng.IntN(40), seed)
		}
		c.shake(r.rng.IntN(3) > 0)
	}
	m := e.Start(flow)
	for range 3 + r.rng.IntN(5) {
		r.write(e, partitions)
		r.commit(e)
		switch r.rng.IntN(6) {
		case 0:
			r.source.ShufflePartitionLeaders()
		case 1:
			r.target.ShufflePartitionLeaders()
		case 2:
			r.source.cut()
		case 3:
			r.target.cut()
		case 4:
			m.Stop()
			m = e.Start(flow)
		}
	}
	r.source.mend()
	r.target.mend()
	m.CaughtUp(r.topic)
	m.WantSame(r.topic)
	r.commit(e)
	groups := r.groups()
	m.GroupsFollow([]string{r.topic}, groups)
	m.Stop()
	r.wantGoesOn(e, m.Flow, groups[r.rng.IntN(len(groups))])
}

func (r *stopRound) groups() (names []string) {
	for g := range r.at {
		names = append(names, g)
	}
	slices.Sort(names)
	return names
}

// write writes some batches and transactions.
func (r *stopRound) write(e *Env, partitions int32) {
	records := func() (rs []*kgo.Record) {
		for range 1 + r.rng.IntN(40) {
			rs = append(rs, numbered(r.topic, r.written, partitions))
			r.written++
		}
		return rs
	}
	plain := e.Source.Client(e, kgo.ProducerBatchCompression(codecs[r.rng.IntN(len(codecs))].codec))
	r.source.quietly(func() {
		for range 1 + r.rng.IntN(4) {
			if r.rng.IntN(3) == 0 {
				e.PutWith(plain, r.topic, records()...)
				continue
			}
			e.begin(r.producer)
			e.PutWith(r.producer, r.topic, records()...)
			e.end(r.producer, r.rng.IntN(4) > 0)
		}
		e.Settled(r.topic)
	})
	plain.Close()
}

// commit has some groups go on to anywhere.
func (r *stopRound) commit(e *Env) {
	r.source.quietly(func() {
		ends := e.offsets(e.Source.admin.ListCommittedOffsets, r.topic)
		for range 1 + r.rng.IntN(3) {
			g := e.Topic(fmt.Sprint("group-", r.rng.IntN(4)))
			if r.at[g] == nil {
				r.at[g] = make([]int64, len(ends))
			}
			for p, end := range ends {
				if left := end - r.at[g][p]; left > 0 {
					r.at[g][p] += r.rng.Int64N(left + 1)
				}
			}
			e.CommitGroup(e.Source, g, r.topic, r.at[g]...)
		}
	})
}

// wantGoesOn has a consumer of the group read the target's topic to its end: it reads
// what one of the source's would.
func (r *stopRound) wantGoesOn(e *Env, f *Flow, group string) {
	var want, got [][]string
	left := 0
	for p, rs := range e.Read(e.Source, r.topic) {
		want, got = append(want, nil), append(got, nil)
		for _, s := range rs {
			if s.Offset >= r.at[group][p] {
				want[p] = append(want[p], string(s.Value))
				left++
			}
		}
	}
	client := e.Target.Client(e, kgo.ConsumerGroup(group), kgo.ConsumeTopics(f.TargetName(r.topic)), kgo.DisableAutoCommit(), kgo.ConsumeResetOffset(kgo.NoResetOffset()))
	defer client.Close()
	for left > 0 {
		fetches := client.PollFetches(e.ctx)
		if err := fetches.Err(); err != nil {
			e.Fatalf("group %s goes on: %v, with %d records left", group, err, left)
		}
		fetches.EachRecord(func(t *kgo.Record) {
			got[t.Partition] = append(got[t.Partition], string(t.Value))
			left--
		})
	}
	for p := range want {
		if !slices.Equal(got[p], want[p]) {
			e.Errorf("partition %d: group %s goes on with %s, want %s", p, group, list(got[p]), list(want[p]))
		}
	}
}
