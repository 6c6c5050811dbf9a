package config

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
)

// Change is a key that has another value in a new file. Values are as the file
// would have them; secrets are hidden, and strings that the environment
// completes are as they were written.
type Change struct {
	Key  string `json:"key"`            // in full, as in the new file; of what it lacks, as in the old one
	Flow string `json:"flow,omitempty"` // the name of the flow that it belongs to
	Line int    `json:"line,omitempty"` // in the new file; of what it lacks, 0
	Old  string `json:"old,omitempty"`  // "" for a cluster or flow that is new
	New  string `json:"new,omitempty"`  // "" for one that is gone
	Live bool   `json:"-"`              // a running mirror takes it over; else it needs a restart
}

// String is the change in one line.
func (c Change) String() string {
	key := c.Key
	if c.Flow != "" {
		key += " (" + c.Flow + ")"
	}
	switch {
	case c.Old == "":
		return key + ": added"
	case c.New == "":
		return key + ": removed"
	}
	return fmt.Sprintf("%s: %s → %s", key, c.Old, c.New)
}

// present stands for the value of a whole table.
const present = "{…}"

// Diff lists what is different in the new file, in the order of its keys: log and
// admin, clusters by alias, flows. Defaults count as if they were written.
func Diff(old, new *Config) []Change {
	d := differ{old: old, new: new}
	compare(&d, fileKeys, old, new, "", "")
	for _, alias := range slices.Sorted(maps.Keys(old.Clusters)) {
		if _, stays := new.Clusters[alias]; !stays {
			d.removed(join("clusters", alias), "")
		}
	}
	for _, alias := range slices.Sorted(maps.Keys(new.Clusters)) {
		path := join("clusters", alias)
		was, is := old.Clusters[alias], new.Clusters[alias]
		if was.Alias == "" {
			d.added(path, "")
			continue
		}
		compare(&d, clusterKeys, &was, &is, path, "")
	}
	for i, f := range old.Flows {
		if new.flow(f.Name()) == nil {
			d.removed(element("flows", i), f.Name())
		}
	}
	for i := range new.Flows {
		f, path := &new.Flows[i], element("flows", i)
		was := old.flow(f.Name())
		if was == nil {
			d.added(path, f.Name())
			continue
		}
		compare(&d, flowKeys, was, f, path, f.Name())
	}
	return d.changes
}

type differ struct {
	old, new *Config
	changes  []Change
}

func (d *differ) added(path, flow string) {
	d.changes = append(d.changes, Change{Key: path, Flow: flow, Line: d.new.lines.of(path), New: present})
}

func (d *differ) removed(path, flow string) {
	d.changes = append(d.changes, Change{Key: path, Flow: flow, Old: present})
}

// compare adds what differs between two tables at path.
func compare[T any](d *differ, keys []key[T], old, new *T, path, flow string) {
	for _, k := range keys {
		was, is := k.at(old), k.at(new)
		if plainly.text(was) == plainly.text(is) {
			continue
		}
		full := k.name
		if path != "" {
			full = path + "." + k.name
		}
		d.changes = append(d.changes, Change{
			Key: full, Flow: flow, Line: d.new.lines.of(full),
			Old: d.old.sources.text(was), New: d.new.sources.text(is), Live: k.live,
		})
	}
}

// flow is the flow of a name, nil where there is none.
func (c *Config) flow(name string) *Flow {
	if i := slices.IndexFunc(c.Flows, func(f Flow) bool { return f.Name() == name }); i >= 0 {
		return &c.Flows[i]
	}
	return nil
}

// Merge is what a running mirror becomes by a new file: running, with the live
// keys of next. As both files may be right and what they come to be wrong, that
// is checked as a whole; the error is an *Error then.
func Merge(running, next *Config) (*Config, error) {
	merged := *running
	merged.Digest, merged.lines, merged.sources = next.Digest, next.lines, sources{}
	maps.Copy(merged.sources, running.sources)
	maps.Copy(merged.sources, next.sources)
	take(fileKeys, &merged, next)
	merged.Flows = slices.Clone(running.Flows)
	r := &reader{file: next.File, lines: next.lines}
	tables := make([]*table, len(merged.Flows))
	for i := range merged.Flows {
		f := &merged.Flows[i]
		tables[i] = r.table("flows", "flows", nil)
		if n := next.flow(f.Name()); n != nil {
			take(flowKeys, f, n)
			tables[i].path = element("flows", slices.IndexFunc(next.Flows, func(o Flow) bool { return o.Name() == f.Name() }))
		}
	}
	r.checkFlows(&merged, tables)
	if len(r.problems) > 0 {
		for i := range r.problems {
			r.problems[i].Text += " (the keys that need a restart are as they run: restart to have all of the file)"
		}
		sortProblems(r.problems)
		return nil, &Error{r.problems}
	}
	return &merged, nil
}

// take copies the live keys.
func take[T any](keys []key[T], to, from *T) {
	for _, k := range keys {
		if k.live {
			reflect.ValueOf(k.at(to)).Elem().Set(reflect.ValueOf(k.at(from)).Elem())
		}
	}
}

// Problems are the lines of an error of Load, Parse or Merge.
func Problems(err error) []string {
	var bad *Error
	if !errors.As(err, &bad) {
		return []string{err.Error()}
	}
	lines := make([]string, len(bad.Problems))
	for i, p := range bad.Problems {
		lines[i] = p.Error()
	}
	return lines
}
