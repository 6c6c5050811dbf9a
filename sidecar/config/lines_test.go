package config

import (
	"maps"
	"os"
	"testing"

	"github.com/BurntSushi/toml"
)

func TestLinesOfKeys(t *testing.T) {
	const text = `a = 1 # line 1
"b.c" . d = """
text = 1
\""" ""]"""
[t]
x = [ # [
  'y', { z = 2,
         w = [3] },
]
[[u]]
[[u]] # second
v.w = 1979-05-27 07:32:00
[u."v\u0021"]
k = '''
'' [no]
'''
[[u.n]]
m = 1
`
	want := lines{
		"a": 1, `"b.c"`: 2, `"b.c".d`: 2, "t": 5, "t.x": 6, "t.x[0]": 7, "t.x[1]": 7, "t.x[1].z": 7, "t.x[1].w": 8, "t.x[1].w[0]": 8,
		"u": 10, "u[0]": 10, "u[1]": 11, "u[1].v": 12, "u[1].v.w": 12, `u[1]."v!"`: 13, `u[1]."v!".k`: 14,
		"u[1].n": 17, "u[1].n[0]": 17, "u[1].n[0].m": 18,
	}
	if _, err := toml.Decode(text, &map[string]any{}); err != nil {
		t.Fatal(err)
	}
	got := indexLines(text)
	if !maps.Equal(got, want) {
		for k := range want {
			if got[k] != want[k] {
				t.Errorf("%s is on line %d, got %d", k, want[k], got[k])
			}
		}
		for k := range got {
			if want[k] == 0 {
				t.Errorf("%s is no key", k)
			}
		}
	}
	for key, line := range map[string]int{"t.x[1].w[9]": 8, "t.none.deeper": 5, "none": 1, "": 1} {
		if n := got.of(key); n != line {
			t.Errorf("%q would be on line %d, got %d", key, line, n)
		}
	}
}

// keysOf lists the full keys of a decoded file.
func keysOf(path string, v any) []string {
	var out []string
	switch v := v.(type) {
	case map[string]any:
		for name, e := range v {
			out = append(append(out, join(path, name)), keysOf(join(path, name), e)...)
		}
	case []any:
		for i, e := range v {
			out = append(append(out, element(path, i)), keysOf(element(path, i), e)...)
		}
	case []map[string]any:
		for i, e := range v {
			out = append(append(out, element(path, i)), keysOf(element(path, i), e)...)
		}
	}
	return out
}

// The index has every key that the TOML library finds, and no other.
func FuzzLines(f *testing.F) {
	for _, folder := range []string{"good", "bad"} {
		for _, file := range corpus(f, folder) {
			data, err := os.ReadFile(file)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(string(data))
		}
	}
	f.Fuzz(func(t *testing.T, text string) {
		index := indexLines(text) // must end, whatever the text is
		values := map[string]any{}
		if _, err := toml.Decode(text, &values); err != nil {
			return
		}
		want := map[string]bool{}
		for _, key := range keysOf("", values) {
			want[key] = true
			if index[key] == 0 {
				t.Errorf("%q\nmisses %q", text, key)
			}
		}
		for key := range index {
			if !want[key] {
				t.Errorf("%q\nhas no %q", text, key)
			}
		}
	})
}
