package config

import (
	"fmt"
	"slices"
	"strings"
)

// mostPaths bounds the search for rings; the short ones come first.
const mostPaths = 10_000

// checkRings refuses flows in a circle in which records would go round without
// end. Under the default policy a topic's name shows where it came from, and the
// circle breaks. Otherwise only topic lists that have nothing in common break it,
// and only lists of literal names are taken for that.
func checkRings(flows []checkedFlow) {
	reported := map[*table]bool{}
	paths := make([][]checkedFlow, 0, len(flows))
	for _, f := range flows {
		paths = append(paths, []checkedFlow{f})
	}
	for n := 0; n < len(paths) && n < mostPaths; n++ {
		path := paths[n]
		last := path[len(path)-1]
		if last.To == path[0].From {
			if !reported[last.table] && reportRing(path) {
				reported[last.table] = true
			}
			continue
		}
		for _, next := range flows {
			visited := func(f checkedFlow) bool { return f.From == next.To }
			// A ring is found once, from one of its flows.
			if next.From == last.To && next.path >= path[0].path && !slices.ContainsFunc(path[1:], visited) {
				paths = append(paths, append(slices.Clone(path), next))
			}
		}
	}
}

// reportRing reports a ring at its last flow, if records could go round in it.
func reportRing(ring []checkedFlow) bool {
	why := namesLost(ring)
	if why == "" {
		return false
	}
	common := commonNames(ring)
	if common == "" {
		return false
	}
	names := make([]string, len(ring))
	for i, f := range ring {
		names[i] = f.Name()
	}
	ring[len(ring)-1].problem("naming", "%s are a ring in which records could go round without end, because %s: "+
		"use the default policy, or topic lists that are literal and disjoint: %s", strings.Join(names, ", "), why, common)
	return true
}

// commonNames says what stands against the flows' topic lists being literal and
// pairwise disjoint; "" if they are.
func commonNames(ring []checkedFlow) string {
	literals := map[string]string{} // the flow that has a name
	for _, f := range ring {
		for _, re := range f.Topics {
			name, ok := Literal(re)
			if !ok {
				return fmt.Sprintf("`%s` in %s.topics is a pattern", PatternText(re), f.path)
			}
			if excluded(f.Flow, name) {
				continue
			}
			if other, ok := literals[name]; ok {
				return fmt.Sprintf("%q is in %s.topics and in %s.topics", name, other, f.path)
			}
			literals[name] = f.path
		}
	}
	return ""
}

// namesLost says why names in a ring do not show where a topic came from; "" if
// they do.
func namesLost(ring []checkedFlow) string {
	separator := ring[0].Naming.Separator
	for _, f := range ring {
		switch alias, _, _ := strings.Cut(f.prefix(), separator); {
		case f.Naming.Policy == IdentityPolicy:
			return fmt.Sprintf("identity naming (%s) does not show where they came from", f.path)
		case f.Naming.Separator != separator:
			return "their separators differ"
		case alias != f.From:
			return fmt.Sprintf("the alias %s has the separator in it", f.From)
		}
	}
	return ""
}

func excluded(f Flow, topic string) bool {
	for _, re := range f.ExcludeTopics {
		if re.MatchString(topic) {
			return true
		}
	}
	return false
}
