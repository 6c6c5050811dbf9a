package integration

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"mirror/integration/contract"
	"mirror/integration/kafkatest"
)

// mirrorMaker runs MirrorMaker 2 for flows from the source, under each of the
// aliases, to the target and the topics of one scenario, with nothing but topics
// copied. more are properties beside. Aliases are a scenario's own, since
// MirrorMakers that run at once with the same ones would be one Connect cluster.
func (k *kafka) mirrorMaker(e *contract.Env, name string, from []string, to string, more map[string]string) *kafkatest.MirrorMaker {
	e.Helper()
	properties := map[string]string{
		"clusters":                          strings.Join(append(slices.Clone(from), to), ","),
		to + ".bootstrap.servers":           k.target.Internal(),
		"replication.factor":                "1",
		"offset.storage.replication.factor": "1",
		"status.storage.replication.factor": "1",
		"config.storage.replication.factor": "1",
		"emit.heartbeats.enabled":           "false",
		"emit.checkpoints.enabled":          "false",
		"emit.offset-syncs.enabled":         "false",
		"sync.topic.acls.enabled":           "false",
		"refresh.topics.interval.seconds":   "1",
	}
	for _, alias := range from {
		properties[alias+".bootstrap.servers"] = k.source.Internal()
		properties[alias+"->"+to+".enabled"] = "true"
		properties[alias+"->"+to+".topics"] = e.Topic(".*")
	}
	maps.Copy(properties, more)
	return kafkatest.StartMirrorMaker(e, k.net, name, properties)
}

// handOver has MirrorMaker 2 copy, then the mirror, then MirrorMaker 2 again:
// each goes on where the one before stopped.
func (k *kafka) handOver(e *contract.Env) {
	topic := e.Topic("t")
	e.Create(e.Source, topic, 2)
	put := func(stage string) {
		for p := range int32(2) {
			e.Put(e.Source, topic, contract.Numbered(p, stage, 100)...)
		}
	}
	arrived := func(records int64) {
		e.Helper()
		e.Eventually(fmt.Sprintf("%d records of each partition", records), func() string {
			if !e.Exists(e.Target, "a."+topic) {
				return "no topic yet"
			}
			return e.MissingRecords(e.Target, "a."+topic, records)
		})
	}
	put("of MirrorMaker")
	mm := k.mirrorMaker(e, "mm2-before", []string{"a"}, "b", nil)
	arrived(100)
	mm.Stop(e)

	put("of the mirror")
	m := e.Start(contract.Flow{From: "a", To: "b"})
	m.CaughtUp(topic)
	m.WantSame(topic)
	m.Stop()

	put("of MirrorMaker again")
	mm = k.mirrorMaker(e, "mm2-after", []string{"a"}, "b", nil)
	arrived(300)
	mm.Stop(e)
	m.WantSame(topic)

	// Compaction keeps one position of a partition only where both write the same
	// key to the same place.
	in := map[string]map[int]bool{}
	for p, rs := range e.Read(e.Target, "mm2-offsets.a.internal") {
		for _, r := range rs {
			if key := string(r.Key); strings.Contains(key, topic) && strings.HasPrefix(key, `["MirrorSourceConnector"`) {
				if in[key] == nil {
					in[key] = map[int]bool{}
				}
				in[key][p] = true
			}
		}
	}
	for key, partitions := range in {
		if len(partitions) != 1 {
			e.Errorf("positions with the key %s are in %d partitions", key, len(partitions))
		}
	}
	if len(in) != 2 {
		e.Errorf("the positions of 2 partitions have %d keys: %v", len(in), in)
	}
}
