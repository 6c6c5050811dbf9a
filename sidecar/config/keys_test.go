package config

import (
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// Every key that is read is classified, and no other.
func TestEveryKeyIsClassified(t *testing.T) {
	_, full := uncommented(t)
	_, r := read("mirror.toml", []byte(full), environment)
	read, classified := readKeys(r), []string{}
	names := func(path string, keys []string) {
		for _, k := range keys {
			classified = append(classified, path+k)
		}
	}
	names("", keyNames(fileKeys))
	names("clusters.primary.", keyNames(clusterKeys))
	names("flows[0].", keyNames(flowKeys))
	for _, k := range read {
		list, _, _ := strings.Cut(k, "plugins[") // a plugin's table is one value
		if list != k {
			k = list + "plugins"
		}
		if !slices.Contains(classified, k) {
			t.Errorf("%s is read: say in keys.go whether it applies live", k)
		}
	}
	for _, k := range classified {
		if !slices.Contains(read, k) {
			t.Errorf("%s is in keys.go and is never read", k)
		}
	}
}

// The reference says which keys apply live.
func TestReferenceMarksWhatAppliesLive(t *testing.T) {
	_, full := uncommented(t)
	index, text := indexLines(full), strings.Split(full, "\n")
	mark := regexp.MustCompile(`# live\b`)
	marks := 0
	check := func(key string, live bool) {
		line := text[index[key]-1]
		if mark.MatchString(line) != live {
			t.Errorf("%s applies live: %v, but its line is %s", key, live, line)
		}
		if live {
			marks++
		}
	}
	for _, k := range fileKeys {
		check(k.name, k.live)
	}
	for _, k := range clusterKeys {
		check("clusters.primary."+k.name, k.live)
	}
	for _, k := range flowKeys {
		check("flows[0]."+k.name, k.live)
	}
	if n := len(mark.FindAllString(full, -1)); n != marks || n != len(LiveKeys()) {
		t.Errorf("%d lines are marked, %d keys apply live", n, marks)
	}
}

func keyNames[T any](keys []key[T]) (names []string) {
	for _, k := range keys {
		names = append(names, k.name)
	}
	return names
}

// readKeys are the full keys that r read a value of, of the first cluster only.
func readKeys(r *reader) (keys []string) {
	tables := map[string]bool{"flows": true}
	for _, t := range r.tables {
		tables[t.path] = tables[t.path] || len(t.known) > 0 // else its names are free: it is a value
	}
	for _, t := range r.tables {
		if strings.HasPrefix(t.path, "clusters.backup") {
			continue
		}
		for _, name := range t.known {
			if full := t.key(name); !tables[full] {
				keys = append(keys, full)
			}
		}
	}
	return keys
}

// Every field has a key: one that had none would change without a word.
func TestEveryFieldHasAKey(t *testing.T) {
	reach(t, fileKeys, "File", "Digest", "Clusters", "Flows")
	reach(t, clusterKeys, "Alias")
	reach(t, flowKeys)
}

// reach compares the places that the keys point to with the fields of a T.
func reach[T any](t *testing.T, keys []key[T], but ...string) {
	t.Helper()
	var v T
	places := map[uintptr]string{}
	var walk func(v reflect.Value, path string)
	walk = func(v reflect.Value, path string) {
		for i := range v.NumField() {
			f := v.Type().Field(i)
			name := strings.TrimPrefix(path+"."+f.Name, ".")
			switch {
			case !f.IsExported() || slices.Contains(but, name):
			case f.Type.Kind() == reflect.Struct && f.Type != reflect.TypeFor[Start]() && f.Type != reflect.TypeFor[Switch]():
				walk(v.Field(i), name)
			default:
				places[v.Field(i).Addr().Pointer()] = name
			}
		}
	}
	walk(reflect.ValueOf(&v).Elem(), "")
	for _, k := range keys {
		at := reflect.ValueOf(k.at(&v)).Pointer()
		if places[at] == "" {
			t.Errorf("%T: %s points to no field, or to one that another key has", v, k.name)
		}
		delete(places, at)
		plainly.text(k.at(&v)) // does not panic
	}
	for _, name := range places {
		t.Errorf("%T.%s has no key", v, name)
	}
}
