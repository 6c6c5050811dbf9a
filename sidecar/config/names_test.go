package config_test

import (
	"regexp"
	"testing"

	"pgregory.net/rapid"

	"mirror/sidecar/config"
	"mirror/sidecar/policy"
)

// The checks across flows and the replication policy agree on what is written.
func TestNamesAreThePolicys(t *testing.T) {
	pattern := func(source string) []*regexp.Regexp {
		re, err := config.Pattern(source)
		if err != nil {
			t.Fatal(err)
		}
		return []*regexp.Regexp{re}
	}
	rapid.Check(t, func(t *rapid.T) {
		separator := rapid.SampledFrom([]string{".", "_", "--"}).Draw(t, "separator")
		f := config.Flow{
			From: "A", To: "B", Topics: pattern(`.*`), ExcludeTopics: pattern(`x.*`),
			Naming: config.Naming{Policy: rapid.SampledFrom([]string{"default", "identity"}).Draw(t, "policy"), Separator: separator},
		}
		p := policy.New(f.Naming, f.From, f.To)
		parts := rapid.SliceOfN(rapid.SampledFrom([]string{"a", "x", "mm2", "internal", "checkpoints", "__", ".", "_", "--", "heartbeats"}), 1, 5)
		topic := ""
		for _, part := range parts.Draw(t, "parts") {
			topic += part
		}
		if p.IsHeartbeats(topic) || p.IsCycle(topic) || f.Naming.Policy == "identity" && p.Target(topic) != topic {
			return // not by patterns
		}
		mirrors := p.Mirrors(policy.NewFilter(f.Topics, f.ExcludeTopics), topic)
		if writes := f.Writes(p.Target(topic)); writes != mirrors {
			t.Fatalf("%q is mirrored: %v, written as %q: %v", topic, mirrors, p.Target(topic), writes)
		}
	})
}
