package contract

import (
	"os"
	"testing"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kversion"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		Clean()
		os.Exit(code)
	}))
}

// fake is a cluster in this process. With two brokers, what is led by one is
// not found at the other.
func fake(t testing.TB) *Cluster {
	t.Helper()
	c, err := kfake.NewCluster(kfake.NumBrokers(2), kfake.DefaultNumPartitions(1))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return NewCluster(t, c.ListenAddrs(), "")
}

func TestOnFakeClusters(t *testing.T) {
	Play(t, func(t testing.TB) Pair {
		return Pair{Source: fake(t), Target: fake(t), Third: fake(t)}
	}, Everywhere())
}

// TestOnOldFakeClusters plays what matters of versions, on those in which a
// request that carries data changed (see the README): the oldest of all; sessions
// (1.1); zstd (2.1); the default replication factor (2.4); diverging epochs (2.7);
// topic ids, nowhere before 2.8, and in fetches from 3.1 on. What the newest fake
// cluster speaks, all other tests do.
func TestOnOldFakeClusters(t *testing.T) {
	always := []Scenario{
		{Name: "records", Run: recordsArriveUnchanged},
		{Name: "transactions", Run: onlyCommittedRecordsAreCopied},
		{Name: "restart", Run: restartUnderLoadLosesAndRepeatsNothing},
		{Name: "idle-restart", Run: restartWithNothingNewCopiesNothing},
	}
	growth := append(always[:len(always):len(always)], Scenario{Name: "growth", Run: targetGrowsWithItsSource})
	whole := append(growth[:len(growth):len(growth)], Scenario{Name: "trimmed", Run: cutBatchStartsWhereTheLogDoes}) // with each codec
	for name, c := range map[string]struct {
		versions *kversion.Versions
		play     []Scenario
	}{
		"0.11": {kversion.V0_11_0(), always}, // where partitions cannot be added, by anybody's request
		"1.0":  {kversion.V1_0_0(), growth},
		"1.1":  {kversion.V1_1_0(), growth},
		"2.1":  {kversion.V2_1_0(), whole},
		"2.4":  {kversion.V2_4_0(), whole},
		"2.7":  {kversion.V2_7_0(), whole},
		"3.0":  {kversion.V3_0_0(), whole},
	} {
		old := func(t testing.TB) *Cluster {
			c, err := kfake.NewCluster(kfake.NumBrokers(2), kfake.MaxVersions(c.versions))
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(c.Close)
			return NewCluster(t, c.ListenAddrs(), "")
		}
		t.Run(name, func(t *testing.T) {
			Play(t, func(t testing.TB) Pair { return Pair{Source: old(t), Target: old(t)} }, c.play)
		})
	}
}
