// Package policy gives topics their names on the target and says which are
// mirrored, exactly as MirrorMaker 2's replication policies, topic filter and
// cycle check do (Kafka 4.3.1: DefaultReplicationPolicy, IdentityReplicationPolicy,
// DefaultTopicFilter, MirrorSourceConnector). It does no I/O.
package policy

import (
	"strings"

	"mirror/sidecar/config"
)

const heartbeats = "heartbeats"

// Policy is the replication policy of one flow.
type Policy struct {
	identity  bool
	separator string
	from, to  string // aliases
}

// New makes the policy of the flow between two clusters, given by alias.
func New(n config.Naming, from, to string) *Policy {
	return &Policy{identity: n.Policy == config.IdentityPolicy, separator: n.Separator, from: from, to: to}
}

// Target is the name that a source topic gets on the target. The identity
// policy, too, puts the source's alias before whatever ends in "heartbeats".
func (p *Policy) Target(topic string) string {
	if p.keepsName(topic) {
		return topic
	}
	return p.from + p.separator + topic
}

// TopicSource is the alias of the cluster that a topic's name says it was
// mirrored from. Under the identity policy that is the flow's source for every
// topic, since names cannot tell.
func (p *Policy) TopicSource(topic string) (alias string, ok bool) {
	if p.keepsName(topic) {
		return p.from, true
	}
	alias, rest, found := strings.Cut(topic, p.separator)
	if !found || strings.ReplaceAll(rest, p.separator, "") == "" {
		// MirrorMaker splits with Java's Pattern.split, which drops empty parts
		// at the end: "a." and "a.." have no source, "a..b" has.
		return "", false
	}
	return alias, true
}

// UpstreamTopic is the name that a topic had on its TopicSource.
func (p *Policy) UpstreamTopic(topic string) (name string, ok bool) {
	if p.keepsName(topic) {
		return topic, true
	}
	alias, ok := p.TopicSource(topic)
	if !ok {
		return "", false
	}
	return topic[len(alias)+len(p.separator):], true
}

// keepsName says whether a topic has the same name on both sides.
func (p *Policy) keepsName(topic string) bool {
	return p.identity && !strings.HasSuffix(topic, heartbeats)
}

// originalTopic is the name that a topic had where it was first produced to.
func (p *Policy) originalTopic(topic string) string {
	for {
		upstream, ok := p.UpstreamTopic(topic)
		if !ok || upstream == topic {
			return topic
		}
		topic = upstream
	}
}

// IsHeartbeats says whether a topic is MirrorMaker's heartbeats topic, at any
// number of hops. It is mirrored whatever the filter says.
func (p *Policy) IsHeartbeats(topic string) bool {
	return p.originalTopic(topic) == heartbeats
}

// IsInternal says whether a topic is Kafka's or MirrorMaker's own. It is never
// mirrored.
func (p *Policy) IsInternal(topic string) bool {
	suffix := p.separator + "internal"
	return strings.HasPrefix(topic, "__") || strings.HasPrefix(topic, ".") ||
		strings.HasPrefix(topic, "mm2") && strings.HasSuffix(topic, suffix) ||
		strings.HasSuffix(topic, p.separator+"checkpoints"+suffix)
}

// IsCycle says whether a topic's name shows that it came from the target, at
// any number of hops.
func (p *Policy) IsCycle(topic string) bool {
	for {
		alias, ok := p.TopicSource(topic)
		if !ok {
			return false
		}
		if alias == p.to {
			return true
		}
		upstream, _ := p.UpstreamTopic(topic)
		if upstream == topic {
			return false
		}
		topic = upstream
	}
}

// Mirrors says whether the flow copies a topic of the source.
func (p *Policy) Mirrors(f Filter, topic string) bool {
	return (f.Selects(topic) || p.IsHeartbeats(topic)) && !p.IsInternal(topic) && !p.IsCycle(topic)
}
