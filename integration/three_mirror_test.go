package integration

import (
	"math/rand/v2"
	"sync"
	"syscall"

	"mirror/integration/contract"
)

// The mirror is killed again and again under load, while groups commit: nothing is lost,
// nothing is there twice.
func (k *three) mirrorIsKilled(e *contract.Env) {
	traffic := e.Traffic(partitions)
	usual := e.SyncGroups()
	walkers := e.Walk(usual, walking, traffic.Topics...)
	flow := usual
	for i := range contract.Kills(usualKills) {
		if i%2 == 1 {
			flow.Keys = usual.Keys + `commit_interval = "50ms"` // so that positions are on their way, too
		}
		p := e.Launch(flow)
		p.ProgressAll(traffic.Topics, 50+rand.Int64N(300))
		p.Kill()
	}
	p := e.Launch(usual)
	finishFollowed(e, p, traffic, walkers)
	p.Signal(syscall.SIGTERM)
	p.WantExit(0)
}

// The mirror dies together with the broker that it writes most to. It starts
// again while the broker is down, and finds what it wrote at the new leaders.
func (k *three) mirrorDiesWithLeader(e *contract.Env) {
	traffic := e.Traffic(partitions)
	target := k.sides(e)[0]
	p := e.Launch()
	for round := range 2 {
		p.ProgressAll(traffic.Topics, 200)
		node := target.leader(e, p.TargetName(traffic.Topics[round]), 0)
		var both sync.WaitGroup
		both.Go(func() { node.Kill(e) })
		both.Go(p.Kill)
		both.Wait()
		p = e.Launch()
		p.ProgressAll(traffic.Topics, 200)
		node.Restart(e)
		target.recovered(e)
	}
	finish(e, p, traffic)
}

// A paused mirror sleeps through a change of leaders, and wakes up beside its
// successor, which writes to the new ones.
func (k *three) pausedMirrorMissesMove(e *contract.Env) {
	traffic := e.Traffic(partitions)
	old := e.Launch()
	old.ProgressAll(traffic.Topics, 200)
	old.Signal(syscall.SIGSTOP)
	names := k.sides(e)[0].names(old, traffic.Topics)
	e.Assign(e.Target, [][]int32{{2, 3, 1}, {3, 1, 2}, {1, 2, 3}}, names...)
	e.Assign(e.Target, [][]int32{{3, 1, 2}, {1, 2, 3}, {2, 3, 1}}, names...) // one of the two moved it
	successor := e.Launch()
	successor.ProgressAll(traffic.Topics, 200)
	old.Signal(syscall.SIGCONT)
	old.WantExit(1)
	successor.ProgressAll(traffic.Topics, 200)
	finish(e, successor, traffic)
}
