package contract

import "slices"

var cycleScenarios = []Scenario{
	{Name: "opposite-flows", Run: oppositeFlowsDoNotEcho},
	{Name: "ring", Run: ringEndsBeforeItsOrigin},
}

// wantTopics checks the scenario's topics on a cluster.
func (e *Env) wantTopics(c *Cluster, want ...string) {
	e.Helper()
	got := e.Topics(c)
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		e.Errorf("topics are %v, want %v", got, want)
	}
}

// twoRounds makes a topic after all that is there is copied, waits for it to be
// copied by every flow that takes it, and does so again: whatever echoes would
// have been found by then.
func (e *Env) twoRounds(copied func(topic string), clusters ...*Cluster) (made []string) {
	e.Helper()
	for _, name := range []string{"round-1", "round-2"} {
		topic := e.Topic(name)
		for _, c := range clusters {
			e.Create(c, topic, 1)
			e.Put(c, topic, Values(0, "x")...)
		}
		copied(topic)
		made = append(made, topic)
	}
	return made
}

func oppositeFlowsDoNotEcho(e *Env) {
	topic := e.Topic("t")
	for _, c := range []*Cluster{e.Source, e.Target} {
		e.Create(c, topic, 1)
	}
	e.Put(e.Source, topic, Values(0, "of left")...)
	e.Put(e.Target, topic, Values(0, "of right")...)
	all := ".*" + e.Topic(".*") // mirrored ones too
	m := e.Start(
		Flow{From: "left", To: "right", Topics: all},
		Flow{From: "right", To: "left", Source: e.Target, Target: e.Source, Topics: all},
	)
	rounds := e.twoRounds(func(t string) { m.Flows[0].CaughtUp(t); m.Flows[1].CaughtUp(t) }, e.Source, e.Target)
	m.Flows[0].CaughtUp(topic)
	m.Flows[1].CaughtUp(topic)
	e.wantTopics(e.Source, topic, "right."+topic, rounds[0], rounds[1], "right."+rounds[0], "right."+rounds[1])
	e.wantTopics(e.Target, topic, "left."+topic, rounds[0], rounds[1], "left."+rounds[0], "left."+rounds[1])
	e.WantValues(e.Source, topic, []string{"of left"})
	e.WantValues(e.Target, topic, []string{"of right"})
	e.WantValues(e.Source, "right."+topic, []string{"of right"})
	e.WantValues(e.Target, "left."+topic, []string{"of left"})
}

func ringEndsBeforeItsOrigin(e *Env) {
	all := ".*" + e.Topic(".*")
	m := e.Start(
		Flow{From: "a", To: "b", Topics: all},
		Flow{From: "b", To: "c", Source: e.Target, Target: e.Third, Topics: all},
		Flow{From: "c", To: "a", Source: e.Third, Target: e.Source, Topics: all},
	)
	ab, bc, ca := m.Flows[0], m.Flows[1], m.Flows[2]
	rounds := e.twoRounds(func(t string) { ab.CaughtUp(t); bc.CaughtUp("a." + t) }, e.Source)
	// The third flow has looked since, too: it has copied a topic of its own.
	own := e.Topic("of-c")
	e.Create(e.Third, own, 1)
	e.Put(e.Third, own, Values(0, "x")...)
	ca.CaughtUp(own)
	ab.CaughtUp("c." + own)
	e.wantTopics(e.Source, rounds[0], rounds[1], "c."+own)
	e.wantTopics(e.Target, "a."+rounds[0], "a."+rounds[1], "a.c."+own)
	e.wantTopics(e.Third, "b.a."+rounds[0], "b.a."+rounds[1], own)
}
