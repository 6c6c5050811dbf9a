package config

import (
	"regexp"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// patternSources makes patterns of all kinds of syntax, over few letters so that
// they often meet.
func patternSources() *rapid.Generator[string] {
	var node func(depth int) *rapid.Generator[string]
	node = func(depth int) *rapid.Generator[string] {
		leaf := rapid.SampledFrom([]string{"a", "b", ".", `\.`, "[ab]", "[^a]", ".*", `\b`, "^", "$", `\w`, "(?i)B"})
		if depth == 0 {
			return leaf
		}
		sub := rapid.Deferred(func() *rapid.Generator[string] { return node(depth - 1) })
		return rapid.OneOf(leaf, rapid.Custom(func(t *rapid.T) string {
			x, y := sub.Draw(t, "x"), sub.Draw(t, "y")
			return rapid.SampledFrom([]string{x + y, x + "|" + y, "(?:" + x + ")?" + y, "(?:" + x + ")*" + y, "(" + x + "){2}"}).Draw(t, "form")
		}))
	}
	return node(3)
}

// What overlap finds is in all the languages; when it finds nothing, no short
// name is.
func TestOverlapFindsCommonNames(t *testing.T) {
	var short []string // all names of up to five letters
	for level := []string{""}; len(level[0]) < 5; {
		var next []string
		for _, name := range level {
			for _, c := range "ab.A" {
				next = append(next, name+string(c))
			}
		}
		short = append(short, next...)
		level = next
	}
	rapid.Check(t, func(t *rapid.T) {
		languages := make([]language, rapid.IntRange(1, 3).Draw(t, "languages"))
		for i := range languages {
			l := language{prefix: rapid.SampledFrom([]string{"", "", "a.", "b"}).Draw(t, "prefix")}
			for _, source := range rapid.SliceOfN(patternSources(), 1, 2).Draw(t, "include") {
				if re, err := Pattern(source); err == nil {
					l.include = append(l.include, re)
				}
			}
			for _, source := range rapid.SliceOfN(patternSources(), 0, 2).Draw(t, "exclude") {
				if re, err := Pattern(source); err == nil {
					l.exclude = append(l.exclude, re)
				}
			}
			languages[i] = l
		}
		inAll := func(name string) bool {
			return !slices.ContainsFunc(languages, func(l language) bool { return !l.contains(name) })
		}
		work := overlapWork
		name, found := overlap(languages, &work)
		if found && !inAll(name) {
			t.Fatalf("%q is not in all languages", name)
		}
		i := slices.IndexFunc(short, func(s string) bool { return inAll(s) && s != "a." && s != "b" })
		if !found && i >= 0 && work > 0 {
			t.Fatalf("did not find %q", short[i])
		}
		if found && i >= 0 && len(name) > len(short[i]) {
			t.Fatalf("found %q, and %q is shorter", name, short[i])
		}
	})
}

// A pattern whose automaton has a state for each of 2^30 memories does not keep
// a file from being read.
func TestOverlapGivesUp(t *testing.T) {
	huge, err := Pattern(`.*a.{30}`)
	if err != nil {
		t.Fatal(err)
	}
	other, err := Pattern(`.*b.{30}`)
	if err != nil {
		t.Fatal(err)
	}
	all, err := Pattern(`.*`)
	if err != nil {
		t.Fatal(err)
	}
	work := overlapWork
	name, found := overlap([]language{
		{include: []*regexp.Regexp{all}, exclude: []*regexp.Regexp{huge}},
		{include: []*regexp.Regexp{huge}, exclude: []*regexp.Regexp{other}},
	}, &work)
	if found || work > 0 {
		t.Errorf("found %q with %d to spend", name, work)
	}
}
