// Package topics keeps the target's topics up to the source's: it finds the
// topics of a flow, makes those that are missing on the target, and grows those
// that have too few partitions.
//
// What a round would change is a [Plan], made from what was seen on both sides
// without any I/O, and applied as it is: a preview and the running mirror cannot
// differ. plan.go has the plan, manager.go the round, discover.go and apply.go
// its requests, configs.go how configs are read.
package topics

import (
	"maps"
	"slices"

	"mirror/sidecar/cluster"
	"mirror/sidecar/config"
	"mirror/sidecar/policy"
)

// View is what was seen of both clusters.
type View struct {
	Source map[string]cluster.Topic // all topics of the source
	Target map[string]cluster.Topic // those that exist of the topics to mirror to
	// Configs are the source's own configs (see ownConfigs), of the topics that
	// have to be created, by source topic.
	Configs map[string]map[string]string
	// Unseen are source topics that could not be looked at, on either side, and
	// why. They are left alone.
	Unseen map[string]error
}

// Plan is what a round changes on the target, and why it cannot change the rest.
type Plan struct {
	Pairs   []Pair // all selected topics, by source name
	Create  []Create
	Grow    []Grow
	Refused map[string]error // by source topic
}

// Pair is a source topic and the name that it has on the target.
type Pair struct{ Source, Target string }

// Create is a topic that the target lacks.
type Create struct {
	Pair
	Partitions        int32
	ReplicationFactor int16 // -1: the broker's default
	// Required are the configs that the topic is not made without: the flow's
	// own, and the cleanup policy.
	Required map[string]string
	// Carried are the other configs of the source topic. Those that the target
	// refuses are left out.
	Carried map[string]string
}

// Grow is a target topic that has fewer partitions than its source.
type Grow struct {
	Pair
	From, To int32
}

// excludedConfigs are those that MirrorMaker does not copy
// (config.properties.exclude of its DefaultConfigPropertyFilter).
var excludedConfigs = []string{
	"follower.replication.throttled.replicas",
	"leader.replication.throttled.replicas",
	"message.timestamp.difference.max.ms",
	"log.message.timestamp.before.max.ms",
	"log.message.timestamp.after.max.ms",
	"message.timestamp.type",
	"unclean.leader.election.enable",
	"min.insync.replicas",
}

const cleanupPolicy = "cleanup.policy"

// Select returns the topics of a flow, sorted by source name.
func Select(source map[string]cluster.Topic, p *policy.Policy, f policy.Filter) []Pair {
	var pairs []Pair
	for _, name := range slices.Sorted(maps.Keys(source)) {
		if p.Mirrors(f, name) {
			pairs = append(pairs, Pair{Source: name, Target: p.Target(name)})
		}
	}
	return pairs
}

// NewPlan plans for the selected topics. A target topic is never shrunk, and
// the configs of one that exists are left alone.
func NewPlan(v View, pairs []Pair, c config.Create) Plan {
	plan := Plan{Pairs: pairs, Refused: map[string]error{}}
	for _, pair := range pairs {
		want := int32(len(v.Source[pair.Source].Partitions))
		target, exists := v.Target[pair.Target]
		have := int32(len(target.Partitions))
		switch {
		case v.Unseen[pair.Source] != nil:
			plan.Refused[pair.Source] = v.Unseen[pair.Source]
		case exists && have < want:
			plan.Grow = append(plan.Grow, Grow{Pair: pair, From: have, To: want})
		case exists:
		default:
			plan.Create = append(plan.Create, newCreate(pair, want, v.Configs[pair.Source], c))
		}
	}
	return plan
}

func newCreate(pair Pair, partitions int32, own map[string]string, c config.Create) Create {
	create := Create{
		Pair: pair, Partitions: partitions, ReplicationFactor: c.ReplicationFactor,
		Required: map[string]string{}, Carried: map[string]string{},
	}
	if create.ReplicationFactor == 0 {
		create.ReplicationFactor = -1
	}
	for name, value := range own {
		switch {
		case name == cleanupPolicy:
			create.Required[name] = value
		case !slices.Contains(excludedConfigs, name):
			create.Carried[name] = value
		}
	}
	for name, value := range c.Configs {
		create.Required[name] = value
		delete(create.Carried, name)
	}
	return create
}
