package config

import "testing"

// Where a plugin's table is tells plugins apart in messages, and nothing else.
func TestWhereAPluginIs(t *testing.T) {
	text := "[clusters.a]\nbootstrap = ['embedded']\n[clusters.b]\nbootstrap = ['embedded']\n[[flows]]\nfrom = 'a'\nto = 'b'\n"
	plugin := "[[flows.plugins]]\nname = 'audit'\npath = 'audit.wasm'\n"
	was, err := Parse("mirror.toml", []byte(text+plugin), environment)
	if err != nil {
		t.Fatal(err)
	}
	is, err := Parse("mirror.toml", []byte(text+"\n\n"+plugin), environment)
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []struct{ was, is string }{{"", ""}, {"mirror.toml:8", "mirror.toml:10"}} {
		p, q := was.Flows[0].Plugins[i], is.Flows[0].Plugins[i]
		if p.Where != want.was || q.Where != want.is || !p.Same(q) {
			t.Errorf("%s is at %q and then at %q, want %v", p.Name, p.Where, q.Where, want)
		}
		q.Emit.Groups = !q.Emit.Groups
		if p.Same(q) {
			t.Errorf("%s: another plugin is the same", p.Name)
		}
	}
	if d := Diff(was, is); len(d) != 0 {
		t.Errorf("a table that has moved is a change: %v", d)
	}
}
