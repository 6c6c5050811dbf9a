package contract

import (
	"math/rand/v2"
	"os"
	"strconv"
	"syscall"
	"time"
)

var killScenarios = []Scenario{
	{Name: "kill", Run: killLosesAndRepeatsNothing},
	{Name: "kill-without-resume", Run: killWithoutResumeLosesNothing},
	{Name: "paused", Run: pausedMirrorGivesWayToItsSuccessor},
}

// Kills is how often a mirror is killed. A long round sets MIRROR_TEST_KILLS.
func Kills(usual int) int {
	if n, err := strconv.Atoi(os.Getenv("MIRROR_TEST_KILLS")); err == nil {
		return n
	}
	return usual
}

func killLosesAndRepeatsNothing(e *Env) { KillLosesAndRepeatsNothing(e, 0) }

// KillLosesAndRepeatsNothing kills a mirror again and again while it copies
// records of an age.
func KillLosesAndRepeatsNothing(e *Env, age time.Duration) {
	topic := e.Topic("t")
	e.Create(e.Source, topic, 3, "retention.ms", "-1")
	load := e.AgedLoad(e.Source, topic, 3, age)
	flow := Flow{}
	for i := range Kills(5) {
		if i%2 == 1 {
			flow.Keys = `commit_interval = "50ms"` // so that positions are on their way, too
		}
		p := e.Launch(flow)
		p.Progress(topic, 500+rand.Int64N(2500))
		p.Kill()
	}
	load.Stop()
	p := e.Launch()
	p.CaughtUp(topic)
	p.WantSame(topic)
	p.Signal(syscall.SIGTERM)
	p.WantExit(0)
}

// Records may come twice then, none may be missing, and each pair of offset syncs is of
// one record all the same.
func killWithoutResumeLosesNothing(e *Env) {
	topic := e.Topic("t")
	e.Create(e.Source, topic, 3)
	flow := Flow{Keys: "resume = false\ncommit_interval = \"50ms\""}
	load := e.Load(e.Source, topic, 3)
	for range 3 {
		p := e.Launch(flow)
		p.Progress(topic, 1000)
		p.Saved()
		p.Progress(topic, 500)
		p.Kill()
	}
	load.Stop()
	p := e.Launch(flow)
	p.CaughtUp(topic)
	p.WantNothingMissing(topic)
	p.WantSyncs(e.Target, "mm2-offset-syncs.src.internal", topic)
	p.Signal(syscall.SIGTERM)
	p.WantExit(0)
}

// A mirror is paused, another is started in its place, the first one wakes up:
// it finds that it has been replaced and stops, and nothing is there twice.
func pausedMirrorGivesWayToItsSuccessor(e *Env) {
	topic := e.Topic("t")
	e.Create(e.Source, topic, 3)
	load := e.Load(e.Source, topic, 3)
	old := e.Launch()
	old.Progress(topic, 1500)
	old.Signal(syscall.SIGSTOP)
	successor := e.Launch()
	successor.Progress(topic, 3000)
	old.Signal(syscall.SIGCONT)
	old.WantExit(1)
	successor.Progress(topic, 1500)
	load.Stop()
	successor.CaughtUp(topic)
	successor.WantSame(topic)
	successor.Signal(syscall.SIGTERM)
	successor.WantExit(0)
}
