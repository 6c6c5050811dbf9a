package policy

import (
	"regexp"
	"testing"

	"pgregory.net/rapid"

	"mirror/sidecar/config"
)

// anything selects every topic.
var anything = NewFilter([]*regexp.Regexp{regexp.MustCompile(``)}, nil)

var (
	aliases    = rapid.StringMatching(`[a-zA-Z0-9]{1,6}`)
	separators = rapid.SampledFrom([]string{".", "_", "-", "__", ".-."})
	topicNames = rapid.StringMatching(`[ab._-]{1,8}|([ABC][._-]){0,3}[a-z]{1,4}|heartbeats`)
)

// A topic that is mirrored under the default policy says where it came from.
func TestTargetAndUpstreamAreInverse(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		from := aliases.Draw(t, "from")
		p := New(config.Naming{Policy: config.DefaultPolicy, Separator: separators.Draw(t, "separator")}, from, "to")
		topic := topicNames.Filter(func(s string) bool { return !p.IsInternal(s) }).Draw(t, "topic")
		target := p.Target(topic)
		upstream, ok := p.UpstreamTopic(target)
		if onlySeparators := regexp.MustCompile(`^(` + regexp.QuoteMeta(p.separator) + `)+$`).MatchString(topic); onlySeparators {
			if ok {
				t.Fatalf("%q has an upstream %q, MirrorMaker sees none", target, upstream)
			}
			return
		}
		source, _ := p.TopicSource(target)
		if !ok || upstream != topic || source != from {
			t.Fatalf("%q became %q, whose source is %q and upstream %q", topic, target, source, upstream)
		}
	})
}

func TestIdentityKeepsNames(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := New(config.Naming{Policy: config.IdentityPolicy, Separator: "."}, "A", "B")
		topic := rapid.StringMatching(`[a-zA-Z0-9._-]{1,20}`).Draw(t, "topic")
		want := topic
		if regexp.MustCompile(`heartbeats$`).MatchString(topic) {
			want = "A." + topic
		}
		if got := p.Target(topic); got != want {
			t.Fatalf("%q became %q", topic, got)
		}
	})
}

// Under the default policy no record comes back to where it was produced, in
// a ring of any length: a topic crosses each cluster once at most.
func TestRingsDoNotEcho(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ring := rapid.SliceOfNDistinct(aliases, 2, 4, rapid.ID[string]).Draw(t, "ring")
		policy := rapid.SampledFrom([]string{config.DefaultPolicy, config.IdentityPolicy}).Draw(t, "policy")
		naming := config.Naming{Policy: policy, Separator: separators.Draw(t, "separator")}
		topic := rapid.StringMatching(`[a-z]{1,5}`).Draw(t, "topic")
		if policy == config.IdentityPolicy {
			topic = heartbeats // the only names by which it can tell
		}
		for i := range ring {
			name := topic
			for hop := range 2 * len(ring) {
				from, to := ring[(i+hop)%len(ring)], ring[(i+hop+1)%len(ring)]
				p := New(naming, from, to)
				if !p.Mirrors(anything, name) {
					if hop != len(ring)-1 {
						t.Fatalf("%q from %s stopped after %d hops of %v", topic, ring[i], hop, ring)
					}
					break
				}
				if to == ring[i] {
					t.Fatalf("%q came back to %s as %q", topic, ring[i], p.Target(name))
				}
				name = p.Target(name)
			}
		}
	})
}

// Whatever a name looks like, what the flow wrote is a cycle for the opposite one.
func TestOppositeFlowsDoNotEcho(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		naming := config.Naming{Policy: config.DefaultPolicy, Separator: separators.Draw(t, "separator")}
		there, back := New(naming, "A", "B"), New(naming, "B", "A")
		topic := topicNames.Draw(t, "topic")
		if there.Mirrors(anything, topic) && back.Mirrors(anything, there.Target(topic)) {
			if _, ok := there.TopicSource(there.Target(topic)); ok {
				t.Fatalf("%q echoes as %q", topic, back.Target(there.Target(topic)))
			}
		}
	})
}
