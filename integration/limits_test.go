package integration

import (
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"mirror/integration/contract"
	"mirror/integration/kafkatest"
	"mirror/sidecar/status"
)

// A broker closes a connection that nothing was sent on for a while. That is no
// trouble, and the next record finds another.
func (k *kafka) idleConnectionsAreClosed(e *contract.Env) {
	topic := e.Topic("t")
	e.Create(e.Source, topic, 1)
	m := e.Start()
	for n := range 2 {
		e.Put(e.Source, topic, contract.Values(0, fmt.Sprint(n))...)
		m.CaughtUp(topic)
		before := k.target.Nodes[0].Proxy.Hangups()
		m.Wait("idle connections to be closed", func() string {
			if now := k.target.Nodes[0].Proxy.Hangups(); now < before+2 {
				return fmt.Sprintf("%d were", now-before)
			}
			return ""
		})
	}
	e.Put(e.Source, topic, contract.Values(0, "last")...)
	m.CaughtUp(topic)
	m.WantSame(topic)
	for kind, n := range m.Status().Errors {
		if n != 0 {
			e.Errorf("%d errors of kind %s", n, kind)
		}
	}
}

// throttled counts the answers in which a broker asks a client to wait.
type throttled struct{ n atomic.Int64 }

func (t *throttled) OnBrokerThrottle(_ kgo.BrokerMetadata, _ time.Duration, _ bool) { t.n.Add(1) }

// Quotas on both sides make the mirror wait (KIP-219), and that is all they do.
func (k *kafka) quotasSlowItDown(e *contract.Env) {
	const client = "mirror" // the default client_id
	topic := e.Topic("t")
	e.Create(e.Source, topic, 2)
	e.Put(e.Source, topic, randomRecords(2, 100, 20_000)...) // eight seconds of the quotas' rate
	set := func(c *contract.Cluster, quota string, remove bool) {
		e.Helper()
		name := client
		rs, err := kadm.NewClient(c.Client(e)).AlterClientQuotas(e.Context(), []kadm.AlterClientQuotaEntry{{
			Entity: kadm.ClientQuotaEntity{{Type: "client-id", Name: &name}},
			Ops:    []kadm.AlterClientQuotaOp{{Key: quota, Value: 500_000, Remove: remove}},
		}})
		for _, r := range rs {
			if r.Err != nil {
				err = r.Err
			}
		}
		if err != nil {
			e.Fatal(err)
		}
	}
	for c, quota := range map[*contract.Cluster]string{e.Source: "consumer_byte_rate", e.Target: "producer_byte_rate"} {
		set(c, quota, false)
		defer set(c, quota, true)
	}
	m := e.Start()
	m.Reached(topic, 0, 0)
	m.Reached(topic, 1, 0)
	links := []*kafkatest.Proxy{k.source.Nodes[0].Proxy, k.target.Nodes[0].Proxy}
	left := links[0].Leavings() + links[1].Leavings()
	m.CaughtUp(topic)
	// Who takes an answer that is late by order of the broker for a dead connection
	// connects again and again, and makes things worse.
	if n := links[0].Leavings() + links[1].Leavings() - left; n != 0 {
		e.Errorf("%d connections were given up", n)
	}
	// That the quota is in force shows at a client of the same name.
	var waits throttled
	probe := e.Target.Client(e, kgo.ClientID(client), kgo.WithHooks(&waits))
	e.Create(e.Target, e.Topic("probe"), 1)
	e.PutWith(probe, e.Topic("probe"), randomRecords(1, 30, 100_000)...)
	if waits.n.Load() == 0 {
		e.Error("the target does not throttle: the scenario proves nothing")
	}
	m.WantSame(topic)
	for kind, n := range m.Status().Errors {
		if n != 0 {
			e.Errorf("%d errors of kind %s", n, kind)
		}
	}
}

// While the target is away, or there but silent, the mirror waits: what it has
// taken of the source is what its limit allows, and as much again of what the
// target may have stored.
func (k *kafka) stoppedTargetMakesItWait(e *contract.Env) {
	topic := e.Topic("t")
	const partitions, limit, looks = 4, 4 << 20, 100
	e.Create(e.Source, topic, partitions)
	e.Put(e.Source, topic, randomRecords(partitions, 1, 1000)...)
	from, to := k.source.Nodes[0].Proxy, k.target.Nodes[0].Proxy
	e.Cleanup(to.Restore)
	m := e.Start(contract.Flow{Keys: `memory = "4MiB"`})
	m.CaughtUp(topic)
	for how, stop := range map[string]func(){"away": to.Cut, "silent": to.Hold} {
		stop()
		before, seen, held := from.Received(), 0, int64(0)
		e.Put(e.Source, topic, randomRecords(partitions, 100, 100_000)...) // 40 MB
		m.Wait("the mirror to have had time to do wrong", func() string {
			if now := m.Status().MemoryInUse; now > 0 || errors(m.Flow) > 0 {
				held = max(held, now)
				seen++
			}
			if seen < looks {
				return fmt.Sprintf("%d looks of %d", seen, looks)
			}
			return ""
		})
		if took := from.Received() - before; held > 2*limit || took > 2*limit+1<<20 {
			e.Errorf("with the target %s it took %d bytes of the source and held up to %d, with a limit of %d", how, took, held, limit)
		}
		to.Restore()
		m.CaughtUp(topic)
	}
	m.WantSame(topic)
}

// With fetch sessions, partitions where nothing happens are not in the requests
// and answers. Named in each, they would be 30 bytes and more.
func (k *kafka) idlePartitionsCostNothing(e *contract.Env) {
	const idle, answers = 2000, 20
	topic, busy := e.Topic("idle"), e.Topic("busy")
	e.Create(e.Source, topic, idle)
	e.Create(e.Source, busy, 1)
	m := e.Start(contract.Flow{Refresh: "10m"}) // that names them all
	defer func() {
		m.Stop()
		e.Delete(e.Source, topic)
		e.Delete(e.Target, m.TargetName(topic))
	}()
	m.Wait("all partitions to be copied", func() string {
		for _, p := range m.Status().Partitions {
			if p.State != status.Running || p.SourceEnd < 0 {
				return fmt.Sprintf("%s/%d is %s", p.Topic, p.Partition, p.State)
			}
		}
		if n := len(m.Status().Partitions); n != idle+1 {
			return fmt.Sprintf("%d partitions", n)
		}
		return ""
	})
	link := k.source.Nodes[0].Proxy
	// Those without data change over to a link of their own, which names them once.
	at, before := time.Now(), link.Sent()
	m.Wait("the idle partitions to have been named", func() string {
		if time.Since(at) < 3*time.Second {
			return "it is too early to tell"
		}
		now := link.Sent()
		named := now - before
		at, before = time.Now(), now
		if named > idle*30/10 {
			return fmt.Sprintf("%d bytes were sent meanwhile", named)
		}
		return ""
	})
	sent, received := link.Sent(), link.Received()
	for n := range answers {
		e.Put(e.Source, busy, contract.Values(0, fmt.Sprint(n))...)
		m.Reached(busy, 0, int64(n)) // so at least one answer for each
	}
	sent, received = link.Sent()-sent, link.Received()-received
	e.Logf("%d bytes were sent and %d received for %d records, the producer's included", sent, received, answers)
	if most := int64(answers * idle * 30 / 10); sent > most || received > most {
		e.Errorf("%d bytes were sent and %d received for %d records beside %d idle partitions, want a tenth of what it takes to name those: %d",
			sent, received, answers, idle, most)
	}
	if n := m.Status().MemoryInUse; n != 0 {
		e.Errorf("it holds %d bytes of records while nothing happens", n)
	}
}

// randomRecords makes incompressible records, n for each partition.
func randomRecords(partitions int32, n, bytes int) (rs []*kgo.Record) {
	rng := rand.NewChaCha8([32]byte{9})
	for p := range partitions {
		for range n {
			v := make([]byte, bytes)
			rng.Read(v)
			rs = append(rs, &kgo.Record{Partition: p, Value: v})
		}
	}
	return rs
}

// With a target that is far away the mirror holds what its limit allows, not
// what the source has.
func (k *kafka) memoryIsBounded(e *contract.Env) {
	topic := e.Topic("t")
	e.Create(e.Source, topic, 4)
	e.Put(e.Source, topic, randomRecords(4, 100, 100_000)...) // 40 MB
	link := k.target.Nodes[0].Proxy
	e.Cleanup(func() { link.SetDelay(0) })
	link.SetDelay(100 * time.Millisecond)
	m := e.Start(contract.Flow{Keys: `memory = "4MiB"`})
	held := int64(0)
	m.Wait("the mirror to catch up", func() string {
		s := m.Status()
		held = max(held, s.MemoryInUse)
		for p := range int32(4) {
			if s, _ := m.Partition(topic, p); s.Position < 99 {
				return fmt.Sprintf("partition %d is at %d", p, s.Position)
			}
		}
		return ""
	})
	link.SetDelay(0)
	m.WantSame(topic)
	// Room for what is merged or opened is taken on top, a batch at a time.
	if held < 2<<20 || held > 6<<20 {
		e.Errorf("it held up to %d bytes, with a limit of %d", held, 4<<20)
	}
}
