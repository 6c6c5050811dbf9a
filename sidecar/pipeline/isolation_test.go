package pipeline

import (
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"

	"mirror/sidecar/batch"
	"mirror/sidecar/config"
	"mirror/sidecar/status"
)

// transaction writes the values in a transaction, each in a batch of its own.
func (s *side) transaction(topic string, commit bool, values ...string) {
	s.t.Helper()
	s.transactions(topic, commit, values)
}

// transactions writes one after the other.
func (s *side) transactions(topic string, commit bool, all ...[]string) {
	s.t.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(s.ListenAddrs()...), kgo.TransactionalID("tx"), kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.ProducerLinger(0))
	if err != nil {
		s.t.Fatal(err)
	}
	defer client.Close()
	for _, values := range all {
		if err := client.BeginTransaction(); err != nil {
			s.t.Fatal(err)
		}
		for _, v := range values {
			if err := client.ProduceSync(s.t.Context(), &kgo.Record{Topic: topic, Value: []byte(v)}).FirstErr(); err != nil {
				s.t.Fatal(err)
			}
		}
		if err := client.EndTransaction(s.t.Context(), kgo.TransactionEndTry(commit)); err != nil {
			s.t.Fatal(err)
		}
	}
}

func TestTransactionsByIsolation(t *testing.T) {
	for name, c := range map[string]struct {
		isolation config.Isolation
		want      []string
		skipped   uint64
	}{
		"committed":   {config.ReadCommitted, []string{"before", "yes-0", "yes-1", "after"}, 4}, // two records, two markers
		"uncommitted": {config.ReadUncommitted, []string{"before", "yes-0", "yes-1", "no-0", "no-1", "after"}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t, func(f *config.Flow) { f.Isolation = c.isolation })
			l.source.create("t", 1)
			l.source.write("t", 0, "before")
			l.source.transaction("t", true, values("yes", 0, 2)...)
			l.source.transaction("t", false, values("no", 0, 2)...)
			r := l.start()
			l.source.write("t", 0, "after")
			l.copied("t", 0, c.want...)
			l.saved("t", 0, 7)
			if p, _ := r.partition("t", 0); p.Batches[status.PathSkipped] != c.skipped || p.Lag != 0 {
				t.Errorf("%+v, want %d batches skipped", p, c.skipped)
			}
		})
	}
}

// Offsets without records at the end of the log are done with, too.
func TestThePositionPassesWhatHoldsNoRecords(t *testing.T) {
	l := newLab(t)
	l.source.create("t", 1)
	l.source.write("t", 0, "v")
	r := l.start()
	l.copied("t", 0, "v")
	l.source.transaction("t", false, "no")
	l.saved("t", 0, 2)
	r.stop()
	if p := l.positions(); len(p) != 1 {
		t.Errorf("positions %v", p)
	}
}

func TestTheBudgetIsKept(t *testing.T) {
	l := newLab(t, func(f *config.Flow) { f.Memory = 1 << 20 })
	l.source.create("t", 8)
	for n := range int32(8) {
		for range 8 {
			l.source.store("t", n, l.source.made(batch.LZ4, noise(100<<10)))
		}
	}
	l.target.create("A.t", 8)
	release, asked := l.target.hold(t, "A.t")
	r := l.start()
	<-asked
	eventually(t, "a full budget", func() string {
		if n := r.Status().MemoryInUse; n < l.cfg.Memory/2 {
			return "there is room"
		}
		return ""
	})
	// A batch that would not fit beside the others passes alone: the bound is one
	// answer more, and no answer is asked for that is larger than a quarter.
	if n := r.Status().MemoryInUse; n > l.cfg.Memory+l.cfg.Memory/4 {
		t.Errorf("%d bytes are in use, the budget is %d", n, l.cfg.Memory)
	}
	release()
	for n := range int32(8) {
		eventually(t, "the records", func() string {
			if got := len(l.target.values("A.t", n)); got != 8 {
				return "not all are there"
			}
			return ""
		})
	}
}
