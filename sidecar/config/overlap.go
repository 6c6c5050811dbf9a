package config

import (
	"regexp"
	"regexp/syntax"
	"slices"
	"strconv"
	"strings"
)

const (
	longestTopic = 249
	topicLetters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-"
	// overlapWork bounds the search for overlaps in a whole file, in instructions
	// of patterns (some 100 ms): a pattern can have exponentially many states.
	// What is not found by then counts as not proven.
	overlapWork = 5_000_000
)

// overlap finds a shortest topic name that is in all languages, by walking their
// automata side by side, while there is work left to spend.
func overlap(all []language, work *int) (name string, found bool) {
	walkers := make([]walker, len(all))
	for i, l := range all {
		walkers[i] = walker{rest: l.prefix, include: programs(l.include), exclude: programs(l.exclude), last: -1}
	}
	letters := distinctLetters(all, walkers)
	type step struct {
		name    string
		walkers []walker
	}
	seen := map[string]bool{}
	queue := []step{{walkers: walkers}}
	for len(queue) > 0 && *work > 0 {
		at := queue[0]
		queue = queue[1:]
		if at.name != "" && !slices.ContainsFunc(at.walkers, func(w walker) bool { return !w.accepts() }) {
			return at.name, true
		}
		if len(at.name) == longestTopic {
			continue
		}
		for _, c := range letters {
			next := step{name: at.name + string(c)}
			var key strings.Builder
			for _, w := range at.walkers {
				*work -= w.cost()
				w, alive := w.step(c)
				if !alive {
					break
				}
				next.walkers = append(next.walkers, w)
				w.writeKey(&key)
			}
			if len(next.walkers) == len(all) && !seen[key.String()] {
				seen[key.String()] = true
				queue = append(queue, next)
			}
		}
	}
	return "", false
}

// walker is somewhere in a language's words.
type walker struct {
	rest             string // of the prefix
	include, exclude []program
	last             rune // before this place, -1 at the start of the topic
}

// program is a pattern's automaton and the states that it may be in.
type program struct {
	*syntax.Prog
	states []uint32 // sorted
}

func programs(patterns []*regexp.Regexp) []program {
	var out []program
	for _, re := range patterns {
		tree, err := syntax.Parse(re.String(), syntax.Perl)
		if err != nil {
			continue // not after regexp.Compile
		}
		if prog, err := syntax.Compile(tree.Simplify()); err == nil {
			out = append(out, program{prog, []uint32{uint32(prog.Start)}})
		}
	}
	return out
}

// cost is what a step may take.
func (w walker) cost() int {
	n := 1
	for _, p := range slices.Concat(w.include, w.exclude) {
		n += len(p.Inst)
	}
	return n
}

// step goes on by one letter; alive says whether the language has such words.
func (w walker) step(c rune) (next walker, alive bool) {
	if w.rest != "" {
		if rune(w.rest[0]) != c {
			return w, false
		}
		w.rest = w.rest[1:]
		return w, true
	}
	advance := func(ps []program) []program {
		out := make([]program, len(ps))
		for i, p := range ps {
			var to []uint32
			for _, pc := range p.reach(syntax.EmptyOpContext(w.last, c)) {
				if in := &p.Inst[pc]; isRune(in) && in.MatchRune(c) {
					to = append(to, in.Out)
				}
			}
			slices.Sort(to)
			out[i] = program{p.Prog, slices.Compact(to)}
		}
		return out
	}
	w.include, w.exclude, w.last = advance(w.include), advance(w.exclude), c
	return w, slices.ContainsFunc(w.include, func(p program) bool { return len(p.states) > 0 })
}

func (w walker) accepts() bool {
	matches := func(p program) bool {
		return slices.ContainsFunc(p.reach(syntax.EmptyOpContext(w.last, -1)), func(pc uint32) bool {
			return p.Inst[pc].Op == syntax.InstMatch
		})
	}
	return w.rest == "" && w.last != -1 && slices.ContainsFunc(w.include, matches) && !slices.ContainsFunc(w.exclude, matches)
}

// writeKey tells places apart from which different words follow.
func (w walker) writeKey(key *strings.Builder) {
	key.WriteString(w.rest)
	for _, ps := range [][]program{w.include, w.exclude} {
		for _, p := range ps {
			for _, pc := range p.states {
				key.WriteString(strconv.FormatUint(uint64(pc), 36) + ",")
			}
			key.WriteString("|")
		}
	}
	if w.last == -1 {
		key.WriteString("^")
	} else if syntax.IsWordChar(w.last) {
		key.WriteString("w")
	}
	key.WriteString(";")
}

// reach is every instruction that consumes a rune or ends, reached without
// consuming one, between two runes that meet the given conditions.
func (p program) reach(context syntax.EmptyOp) []uint32 {
	var out []uint32
	seen := make([]bool, len(p.Inst))
	todo := slices.Clone(p.states)
	for len(todo) > 0 {
		pc := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if seen[pc] {
			continue
		}
		seen[pc] = true
		switch in := &p.Inst[pc]; in.Op {
		case syntax.InstAlt, syntax.InstAltMatch:
			todo = append(todo, in.Out, in.Arg)
		case syntax.InstCapture, syntax.InstNop:
			todo = append(todo, in.Out)
		case syntax.InstEmptyWidth:
			if syntax.EmptyOp(in.Arg)&^context == 0 {
				todo = append(todo, in.Out)
			}
		case syntax.InstFail:
		default:
			out = append(out, pc)
		}
	}
	return out
}

func isRune(in *syntax.Inst) bool {
	return in.Op == syntax.InstRune || in.Op == syntax.InstRune1 || in.Op == syntax.InstRuneAny || in.Op == syntax.InstRuneAnyNotNL
}

// distinctLetters is one letter of each kind that the languages treat alike.
func distinctLetters(all []language, walkers []walker) []rune {
	var out []rune
	seen := map[string]bool{}
	for _, c := range topicLetters {
		var kind strings.Builder
		for i, w := range walkers {
			if strings.ContainsRune(all[i].prefix, c) {
				kind.WriteRune(c)
			}
			for _, p := range slices.Concat(w.include, w.exclude) {
				for j := range p.Inst {
					if in := &p.Inst[j]; isRune(in) && in.MatchRune(c) {
						kind.WriteString("1")
					} else {
						kind.WriteString("0")
					}
				}
			}
		}
		if syntax.IsWordChar(c) {
			kind.WriteString("w")
		}
		if !seen[kind.String()] {
			seen[kind.String()] = true
			out = append(out, c)
		}
	}
	return out
}
