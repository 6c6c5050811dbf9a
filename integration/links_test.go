package integration

import (
	"fmt"
	"math"
	"syscall"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"mirror/integration/contract"
	"mirror/integration/kafkatest"
	"mirror/sidecar/status"
)

// roughScenarios harm the shared clusters or the links to them.
func (k *kafka) roughScenarios() []contract.Scenario {
	return []contract.Scenario{
		{Name: "corrupt", Real: true, Alone: true, Run: k.bitsFlipOnTheWay},
		{Name: "cut", Real: true, Alone: true, Run: k.linksAreCut},
		{Name: "kill-far-away", Real: true, Alone: true, Run: k.killedWithMuchOnItsWay},
		{Name: "stop-without-target", Real: true, Alone: true, Run: k.stoppedWhileTheTargetIsAway},
		{Name: "long-link", Real: true, Alone: true, Run: k.smallBatchesOnALongLink},
		{Name: "idle", Real: true, Alone: true, Run: k.idleConnectionsAreClosed},
		{Name: "throttled", Real: true, Alone: true, Run: k.quotasSlowItDown},
		{Name: "memory", Real: true, Alone: true, Run: k.memoryIsBounded},
		{Name: "stopped-target", Real: true, Alone: true, Run: k.stoppedTargetMakesItWait},
		{Name: "idle-partitions", Real: true, Alone: true, Limit: 3 * time.Minute, Run: k.idlePartitionsCostNothing},
		{Name: "broker-restart", Real: true, Alone: true, Run: k.brokersAreKilled},
	}
}

// A batch with a wrong CRC is fetched again. One that stays wrong stops its
// partition alone, and nothing of it is copied.
func (k *kafka) bitsFlipOnTheWay(e *contract.Env) {
	link := k.source.Nodes[0].Proxy
	e.Cleanup(func() { link.Corrupt("", 0) })
	topic, marker := e.Topic("t"), "flip me on the way"
	e.Create(e.Source, topic, 2)
	e.Put(e.Source, topic, contract.Numbered(0, "before", 10)...)
	e.Put(e.Source, topic, contract.Values(0, "a", marker, "b")...)
	e.Put(e.Source, topic, contract.Numbered(0, "after", 10)...)
	e.Put(e.Source, topic, contract.Numbered(1, "other", 10)...)
	link.Corrupt(marker, 2)
	m := e.Start()
	m.CaughtUp(topic)
	if n := link.Corrupted(); n != 2 {
		e.Errorf("%d batches were corrupted, want 2", n)
	}
	if n := m.Status().Errors[status.ErrorCorrupt]; n != 2 {
		e.Errorf("%d corrupt batches counted, want 2", n)
	}
	m.WantSame(topic)

	link.Corrupt(marker, math.MaxInt)
	e.Put(e.Source, topic, contract.Numbered(0, "more", 5)...) // to 27
	e.Put(e.Source, topic, contract.Values(0, marker)...)
	e.Put(e.Source, topic, contract.Numbered(1, "other", 10)...)
	m.Stalled(topic, 0, 28, "checksum")
	m.Reached(topic, 1, 19)
	link.Corrupt("", 0)
	m.CaughtUp(topic)
	m.WantSame(topic)
}

func (k *kafka) linksAreCut(e *contract.Env) {
	topic := e.Topic("t")
	e.Create(e.Source, topic, 3)
	load := e.Load(e.Source, topic, 3)
	m := e.Start()
	m.Progress(topic, 500)
	for range 3 {
		for _, c := range []*kafkatest.Cluster{k.source, k.target} {
			p := c.Nodes[0].Proxy
			before := errors(m.Flow)
			p.Cut()
			m.Wait("the cut to be noticed", func() string {
				if errors(m.Flow) == before {
					return "no error counted"
				}
				return ""
			})
			p.Restore()
			m.Progress(topic, 500)
		}
	}
	load.Stop()
	m.CaughtUp(topic)
	m.WantSame(topic)
}

// errors counts what went wrong on a flow's connections.
func errors(f *contract.Flow) uint64 {
	e := f.Status().Errors
	return e[status.ErrorSourceConnection] + e[status.ErrorTargetConnection]
}

// On a long link much is on its way when the mirror is killed, records and positions.
func (k *kafka) killedWithMuchOnItsWay(e *contract.Env) {
	topic := e.Topic("t")
	e.Create(e.Source, topic, 3)
	link := k.target.Nodes[0].Proxy
	e.Cleanup(func() { link.SetDelay(0) })
	link.SetDelay(15 * time.Millisecond)
	flow := contract.Flow{Keys: `commit_interval = "50ms"`}
	load := e.Load(e.Source, topic, 3)
	for range 3 {
		p := e.Launch(flow)
		p.Progress(topic, 1000)
		p.Saved()
		p.Progress(topic, 500)
		p.Kill()
	}
	load.Stop()
	link.SetDelay(0)
	p := e.Launch(flow)
	p.CaughtUp(topic)
	p.WantSame(topic)
}

// Without its target a mirror has nowhere to drain to: it ends when its grace
// does, or at a second signal, and goes on later.
func (k *kafka) stoppedWhileTheTargetIsAway(e *contract.Env) {
	topic := e.Topic("t")
	e.Create(e.Source, topic, 1)
	e.Put(e.Source, topic, contract.Numbered(0, "start", 100)...)
	link := k.target.Nodes[0].Proxy
	e.Cleanup(link.Restore)
	stopping := func(grace, stage string) *contract.Process {
		e.Helper()
		p := e.Launch(contract.Flow{Keys: fmt.Sprintf("grace = %q", grace)})
		p.CaughtUp(topic)
		p.Saved()
		link.Cut()
		e.Put(e.Source, topic, contract.Numbered(0, stage, 10)...)
		before := errors(p.Flow)
		p.Wait("the mirror to miss its target", func() string {
			if errors(p.Flow) < before+2 {
				return "no trouble counted"
			}
			return ""
		})
		p.Signal(syscall.SIGTERM)
		return p
	}
	p := stopping("10m", "first")
	p.Wait("the mirror to be stopping", func() string {
		if s := p.Status().State; s != status.Stopping {
			return "it is " + string(s)
		}
		return ""
	})
	p.Signal(syscall.SIGINT)
	p.WantExit(130)
	link.Restore()

	stopping("1s", "second").WantExit(0)
	link.Restore()

	p = e.Launch()
	p.CaughtUp(topic)
	p.WantSame(topic)
}

// A partition that falls behind because its small compressed batches wait for
// answers from far away gets them in larger ones.
func (k *kafka) smallBatchesOnALongLink(e *contract.Env) {
	topic := e.Topic("t")
	e.Create(e.Source, topic, 1)
	small := e.Source.Client(e, kgo.ProducerBatchMaxBytes(2<<10), kgo.ProducerBatchCompression(kgo.Lz4Compression()))
	e.PutWith(small, topic, contract.Numbered(0, fmt.Sprintf("%0200d", 0), 20_000)...)
	link := k.target.Nodes[0].Proxy
	e.Cleanup(func() { link.SetDelay(0) })
	link.SetDelay(25 * time.Millisecond)
	m := e.Start()
	m.CaughtUp(topic)
	link.SetDelay(0)
	m.WantSame(topic)
	if p, _ := m.Partition(topic, 0); p.Batches[status.PathMerged]+p.Batches[status.PathReencoded] == 0 {
		e.Errorf("all batches crossed as they came: %v", p.Batches)
	}
}

func (k *kafka) brokersAreKilled(e *contract.Env) {
	topic := e.Topic("t")
	e.Create(e.Source, topic, 3)
	load := e.Load(e.Source, topic, 3)
	m := e.Start()
	for _, c := range []*kafkatest.Cluster{k.target, k.source} {
		m.Progress(topic, 1000)
		c.Nodes[0].Kill(e)
		c.Nodes[0].Restart(e)
		c.WaitReady(e, 1)
	}
	m.Progress(topic, 1000)
	load.Stop()
	m.CaughtUp(topic)
	m.WantSame(topic)
}
