package config

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// reader reads a decoded file key by key. What is asked for is what is known:
// whatever else is in the file is an unknown key.
type reader struct {
	file     string
	lines    lines
	getenv   func(string) (string, bool)
	sources  sources // of strings that the environment has completed
	problems []Problem
	tables   []*table // in the order they were asked for
}

func (r *reader) problem(key, format string, args ...any) {
	r.problems = append(r.problems, Problem{r.file, r.lines.of(key), key, fmt.Sprintf(format, args...)})
}

// table is one table of the file, or a missing one, which gives defaults.
type table struct {
	r       *reader
	path    string // full key, "" for the file itself
	shape   string // the path without indexes and aliases
	values  map[string]any
	known   []string
	missing []string // required keys that are not there
}

func (r *reader) table(path, shape string, values map[string]any) *table {
	t := &table{r: r, path: path, shape: shape, values: values}
	r.tables = append(r.tables, t)
	return t
}

func (t *table) key(name string) string { return join(t.path, name) }

func (t *table) problem(name, format string, args ...any) {
	t.r.problem(t.key(name), format, args...)
}

// take gives the value of a key.
func (t *table) take(name string) (any, bool) {
	t.known = append(t.known, name)
	v, ok := t.values[name]
	return v, ok
}

// require reports key name when it is not there.
func (t *table) require(name string) {
	if _, ok := t.values[name]; !ok {
		t.missing = append(t.missing, name)
	}
}

// text reads a string and expands it.
func (t *table) text(name, otherwise string) string {
	if s, ok := t.given(name, "a string"); ok {
		return s
	}
	return otherwise
}

// given is the string at a key, if it is there and in order. what names such a
// string in messages.
func (t *table) given(name, what string) (string, bool) {
	v, ok := t.take(name)
	if !ok {
		return "", false
	}
	return t.r.text(t.key(name), v, what)
}

// text is the expanded string v, the value of key.
func (r *reader) text(key string, v any, what string) (string, bool) {
	s, ok := v.(string)
	if !ok {
		r.problem(key, "must be %s, not %s", what, kind(v))
		return "", false
	}
	expanded, err := expand(s, r.getenv)
	if err != nil {
		r.problem(key, "%v", err)
		return "", false
	}
	if expanded != s && expanded != "" {
		r.sources[expanded] = s
	}
	return expanded, true
}

// file reads a path, relative to the config file's folder.
func (t *table) file(name string) string {
	path := t.text(name, "")
	if path == "" || filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(filepath.Dir(t.r.file), path)
}

// choice reads one of a few strings.
func (t *table) choice(name, otherwise string, options ...string) string {
	s, ok := t.given(name, "a string")
	if !ok {
		return otherwise
	}
	if !slices.Contains(options, s) {
		t.problem(name, "%s is not possible, %s", t.source(name), Suggest(s, options))
		return otherwise
	}
	return s
}

// source quotes a string as the file has it, not expanded: messages must not
// show what the environment holds.
func (t *table) source(name string) string { return fmt.Sprintf("%q", t.values[name]) }

// texts reads a list of strings; where one is wrong, "" stands in its place so
// that indexes stay true.
func (t *table) texts(name string, otherwise ...string) []string {
	v, ok := t.take(name)
	if !ok {
		return otherwise
	}
	list, ok := v.([]any)
	if !ok {
		t.problem(name, "must be a list of strings, not %s", kind(v))
		return otherwise
	}
	out := make([]string, len(list))
	for i, e := range list {
		key := element(t.key(name), i)
		s, ok := t.r.text(key, e, "a string")
		if !ok {
			continue
		}
		if s != "" && slices.Contains(out[:i], s) {
			t.r.problem(key, "is there twice")
		}
		out[i] = s
	}
	return out
}

func (t *table) boolean(name string, otherwise bool) bool {
	v, ok := t.take(name)
	if !ok {
		return otherwise
	}
	b, isBool := v.(bool)
	if !isBool {
		t.problem(name, "must be true or false, not %s", kind(v))
	}
	return b
}

func (t *table) integer(name string, otherwise, least, most int64) int64 {
	v, ok := t.take(name)
	if !ok {
		return otherwise
	}
	n, ok := v.(int64)
	if !ok {
		t.problem(name, "must be an integer, not %s", kind(v))
		return otherwise
	}
	if n < least || n > most {
		t.problem(name, "must be from %d to %d, not %d", least, most, n)
		return otherwise
	}
	return n
}

func (t *table) duration(name string, otherwise, least time.Duration) time.Duration {
	const what = `a duration like "5s" (ms, s, m, h)`
	s, ok := t.given(name, what)
	if !ok {
		return otherwise
	}
	d, err := time.ParseDuration(s)
	if err != nil {
		t.problem(name, "must be %s, not %s", what, t.source(name))
		return otherwise
	}
	if d < least {
		t.problem(name, "must be at least %v, not %s", least, t.source(name))
		return otherwise
	}
	return d
}

// durationOrNever is duration, where "" stands for 0.
func (t *table) durationOrNever(name string, otherwise, least time.Duration) time.Duration {
	if s, ok := t.values[name].(string); ok && s == "" {
		t.take(name)
		return 0
	}
	return t.duration(name, otherwise, least)
}

func (t *table) size(name string, otherwise, least int64) int64 {
	const what = `a size like "16MiB" (B, KiB, MiB, GiB, TiB, KB, MB, GB, TB)`
	s, ok := t.given(name, what)
	if !ok {
		return otherwise
	}
	n, ok := parseSize(s)
	if !ok {
		t.problem(name, "must be %s, not %s", what, t.source(name))
		return otherwise
	}
	if n < least {
		t.problem(name, "must be at least %d bytes, not %s", least, t.source(name))
		return otherwise
	}
	return n
}

// table reads a sub-table.
func (t *table) table(name string) *table {
	v, ok := t.take(name)
	values, isTable := v.(map[string]any)
	if ok && !isTable {
		t.problem(name, "must be a table, not %s", kind(v))
	}
	return t.r.table(t.key(name), join(t.shape, name), values)
}

// tables reads a list of tables.
func (t *table) tables(name string) []*table {
	v, ok := t.take(name)
	if !ok {
		return nil
	}
	var list []any
	switch v := v.(type) {
	case []map[string]any:
		for _, e := range v {
			list = append(list, e)
		}
	case []any:
		list = v
	default:
		t.problem(name, "must be a list of tables, [[%s]], not %s", name, kind(v))
	}
	var out []*table
	for i, e := range list {
		key := element(t.key(name), i)
		values, ok := e.(map[string]any)
		if !ok {
			t.r.problem(key, "must be a table, not %s", kind(e))
			continue
		}
		out = append(out, t.r.table(key, join(t.shape, name), values))
	}
	return out
}

// named reads a table of tables with free names, in the names' order.
func (t *table) named(name string) (names []string, tables []*table) {
	all := t.table(name)
	for _, n := range slices.Sorted(maps.Keys(all.values)) {
		names = append(names, n)
		tables = append(tables, all.table(n))
		tables[len(tables)-1].shape = all.shape
	}
	return names, tables
}

// dictionary reads a table of strings with free names.
func (t *table) dictionary(name string) map[string]string {
	all := t.table(name)
	out := make(map[string]string, len(all.values))
	for _, n := range slices.Sorted(maps.Keys(all.values)) {
		if _, nested := all.values[n].(map[string]any); nested {
			all.take(n)
			all.problem(n, "must be a string: a name with a dot needs quotes, like \"%s.…\" = \"…\"", n)
			continue
		}
		out[n] = all.text(n, "")
	}
	return out
}

// free reads a table that is somebody else's: anything may be in it. Its strings
// are expanded.
func (t *table) free(name string) map[string]any {
	all := t.table(name)
	all.known = slices.Collect(maps.Keys(all.values))
	values, _ := t.r.expandAll(all.path, all.values).(map[string]any)
	return values
}

// expandAll expands the strings of v and of all that is in it.
func (r *reader) expandAll(key string, v any) any {
	switch v := v.(type) {
	case string:
		s, _ := r.text(key, v, "a string")
		return s
	case map[string]any:
		out := make(map[string]any, len(v))
		for _, name := range slices.Sorted(maps.Keys(v)) {
			out[name] = r.expandAll(join(key, name), v[name])
		}
		return out
	case []map[string]any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = r.expandAll(element(key, i), v[i])
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = r.expandAll(element(key, i), v[i])
		}
		return out
	}
	return v
}

// finish reports what is in the file and was not asked for, and what is not
// there and is needed. A misspelled key explains a missing one.
func (r *reader) finish() {
	for _, t := range r.tables {
		for _, name := range slices.Sorted(maps.Keys(t.values)) {
			if slices.Contains(t.known, name) {
				continue
			}
			t.problem(name, "unknown key, %s", r.whereElse(t, name))
			if near, ok := nearest(name, t.known); ok {
				t.missing = slices.DeleteFunc(t.missing, func(m string) bool { return m == near })
			}
		}
		for _, name := range t.missing {
			t.problem(name, "is required")
		}
	}
	sortProblems(r.problems)
}

// whereElse says what was meant by an unknown key: one of an enclosing table,
// which TOML gives to the last sub-table that was opened, or a similar one.
func (r *reader) whereElse(t *table, name string) string {
	for _, other := range r.tables {
		if other.path != "" && strings.HasPrefix(t.path, other.path+".") && slices.Contains(other.known, name) {
			return fmt.Sprintf("it belongs to %s: put it before [%s]", other.path, t.shape)
		}
	}
	return Suggest(name, t.known)
}

// kind names a decoded TOML value's type.
func kind(v any) string {
	switch v.(type) {
	case string:
		return "a string"
	case int64:
		return "an integer"
	case float64:
		return "a float"
	case bool:
		return "a boolean"
	case time.Time:
		return "a date: put it in quotes"
	case []any:
		return "a list"
	case []map[string]any:
		return "a list of tables"
	default:
		return "a table"
	}
}
