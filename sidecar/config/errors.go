package config

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Error is everything that is wrong with a file, in the order of its lines.
type Error struct {
	Problems []Problem
}

// Error is one line for each problem.
func (e *Error) Error() string {
	lines := make([]string, len(e.Problems))
	for i, p := range e.Problems {
		lines[i] = p.Error()
	}
	return strings.Join(lines, "\n")
}

// Problem is one thing that is wrong with a file.
type Problem struct {
	File string
	Line int    // from 1
	Key  string // in full, like flows[1].topics[0]; "" when it is the file as a whole
	Text string // what is wrong and what was expected
}

// Error is file:line: key: text.
func (p Problem) Error() string {
	if p.Key == "" {
		return fmt.Sprintf("%s:%d: %s", p.File, p.Line, p.Text)
	}
	return fmt.Sprintf("%s:%d: %s: %s", p.File, p.Line, p.Key, p.Text)
}

func sortProblems(ps []Problem) {
	slices.SortStableFunc(ps, func(a, b Problem) int { return cmp.Compare(a.Line, b.Line) })
}

// nearest is the known name most like name, if one is like it at all.
func nearest(name string, known []string) (string, bool) {
	best, bestDistance := "", len(name)/3+2
	for _, k := range known {
		if strings.EqualFold(k, name) {
			return k, true
		}
		if d := distance(strings.ToLower(name), strings.ToLower(k)); d < bestDistance && d < len(k) {
			best, bestDistance = k, d
		}
	}
	return best, best != ""
}

// distance counts the letters to insert, delete, replace or swap with their
// neighbour to get from a to b.
func distance(a, b string) int {
	var before, last []int
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		before, last = last, row
		row = make([]int, len(b)+1)
		row[0] = i + 1
		for j := range len(b) {
			change := 1
			if a[i] == b[j] {
				change = 0
			}
			row[j+1] = min(last[j]+change, last[j+1]+1, row[j]+1)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				row[j+1] = min(row[j+1], before[j-1]+1)
			}
		}
	}
	return row[len(b)]
}

// Suggest is what to say after "there is no such name": the known one most like
// it, or else all of them.
func Suggest(name string, known []string) string {
	if near, ok := nearest(name, known); ok {
		if strings.EqualFold(near, name) {
			return fmt.Sprintf("case counts: %q", near)
		}
		return fmt.Sprintf("did you mean %q?", near)
	}
	known = slices.DeleteFunc(slices.Sorted(slices.Values(known)), func(k string) bool { return k == "" })
	if len(known) == 0 {
		return "there is none"
	}
	return "there is " + strings.Join(known, ", ")
}
