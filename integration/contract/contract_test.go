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

// TestOnOldFakeClusters plays what matters of versions: before 3.1 there are no
// topic ids in fetches, before 2.8 none at all.
func TestOnOldFakeClusters(t *testing.T) {
	for name, versions := range map[string]*kversion.Versions{"2.4": kversion.V2_4_0(), "2.7": kversion.V2_7_0(), "3.0": kversion.V3_0_0()} {
		old := func(t testing.TB) *Cluster {
			c, err := kfake.NewCluster(kfake.NumBrokers(2), kfake.MaxVersions(versions))
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(c.Close)
			return NewCluster(t, c.ListenAddrs(), "")
		}
		t.Run(name, func(t *testing.T) {
			Play(t, func(t testing.TB) Pair { return Pair{Source: old(t), Target: old(t)} }, []Scenario{
				{Name: "records", Run: recordsArriveUnchanged},
				{Name: "transactions", Run: onlyCommittedRecordsAreCopied},
				{Name: "growth", Run: targetGrowsWithItsSource},
				{Name: "restart", Run: restartUnderLoadLosesAndRepeatsNothing},
				{Name: "idle-restart", Run: restartWithNothingNewCopiesNothing},
				{Name: "trimmed", Run: cutBatchStartsWhereTheLogDoes},
			})
		})
	}
}
