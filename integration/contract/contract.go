// Package contract is what the mirror promises, as scenarios that run the same
// on clusters in the process (this package's own test) and on real Kafka (the
// tests in integration, which add what only real brokers do).
//
// contract.go has the terms, env.go what a scenario works with, mirror.go and
// process.go two ways to run a mirror, read.go how its work is checked, load.go a
// steady stream of records; the other files are the scenarios.
package contract

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// Cluster is a Kafka cluster that scenarios use.
type Cluster struct {
	Bootstrap []string
	Options   []kgo.Opt // what its clients need: credentials
	Table     string    // further lines of its table in the config file
	client    *kgo.Client
	admin     *kadm.Client
}

// NewCluster prepares a cluster for scenarios that run before t ends.
func NewCluster(t testing.TB, bootstrap []string, table string, opts ...kgo.Opt) *Cluster {
	t.Helper()
	c := &Cluster{Bootstrap: bootstrap, Options: opts, Table: table}
	c.client = c.Client(t)
	c.admin = kadm.NewClient(c.client)
	return c
}

// Client makes a client, which produces to the partition that a record names.
func (c *Cluster) Client(t testing.TB, opts ...kgo.Opt) *kgo.Client {
	t.Helper()
	client, err := kgo.NewClient(slices.Concat([]kgo.Opt{
		kgo.SeedBrokers(c.Bootstrap...),
		kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.MetadataMinAge(50 * time.Millisecond),
		kgo.ProducerBatchCompression(kgo.NoCompression()),
	}, c.Options, opts)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	return client
}

// Pair is where a scenario plays.
type Pair struct {
	Source, Target *Cluster
	Third          *Cluster // for rings
	Real           bool     // Source and Target are real brokers
}

// Scenario is one promise.
type Scenario struct {
	Name  string // letters, digits and dashes: its topics begin with it
	Real  bool   // plays on real brokers only
	Alone bool   // harms the clusters: nothing else may play meanwhile
	// Limit bounds it, so that one that hangs says where; 0: 90 s.
	Limit time.Duration
	Run   func(*Env)
}

const usualLimit = 90 * time.Second

// Play runs the scenarios, those that may side by side. pair is asked for
// clusters by each: it may give the same ones every time, as no two scenarios use
// the same topics.
func Play(t *testing.T, pair func(testing.TB) Pair, scenarios []Scenario) {
	for _, s := range scenarios {
		t.Run(s.Name, func(t *testing.T) {
			if !s.Alone {
				t.Parallel()
			}
			p := pair(t)
			if s.Real && !p.Real {
				t.Fatal("this scenario needs real brokers")
			}
			limit := usualLimit
			if s.Limit > 0 {
				limit = s.Limit
			}
			ctx, cancel := context.WithTimeout(t.Context(), limit)
			t.Cleanup(cancel)
			s.Run(&Env{T: t, Pair: p, prefix: s.Name, ctx: ctx})
		})
	}
}

// Everywhere has the scenarios that every kind of cluster can play.
func Everywhere() []Scenario {
	return slices.Concat(recordScenarios, transactionScenarios, startScenarios, topicScenarios,
		cycleScenarios, positionScenarios, restartScenarios, processScenarios, reloadScenarios,
		killScenarios, lossScenarios, gapScenarios, limitScenarios, syncScenarios, toggleScenarios, stateScenarios, groupScenarios)
}

// OnRealBrokers has those that need what only a real broker does: compaction,
// timestamps by the broker, checks of what is produced.
func OnRealBrokers() []Scenario {
	return slices.Concat(cleanerScenarios, timestampScenarios, refusedScenarios, heavyScenarios)
}
