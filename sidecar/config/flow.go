package config

import (
	"regexp"
	"slices"
	"time"
)

// MirrorMaker's defaults for topics and groups.
var (
	defaultTopics        = []string{`.*`}
	defaultExclude       = []string{`mm2.*\.internal`, `.*\.replica`, `__.*`}
	defaultGroups        = []string{`.*`}
	defaultExcludeGroups = []string{`console-consumer-.*`, `connect-.*`, `__.*`}
)

// A shorter period would keep a loop busy.
const leastPeriod = time.Millisecond

func readFlow(t *table, aliases []string) Flow {
	f := Flow{
		From:            readAlias(t, "from", aliases),
		To:              readAlias(t, "to", aliases),
		Topics:          readPatterns(t, "topics", defaultTopics),
		ExcludeTopics:   readPatterns(t, "exclude_topics", defaultExclude),
		Groups:          readPatterns(t, "groups", defaultGroups),
		ExcludeGroups:   readPatterns(t, "exclude_groups", defaultExcludeGroups),
		Naming:          readNaming(t.table("naming")),
		Start:           readStart(t),
		Isolation:       readIsolation(t),
		Refresh:         t.duration("refresh", 30*time.Second, leastPeriod),
		CommitInterval:  t.duration("commit_interval", time.Second, leastPeriod),
		Grace:           t.duration("grace", 30*time.Second, leastPeriod),
		Lanes:           int(t.integer("lanes", 0, 0, 1024)),
		Memory:          t.size("memory", 16<<20, 1<<20),
		OnDataLoss:      t.choice("on_data_loss", Continue, Continue, Halt),
		OnRecreated:     t.choice("on_recreated", Halt, Halt, Restart),
		OnLostPositions: t.choice("on_lost_positions", Halt, Halt, Restart),
		Resume:          t.boolean("resume", true),
		Create:          readCreate(t.table("create")),
	}
	f.Positions = readPositions(t.table("positions"), f.From)
	f.Plugins = readPlugins(t)
	f.OffsetSyncs = readOffsetSyncs(t.table("offset_syncs"), f.Plugins)
	f.Checkpoints = readCheckpoints(t.table("checkpoints"), f.Plugins)
	for name, what := range map[string]string{"topics": "topic", "groups": "group"} {
		if list, ok := t.values[name].([]any); ok && len(list) == 0 {
			t.problem(name, "selects nothing: name a %s, or leave it out for all", what)
		}
	}
	if f.From != "" && f.From == f.To {
		t.problem("to", "must be another cluster than from")
	}
	return f
}

// readAlias reads the name of a cluster; "" when there is no such cluster.
func readAlias(t *table, name string, aliases []string) string {
	t.require(name)
	alias, ok := t.given(name, "a string")
	if ok && !slices.Contains(aliases, alias) {
		t.problem(name, "no cluster has the alias %s, %s", t.source(name), Suggest(alias, aliases))
		return ""
	}
	return alias
}

func readPatterns(t *table, name string, otherwise []string) []*regexp.Regexp {
	sources := t.texts(name, otherwise...)
	given, _ := t.values[name].([]any)
	patterns := make([]*regexp.Regexp, 0, len(sources))
	for i, source := range sources {
		if i < len(given) && source == "" && given[i] != "" {
			continue // it is wrong, and that has been said
		}
		re, err := Pattern(source)
		if err != nil {
			t.r.problem(element(t.key(name), i), "bad pattern: %v", err)
			continue
		}
		patterns = append(patterns, re)
	}
	return patterns
}

func readNaming(t *table) Naming {
	n := Naming{
		Policy:    t.choice("policy", DefaultPolicy, DefaultPolicy, IdentityPolicy),
		Separator: t.text("separator", "."),
	}
	if !topicName.MatchString(n.Separator) {
		t.problem("separator", "becomes part of topic names: letters, digits, . _ - only, and not empty")
		n.Separator = "."
	}
	return n
}

func readStart(t *table) Start {
	const what = `earliest, latest or a time since 1970 like "2026-01-31T00:00:00Z"`
	s, ok := t.given("start", what)
	if !ok || s == "earliest" {
		return Start{Kind: Earliest}
	}
	if s == "latest" {
		return Start{Kind: Latest}
	}
	at, err := time.Parse(time.RFC3339, s)
	if err != nil || at.UnixMilli() < 0 {
		t.problem("start", "must be %s, not %s", what, t.source("start"))
	}
	return Start{Kind: AtTime, At: at}
}

func readIsolation(t *table) Isolation {
	if t.choice("isolation", "read-committed", "read-committed", "read-uncommitted") == "read-uncommitted" {
		return ReadUncommitted
	}
	return ReadCommitted
}

func readCreate(t *table) Create {
	return Create{
		ReplicationFactor: int16(t.integer("replication_factor", 0, 0, 1<<15-1)),
		Configs:           t.dictionary("configs"),
	}
}

func readPositions(t *table, from string) Positions {
	p := Positions{Topic: t.text("topic", ""), Connector: t.text("connector", "MirrorSourceConnector")}
	if p.Topic == "" {
		// Connect's dedicated mode writes dots here whatever the separator is.
		p.Topic = "mm2-offsets." + from + ".internal"
	} else if !validTopic(p.Topic) {
		t.problem("topic", "is no topic name: 249 letters, digits, . _ - at most")
	}
	if p.Connector == "" {
		t.problem("connector", "must not be empty")
	}
	return p
}
