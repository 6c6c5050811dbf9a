package policy

import (
	"regexp"
	"slices"
)

// Filter selects topics by name, as MirrorMaker's topics and topics.exclude do.
type Filter struct {
	include, exclude []*regexp.Regexp
}

// NewFilter makes a filter of patterns that match whole names, as
// config.Pattern compiles them.
func NewFilter(include, exclude []*regexp.Regexp) Filter {
	return Filter{include: include, exclude: exclude}
}

// Selects says whether a pattern includes a topic and none excludes it.
func (f Filter) Selects(topic string) bool {
	matches := func(re *regexp.Regexp) bool { return re.MatchString(topic) }
	return slices.ContainsFunc(f.include, matches) && !slices.ContainsFunc(f.exclude, matches)
}
