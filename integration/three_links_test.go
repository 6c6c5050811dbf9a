package integration

import (
	"time"

	"mirror/integration/contract"
)

// The links to either side get long, and are cut while they are.
func (k *three) linksAreSlowAndCut(e *contract.Env) {
	traffic := e.Traffic(partitions)
	p := e.Launch()
	p.ProgressAll(traffic.Topics, 200)
	for _, s := range k.sides(e) {
		for _, n := range s.kafka.Nodes {
			e.Cleanup(func() { n.Proxy.SetDelay(0); n.Proxy.Restore() })
			n.Proxy.SetDelay(50 * time.Millisecond)
		}
		p.ProgressAll(traffic.Topics, 200)
		for _, n := range s.kafka.Nodes {
			before := errors(p.Flow)
			n.Proxy.Cut()
			p.Wait("the cut to be noticed", func() string {
				if errors(p.Flow) == before {
					return "no error counted"
				}
				return ""
			})
			n.Proxy.Restore()
		}
		p.ProgressAll(traffic.Topics, 200)
		for _, n := range s.kafka.Nodes {
			n.Proxy.SetDelay(0)
		}
	}
	finish(e, p, traffic)
}

// All of the target is away for longer than the mirror has memory for: it waits,
// and catches up.
func (k *three) targetIsAway(e *contract.Env) {
	const memory = 4 << 20
	traffic := e.Traffic(partitions)
	p := e.Launch(contract.Flow{Keys: `memory = "4MiB"`})
	p.ProgressAll(traffic.Topics, 200)
	before := p.PeakMemory()
	for _, n := range k.target.Nodes {
		n.Kill(e)
	}
	held, end := int64(0), time.Now().Add(outage(targetOutage))
	e.Eventually("the end of the outage", func() string {
		held = max(held, p.Status().MemoryInUse)
		if time.Now().Before(end) {
			return "not yet"
		}
		return ""
	})
	for _, n := range k.target.Nodes {
		n.Restart(e)
	}
	away := p.PeakMemory()
	k.target.WaitReady(e, 3)
	began := time.Now()
	finish(e, p, traffic)
	e.Logf("all caught up and compared after %v; meanwhile it held %d bytes; peak memory before %d MB, while away %d MB, after %d MB",
		time.Since(began), held, before>>20, away>>20, p.PeakMemory()>>20)
	// What may be stored already is kept beside the limit, as much again.
	if held > 2*memory+1<<20 {
		e.Errorf("it held up to %d bytes, with a limit of %d", held, memory)
	}
	if away-before > 8*memory {
		e.Errorf("its memory grew by %d bytes while it waited", away-before)
	}
}
