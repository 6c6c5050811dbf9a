package config

import (
	"regexp"
	"strings"
)

// checkCollisions refuses flows into one cluster that would write to one topic
// there: nothing could tell their records apart.
func checkCollisions(flows []checkedFlow) {
	work := overlapWork
	for i, f := range flows {
		for _, other := range flows[:i] {
			if f.To != other.To {
				continue
			}
			all := []language{f.targets(), other.targets()}
			if f.Naming.Policy != other.Naming.Policy {
				sure, ok := proof(f, other, flows)
				if !ok {
					continue
				}
				all = append(all, sure...)
			}
			if topic, ok := overlap(all, &work); ok {
				f.problem("topics", "this flow and %s (%s) could both write to topics like %q on %s: "+
					"exclude them from one, or use the default policy", other.path, other.Name(), topic, f.To)
			}
		}
	}
}

// proof decides between an identity flow and a default one. A pattern like .*
// always covers the other's names, so it must be sure that the source of the
// identity flow has such topics: they are listed, or another flow makes them.
func proof(f, other checkedFlow, flows []checkedFlow) ([]language, bool) {
	identity, named := f, other
	if f.Naming.Policy == DefaultPolicy {
		identity, named = other, f
	}
	listed := true
	for _, re := range identity.Topics {
		_, ok := Literal(re)
		listed = listed && ok
	}
	if listed {
		return nil, true
	}
	for _, maker := range flows {
		if maker.To == identity.From && maker.prefix() == named.prefix() {
			return []language{maker.targets()}, true
		}
	}
	return nil, false
}

// checkPositionTopics refuses a flow that would write into the topic where
// positions are kept.
func checkPositionTopics(flows []checkedFlow) {
	for _, f := range flows {
		for _, writer := range flows {
			if writer.To == f.To && writer.targets().contains(f.Positions.Topic) {
				f.problem("positions", "flow %s would mirror into the topic %s, where positions are kept: add it to %s.exclude_topics",
					writer.Name(), f.Positions.Topic, writer.path)
			}
		}
	}
}

// checkEmitTopics refuses plugins that would write among mirrored records, or
// among positions or checkpoints.
func checkEmitTopics(flows []checkedFlow) {
	for _, f := range flows {
		for _, p := range f.Plugins {
			for _, topic := range p.Emit.Topics {
				for _, writer := range flows {
					switch {
					case writer.To != f.To:
					case writer.targets().contains(topic):
						f.problem("plugins", "the plugin %q may not emit to %s: flow %s mirrors into it", p.Name, topic, writer.Name())
					case topic == writer.Positions.Topic:
						f.problem("plugins", "the plugin %q may not emit to %s: flow %s keeps its positions there", p.Name, topic, writer.Name())
					case topic == writer.CheckpointsTopic():
						f.problem("plugins", "the plugin %q may not emit to %s: flow %s keeps its checkpoints there", p.Name, topic, writer.Name())
					}
				}
			}
		}
	}
}

// language is a set of topic names: prefix followed by what some pattern of
// include matches and none of exclude.
type language struct {
	prefix           string
	include, exclude []*regexp.Regexp
}

// targets are the names that the flow can write, as policy.Policy has it.
func (f checkedFlow) targets() language {
	separator := regexp.QuoteMeta(f.Naming.Separator)
	never := []string{`__.*`, `\..*`, `mm2.*` + separator + `internal`, `.*` + separator + `checkpoints` + separator + `internal`}
	if f.Naming.Policy == IdentityPolicy {
		never = append(never, `.*heartbeats`) // these get the prefix after all
	}
	l := language{prefix: f.prefix(), include: f.Topics}
	l.exclude = append(l.exclude, f.ExcludeTopics...)
	for _, source := range never {
		l.exclude = append(l.exclude, regexp.MustCompile(patternOpen+source+patternClose))
	}
	return l
}

func (l language) contains(name string) bool {
	topic, ok := strings.CutPrefix(name, l.prefix)
	if !ok {
		return false
	}
	included := false
	for _, re := range l.include {
		included = included || re.MatchString(topic)
	}
	for _, re := range l.exclude {
		included = included && !re.MatchString(topic)
	}
	return included
}
