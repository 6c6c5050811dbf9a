package config

import (
	"strings"
	"testing"
)

func TestPatternsMatchWholeNames(t *testing.T) {
	for _, c := range []struct {
		source   string
		yes, not []string
	}{
		{`.*`, []string{"", "a", "a.b-c_d"}, nil},
		{`orders`, []string{"orders"}, []string{"orders1", "xorders", "Orders"}},
		{`a|ab|b.*`, []string{"a", "ab", "b", "bc"}, []string{"abc", "ca"}},
		{`.*\.replica`, []string{"x.replica", ".replica"}, []string{"x-replica", "x.replica.y"}},
		{`mm2.*\.internal`, []string{"mm2-offsets.A.internal"}, []string{"A.mm2.internal"}},
		{`(?i)Orders`, []string{"ORDERS", "orders"}, []string{"order"}},
		{`\Qa.b`, []string{"a.b"}, []string{"axb", "a.b)"}},
		{`\Qa|b\E+`, []string{"a|b", "a|bb"}, []string{"a"}},
		{`^a$`, []string{"a"}, []string{"aa"}},
		{`a.*?`, []string{"a", "abc"}, []string{"ba"}},
		{`[]a]+`, []string{"]a"}, []string{"b"}},
		{`[^]a]`, []string{"b"}, []string{"]", "a"}},
		{`\[\[&&[x\[\]&]`, []string{"[[&&x", "[[&&["}, nil},
	} {
		re, err := Pattern(c.source)
		if err != nil {
			t.Errorf("%s: %v", c.source, err)
			continue
		}
		for _, name := range c.yes {
			if !re.MatchString(name) {
				t.Errorf("`%s` does not match %q", c.source, name)
			}
		}
		for _, name := range c.not {
			if re.MatchString(name) {
				t.Errorf("`%s` matches %q", c.source, name)
			}
		}
		if got := strings.TrimSuffix(PatternText(re), `\E`); got != strings.TrimSuffix(c.source, `\E`) {
			t.Errorf("`%s` reads `%s`", c.source, got)
		}
	}
}

func TestLiteral(t *testing.T) {
	for source, want := range map[string]string{
		`orders`: "orders", `orders\.v1`: "orders.v1", `a\-b_c`: "a-b_c", `\Qa.b\E`: "a.b", `\Qa.b`: "a.b",
		`orders.v1`: "", `a|b`: "", `a?`: "", `(?i)a`: "", `[ab]`: "", `^a`: "", `a{2}`: "",
	} {
		re, err := Pattern(source)
		if err != nil {
			t.Fatal(err)
		}
		if got, ok := Literal(re); got != want || ok != (want != "") {
			t.Errorf("`%s`: got %q, %v", source, got, ok)
		}
	}
}
