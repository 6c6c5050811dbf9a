package config

import (
	"fmt"
	"log/slog"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Values whose Go type does not tell how the file has them.
type (
	byteSize int64  // a size
	address  string // a URL, which may have a password in it
)

// sources has strings as the file has them, by what they are once expanded.
type sources map[string]string

// plainly shows values as they are, secrets too: to compare them.
var plainly sources

// text is the value that at points to, as the file would have it. But for plainly
// it hides secrets and what the environment holds.
func (s sources) text(at any) string {
	switch v := at.(type) {
	case *string:
		return s.quote(*v)
	case *address:
		return s.quote(s.withoutPassword(string(*v)))
	case *Secret:
		if s == nil || *v == "" {
			return s.quote(v.Reveal())
		}
		return quote(redacted)
	case *bool:
		return strconv.FormatBool(*v)
	case *Switch:
		return strconv.FormatBool(v.On)
	case *int:
		return strconv.Itoa(*v)
	case *int16:
		return strconv.Itoa(int(*v))
	case *byteSize:
		return quote(v.String())
	case *time.Duration:
		return quote(duration(*v))
	case *slog.Level:
		return quote(strings.ToLower(v.String()))
	case *Start:
		return quote(v.String())
	case *Isolation:
		return quote(v.String())
	case *[]string:
		return s.list(*v)
	case *[]*regexp.Regexp:
		texts := make([]string, len(*v))
		for i, re := range *v {
			texts[i] = PatternText(re)
		}
		return s.list(texts)
	case *map[string]string:
		return s.table(*v)
	case *[]Plugin:
		return s.plugins(*v)
	}
	panic(fmt.Sprintf("config: no text for a %T", at)) // a test goes through all keys
}

func (s sources) quote(v string) string {
	if source, ok := s[v]; ok {
		return quote(source)
	}
	return quote(v)
}

// withoutPassword is a URL without its password.
func (s sources) withoutPassword(v string) string {
	if _, ok := s[v]; s == nil || ok {
		return v
	}
	if u, err := url.Parse(v); err == nil {
		return u.Redacted()
	}
	return redacted
}

func (s sources) list(vs []string) string {
	texts := make([]string, len(vs))
	for i, v := range vs {
		texts[i] = s.quote(v)
	}
	return "[" + strings.Join(texts, ", ") + "]"
}

func (s sources) table(vs map[string]string) string {
	if len(vs) == 0 {
		return "{}"
	}
	var pairs []string
	for _, name := range slices.Sorted(maps.Keys(vs)) {
		pairs = append(pairs, join("", name)+" = "+s.quote(vs[name]))
	}
	return "{ " + strings.Join(pairs, ", ") + " }"
}

// quote is a TOML string: a literal one where there is something to escape, so
// that patterns can be read.
func quote(v string) string {
	if strings.ContainsAny(v, `\"`) && !strings.ContainsFunc(v, func(r rune) bool { return r == '\'' || r < ' ' || r == 0x7f }) {
		return "'" + v + "'"
	}
	return strconv.Quote(v)
}

// duration is d without the zero units that Go writes after it.
func duration(d time.Duration) string {
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}

// String is the size in the largest unit that it is a multiple of.
func (n byteSize) String() string {
	for _, u := range []struct {
		name  string
		bytes byteSize
	}{{"TiB", 1 << 40}, {"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}} {
		if n >= u.bytes && n%u.bytes == 0 {
			return strconv.FormatInt(int64(n/u.bytes), 10) + u.name
		}
	}
	return strconv.FormatInt(int64(n), 10)
}

// String is the start as the file has it.
func (s Start) String() string {
	switch s.Kind {
	case Latest:
		return "latest"
	case AtTime:
		return s.At.Format(time.RFC3339Nano)
	}
	return "earliest"
}

// String is the level as the file has it.
func (i Isolation) String() string {
	if i == ReadUncommitted {
		return "read-uncommitted"
	}
	return "read-committed"
}
