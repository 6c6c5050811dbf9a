package contract

import (
	"os"
	"testing"

	"github.com/twmb/franz-go/pkg/kfake"
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
