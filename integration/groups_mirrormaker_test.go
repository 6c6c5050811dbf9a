package integration

import (
	"fmt"
	"math/rand/v2"
	"strings"

	"mirror/integration/contract"
	"mirror/integration/kafkatest"
)

// scattered is how many groups have stopped anywhere.
const scattered = 40

// failedOver sums up what groups would lose and repeat if they failed over now.
type failedOver struct {
	offsets, without, exact int // committed at the source; of these: without a checkpoint; that go on exactly
	repeated, worst, lost   int // records; of one offset at most
}

func (s *failedOver) add(m contract.Moved) {
	s.offsets++
	if m == (contract.Moved{}) {
		s.exact++
	}
	s.repeated += m.Repeated
	s.worst = max(s.worst, m.Repeated)
	s.lost += m.Lost + int(m.Ahead)
}

func (s failedOver) row(who string) string {
	return fmt.Sprintf("| %s | %d | %d | %d | %d | %d |", who, s.offsets, s.without, s.exact, s.repeated, s.worst)
}

// failOver sums up, for groups that have offsets on the topics, what the checkpoints of
// a flow from an alias send them to.
func failOver(e *contract.Env, alias string, topics, groups []string) (s failedOver) {
	e.Helper()
	checkpoints := e.LastCheckpoints(alias)
	for _, t := range topics {
		copied := e.Copied(e.Source, t, e.Target, alias+"."+t)
		for _, g := range groups {
			for p, at := range e.GroupOffsets(e.Source, g)[t] {
				if copied[p].Empty() {
					continue // nothing to lose, nothing to repeat
				}
				c, ok := checkpoints[g][alias+"."+t][p]
				switch {
				case !ok:
					s.offsets++
					s.without++
				case c.Upstream != at.At:
					e.Errorf("the checkpoint of %s for %s/%d is of %d; the group is at %d", g, t, p, c.Upstream, at.At)
				default:
					s.add(copied[p].Moved(at.At, c.Downstream))
				}
				if want := at.Metadata; ok && c.Metadata != want {
					e.Errorf("the checkpoint of %s for %s/%d has the metadata %q, want %q", g, t, p, c.Metadata, want)
				}
			}
		}
	}
	return s
}

// checkpointed waits until a flow from an alias has found all groups that there are and
// gone through them: a new one has its checkpoint, and a newer one once it has moved.
func checkpointed(e *contract.Env, alias, topic string) {
	e.Helper()
	end := e.Ends(e.Source, topic)[0]
	canary := e.Topic(fmt.Sprintf("canary-of-%s-at-%d", alias, end))
	for _, at := range []int64{end - 1, end} {
		e.CommitGroup(e.Source, canary, topic, at)
		e.Eventually("checkpoints of "+alias, func() string {
			if c := e.LastCheckpoints(alias)[canary][alias+"."+topic][0]; c.Upstream != at {
				return fmt.Sprintf("the last one of %s is of %d, want %d", canary, c.Upstream, at)
			}
			return ""
		})
	}
}

// scatter makes groups that have stopped anywhere before the ends of the topics of
// then, and others anywhere after them.
func scatter(e *contract.Env, topics []string, then map[string][]int64) (before, after []string) {
	e.Helper()
	rng := rand.New(rand.NewPCG(6, 0))
	starts := map[string][]int64{}
	for _, t := range topics {
		starts[t] = e.Starts(e.Source, t)
	}
	return e.ScatterGroups(rng, "before", scattered/2, starts, then), e.ScatterGroups(rng, "after", scattered/2, then, ends(e, topics))
}

// ends are the ends of the topics at the source, by topic and partition.
func ends(e *contract.Env, topics []string) map[string][]int64 {
	e.Helper()
	all := map[string][]int64{}
	for _, t := range topics {
		all[t] = e.Ends(e.Source, t)
	}
	return all
}

// table is a table for a log, or a README.
func table(rows ...string) string {
	return "\n| | offsets | no checkpoint | exact | records repeated | by one offset at most |\n| --- | --- | --- | --- | --- | --- |\n" + strings.Join(rows, "\n")
}

// failOverBeside has groups that have stopped anywhere fail over to copies that are made
// side by side, and logs the README's table.
func failOverBeside(e *contract.Env, all []beside, topics []string, then map[string][]int64) {
	e.Helper()
	before, after := scatter(e, topics, then)
	var rows []string
	for _, b := range all {
		checkpointed(e, b.theirs, topics[1])
		for _, g := range []struct {
			when   string
			groups []string
		}{{"before it began", before}, {"since", after}} {
			theirs := failOver(e, b.theirs, topics, g.groups)
			rows = append(rows, theirs.row(fmt.Sprintf("MirrorMaker, offset.lag.max %d, copied %s", b.lag, g.when)))
			if theirs.lost > 0 || theirs.exact == theirs.offsets {
				e.Errorf("MirrorMaker loses %d records, and %d offsets of %d are exact; the README says that it loses none and not all are", theirs.lost, theirs.exact, theirs.offsets)
			}
		}
	}
	e.Log(table(rows...))
}

// mirrorMakerReadsOurs has MirrorMaker's checkpoint connector, without its others, work
// on the offset syncs of two flows, kept at the source and on the target: no checkpoint
// sends a group past where it belongs.
func (k *kafka) mirrorMakerReadsOurs(e *contract.Env) {
	topics, more := e.SyncedTopics()
	const target = "rd" // the target's alias
	locations := []struct{ alias, location string }{{"rs", "source"}, {"rt", "target"}}
	var flows []contract.Flow
	var connectors []map[string]string
	for _, l := range locations {
		flows = append(flows, contract.Flow{From: l.alias, To: target, Tables: fmt.Sprintf("[flows.offset_syncs]\nlocation = %q\n", l.location)})
		connectors = append(connectors, map[string]string{
			"name":                                  "checkpoints-" + l.alias,
			"connector.class":                       "org.apache.kafka.connect.mirror.MirrorCheckpointConnector",
			"source.cluster.alias":                  l.alias,
			"source.cluster.bootstrap.servers":      k.source.Internal(),
			"target.cluster.alias":                  target,
			"target.cluster.bootstrap.servers":      k.target.Internal(),
			"topics":                                e.Topic(".*"),
			"groups":                                e.Topic(".*"),
			"offset-syncs.topic.location":           l.location,
			"offset-syncs.topic.replication.factor": "1",
			"checkpoints.topic.replication.factor":  "1",
			"emit.checkpoints.interval.seconds":     "1",
			"refresh.groups.interval.seconds":       "1",
		})
	}
	m := e.Start(flows...)
	caughtUp := func() {
		e.Helper()
		for _, f := range m.Flows {
			f.CaughtUp(topics...)
		}
	}
	caughtUp()
	mm := kafkatest.StartConnectors(e, k.net, "mm2-checkpoints", map[string]string{
		"bootstrap.servers":            k.target.Internal(),
		"key.converter":                "org.apache.kafka.connect.converters.ByteArrayConverter",
		"value.converter":              "org.apache.kafka.connect.converters.ByteArrayConverter",
		"offset.storage.file.filename": "/tmp/connect.offsets",
		"plugin.discovery":             "service_load",
	}, connectors...)
	for _, l := range locations {
		checkpointed(e, l.alias, topics[1])
	}
	then := ends(e, topics)
	more()
	caughtUp()
	before, after := scatter(e, topics, then)
	var rows []string
	for _, l := range locations {
		checkpointed(e, l.alias, topics[1])
		s := failOver(e, l.alias, topics, before)
		rows = append(rows, s.row("offset syncs at the "+l.location+", copied before MirrorMaker began"))
		s = failOver(e, l.alias, topics, after)
		rows = append(rows, s.row("offset syncs at the "+l.location+", copied since"))
		if s.without > 0 {
			e.Errorf("%d offsets of what was copied while MirrorMaker ran have no checkpoint", s.without)
		}
		wantNoneAhead(e, l.alias, topics)
	}
	e.Log(table(rows...))
	mm.Stop(e)
}

// wantNoneAhead checks that no checkpoint that was ever written for a flow loses a
// record.
func wantNoneAhead(e *contract.Env, alias string, topics []string) {
	e.Helper()
	copied := map[string][]contract.Copied{}
	for _, t := range topics {
		copied[alias+"."+t] = e.Copied(e.Source, t, e.Target, alias+"."+t)
	}
	for _, c := range e.Checkpoints(alias) {
		if m := copied[c.Topic][c.Partition].Moved(c.Upstream, c.Downstream); m.Lost > 0 || m.Ahead > 0 {
			e.Errorf("the checkpoint of %s from %d to %d of %s/%d: %v", c.Group, c.Upstream, c.Downstream, c.Topic, c.Partition, m)
		}
	}
}
