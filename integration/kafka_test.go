// Package integration plays the contract's scenarios on real Kafka, and those
// that need what only real brokers, real clients or MirrorMaker 2 do; and it
// holds the rules of the repository.
package integration

import (
	"flag"
	"os"
	"slices"
	"testing"

	"github.com/testcontainers/testcontainers-go"
	"github.com/twmb/franz-go/pkg/kfake"
	"go.uber.org/goleak"

	"mirror/integration/contract"
	"mirror/integration/kafkatest"
)

func TestMain(m *testing.M) {
	flag.Parse()
	// Scenarios wait more than they work: for cleaners, refreshes, restarts.
	parallel := false
	flag.Visit(func(f *flag.Flag) { parallel = parallel || f.Name == "test.parallel" })
	if !parallel {
		_ = flag.Set("test.parallel", "6") // a flag that every test binary has
	}
	goleak.VerifyTestMain(m,
		// Testcontainers keeps its HTTP connections to Docker.
		goleak.IgnoreAnyFunction("net/http.(*persistConn).readLoop"),
		goleak.IgnoreAnyFunction("net/http.(*persistConn).writeLoop"),
		goleak.Cleanup(func(code int) {
			contract.Clean()
			os.Exit(code)
		}))
}

// kafka is what all tests on real Kafka share.
type kafka struct {
	net            *testcontainers.DockerNetwork
	source, target *kafkatest.Cluster
	pair           contract.Pair
}

// brokerConfig has the log cleaner look more often than every 15 s, idle
// connections closed sooner than after 10 minutes, and quotas in force after two
// seconds of their rate, not eleven.
var brokerConfig = map[string]string{"log.cleaner.backoff.ms": "200", "connections.max.idle.ms": "4000", "quota.window.num": "2"}

func start(t *testing.T) *kafka {
	net := kafkatest.Network(t)
	cs := kafkatest.StartAll(t, net,
		kafkatest.Options{Name: "source", Config: brokerConfig}, kafkatest.Options{Name: "target", Config: brokerConfig})
	k := &kafka{net: net, source: cs[0], target: cs[1]}
	third, err := kfake.NewCluster(kfake.NumBrokers(1))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(third.Close)
	k.pair = contract.Pair{
		Source: contract.NewCluster(t, k.source.Bootstrap(), ""),
		Target: contract.NewCluster(t, k.target.Bootstrap(), ""),
		Third:  contract.NewCluster(t, third.ListenAddrs(), ""),
		Real:   true,
	}
	return k
}

// TestKafka shares one pair of clusters among all that does not harm them; what
// does comes after.
func TestKafka(t *testing.T) {
	k := start(t)
	pair := func(testing.TB) contract.Pair { return k.pair }
	t.Run("contract", func(t *testing.T) {
		contract.Play(t, pair, slices.Concat(contract.Everywhere(), contract.OnRealBrokers()))
	})
	t.Run("clients", func(t *testing.T) { contract.Play(t, pair, k.clientScenarios()) })
	t.Run("rough", func(t *testing.T) { contract.Play(t, pair, k.roughScenarios()) })
}
