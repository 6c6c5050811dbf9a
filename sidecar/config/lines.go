package config

import (
	"regexp"
	"sort"
	"strconv"
	"strings"

	"github.com/BurntSushi/toml"
)

// lines knows on which line each key, table and array element of a file begins,
// by full key: the TOML library tells neither lines nor array indexes.
type lines map[string]int

// of is the line of key, or of the innermost table it would be in.
func (l lines) of(key string) int {
	for key != "" {
		if n, ok := l[key]; ok {
			return n
		}
		cut := strings.LastIndexAny(key, ".[")
		if cut < 0 {
			break
		}
		key = key[:cut]
	}
	return 1
}

var bareKey = regexp.MustCompile(`^[A-Za-z0-9_-]+$`)

// join appends a name to a full key.
func join(path, name string) string {
	if !bareKey.MatchString(name) {
		name = strconv.Quote(name)
	}
	if path == "" {
		return name
	}
	return path + "." + name
}

// element is the full key of an array's element.
func element(path string, i int) string { return path + "[" + strconv.Itoa(i) + "]" }

// indexLines finds the lines of all keys in text, which the TOML library has
// accepted: it does not check anything again, it only never fails to end.
func indexLines(text string) lines {
	x := indexer{text: text, found: lines{}, arrays: map[string]int{}}
	for i := range len(text) {
		if text[i] == '\n' {
			x.newlines = append(x.newlines, i)
		}
	}
	for _, mark := range byteOrderMarks {
		if x.accept(mark) {
			break
		}
	}
	x.document()
	return x.found
}

// byteOrderMarks are what the TOML library passes over at the start of a file:
// some editors write one.
var byteOrderMarks = []string{"\xff\xfe", "\xfe\xff", "\xef\xbb\xbf"}

type indexer struct {
	text     string
	pos      int
	newlines []int // offsets
	found    lines
	arrays   map[string]int // arrays of tables: how many elements so far
}

func (x *indexer) document() {
	table := ""
	for x.blank(); x.pos < len(x.text); x.blank() {
		start := x.pos
		if x.accept("[[") {
			path := x.header()
			x.arrays[path]++
			table = element(path, x.arrays[path]-1)
			x.mark(table, start)
			x.accept("]]")
		} else if x.accept("[") {
			table = x.header()
			x.accept("]")
		} else {
			x.assignment(table)
		}
		if x.pos == start {
			x.pos++
		}
	}
}

// header reads the names in a table's header and gives the full key that they
// mean: within an array of tables it is about the last element.
func (x *indexer) header() string {
	start, path := x.pos, ""
	names := x.key()
	for i, name := range names {
		path = join(path, name)
		x.mark(path, start)
		if n := x.arrays[path]; n > 0 && i < len(names)-1 {
			path = element(path, n-1)
		}
	}
	return path
}

// assignment reads `key = value`.
func (x *indexer) assignment(table string) {
	start, path := x.pos, table
	for _, name := range x.key() {
		path = join(path, name)
		x.mark(path, start)
	}
	x.space()
	x.accept("=")
	x.space()
	x.value(path)
}

// value reads a value, and marks what is inside of it.
func (x *indexer) value(path string) {
	switch {
	case x.accept("["):
		for i := 0; x.more(']'); i++ {
			start := x.pos
			x.mark(element(path, i), start)
			x.value(element(path, i))
			x.separator(start)
		}
	case x.accept("{"):
		for x.more('}') {
			start := x.pos
			x.assignment(path)
			x.separator(start)
		}
	case x.pos < len(x.text) && (x.text[x.pos] == '"' || x.text[x.pos] == '\''):
		x.quoted()
	default:
		x.until(",]}#\r\n")
	}
}

// more goes to the next element of an array or inline table, or past its end.
func (x *indexer) more(end byte) bool {
	x.blank()
	if x.pos >= len(x.text) {
		return false
	}
	if x.text[x.pos] == end {
		x.pos++
		return false
	}
	return true
}

// separator reads the comma after the element that began at start.
func (x *indexer) separator(start int) {
	x.blank()
	if !x.accept(",") && x.pos == start {
		x.pos++
	}
}

// key reads a key, dotted or not.
func (x *indexer) key() []string {
	var names []string
	for {
		x.space()
		start := x.pos
		if start < len(x.text) && (x.text[start] == '"' || x.text[start] == '\'') {
			x.quoted()
			names = append(names, unquote(x.text[start:x.pos]))
		} else {
			x.until(" \t.=]\r\n")
			names = append(names, x.text[start:x.pos])
		}
		x.space()
		if !x.accept(".") {
			return names
		}
	}
}

// unquote is the name that a quoted key stands for.
func unquote(quoted string) string {
	var v struct{ K string }
	if _, err := toml.Decode("K = "+quoted, &v); err != nil {
		return quoted
	}
	return v.K
}

// quoted reads a string of any of the four kinds.
func (x *indexer) quoted() {
	quote := x.text[x.pos : x.pos+1]
	end := quote
	if strings.HasPrefix(x.text[x.pos:], strings.Repeat(quote, 3)) {
		end = strings.Repeat(quote, 3)
	}
	for x.pos += len(end); x.pos < len(x.text); x.pos++ {
		if quote == `"` && x.text[x.pos] == '\\' {
			x.pos++
			continue
		}
		if x.accept(end) {
			// Up to two quotes may stand before the closing three.
			for len(end) == 3 && x.accept(quote) {
			}
			return
		}
	}
	x.pos = min(x.pos, len(x.text))
}

// blank skips white space, line ends and comments.
func (x *indexer) blank() {
	for x.pos < len(x.text) {
		switch x.text[x.pos] {
		case ' ', '\t', '\r', '\n':
			x.pos++
		case '#':
			x.until("\n")
		default:
			return
		}
	}
}

func (x *indexer) space() {
	for x.pos < len(x.text) && (x.text[x.pos] == ' ' || x.text[x.pos] == '\t') {
		x.pos++
	}
}

func (x *indexer) until(any string) {
	n := strings.IndexAny(x.text[x.pos:], any)
	if n < 0 {
		n = len(x.text) - x.pos
	}
	x.pos += n
}

func (x *indexer) accept(s string) bool {
	if !strings.HasPrefix(x.text[x.pos:], s) {
		return false
	}
	x.pos += len(s)
	return true
}

// mark notes where path begins, the first time.
func (x *indexer) mark(path string, pos int) {
	if _, ok := x.found[path]; !ok {
		x.found[path] = sort.SearchInts(x.newlines, pos) + 1
	}
}
