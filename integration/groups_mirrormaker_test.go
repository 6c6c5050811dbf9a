package integration

import (
	"fmt"
	"math/rand/v2"
	"strings"

	"github.com/twmb/franz-go/pkg/kadm"

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

// failOver sums up, for each of some sets of groups that have offsets on the topics, what
// the checkpoints of a flow from an alias send them to.
func failOver(e *contract.Env, alias string, topics []string, sets ...[]string) []failedOver {
	e.Helper()
	checkpoints := e.LastCheckpoints(alias)
	copied := map[string][]contract.Copied{}
	for _, t := range topics {
		copied[t] = e.Copied(e.Source, t, e.Target, alias+"."+t)
	}
	sums := make([]failedOver, len(sets))
	for i, groups := range sets {
		for _, g := range groups {
			e.GroupOffsets(e.Source, g).Each(func(at kadm.OffsetResponse) {
				to := copied[at.Topic][at.Partition]
				if to.Empty() {
					return // nothing to lose, nothing to repeat
				}
				c, ok := checkpoints[g][alias+"."+at.Topic][at.Partition]
				switch {
				case !ok:
					sums[i].offsets++
					sums[i].without++
				case c.Upstream != at.At || c.Metadata != at.Metadata:
					e.Errorf("the checkpoint of %s for %s/%d is of %d, %q; the group is at %d, %q", g, at.Topic, at.Partition, c.Upstream, c.Metadata, at.At, at.Metadata)
				default:
					sums[i].add(to.Moved(at.At, c.Downstream))
				}
			})
		}
	}
	return sums
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
	for _, b := range all {
		e.CheckpointRound(b.theirs, topics[1])
		e.CheckpointRound(b.ours, topics[1])
	}
	var rows []string
	for _, b := range all {
		theirs, ours := failOver(e, b.theirs, topics, after, before), failOver(e, b.ours, topics, after, before)
		for i, when := range []string{"since MirrorMaker began", "before"} {
			theirs, ours := theirs[i], ours[i]
			rows = append(rows, theirs.row(fmt.Sprintf("MirrorMaker, `offset.lag.max` %d, copied %s", b.lag, when)), ours.row("the mirror, the same"))
			if theirs.lost > 0 || theirs.exact == theirs.offsets {
				e.Errorf("MirrorMaker loses %d records, and %d offsets of %d are exact; the README says that it loses none and not all are", theirs.lost, theirs.exact, theirs.offsets)
			}
			if ours.exact != ours.offsets {
				e.Errorf("%s: of %d offsets %d are exact, and %d have no checkpoint", b.ours, ours.offsets, ours.exact, ours.without)
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
		flows = append(flows, contract.Flow{From: l.alias, To: target, Tables: fmt.Sprintf("[flows.offset_syncs]\nlocation = %q\n[flows.checkpoints]\nenabled = false\n", l.location)})
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
		e.CheckpointRound(l.alias, topics[1])
	}
	then := ends(e, topics)
	more()
	caughtUp()
	before, after := scatter(e, topics, then)
	var rows []string
	for _, l := range locations {
		e.CheckpointRound(l.alias, topics[1])
		s := failOver(e, l.alias, topics, before, after)
		rows = append(rows, s[0].row("offset syncs at the "+l.location+", copied before MirrorMaker began"), s[1].row("the same, copied since"))
		if s[1].without > 0 {
			e.Errorf("%d offsets of what was copied while MirrorMaker ran have no checkpoint", s[1].without)
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
