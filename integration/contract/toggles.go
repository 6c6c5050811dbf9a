package contract

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"mirror/sidecar/config"
	"mirror/sidecar/offsets"
	"mirror/sidecar/status"
)

var toggleScenarios = []Scenario{{Name: "toggled", Run: offsetSyncIsToggledAndReplaced}}

// offsetSyncOff is the plugin's table that switches it off.
const offsetSyncOff = "[[flows.plugins]]\nname = \"offset-sync\"\nenabled = false\n"

// sparseOffsetSync is the plugin's table that replaces it by the example in C, which
// keeps the sync of every 1,000th record.
func (e *Env) sparseOffsetSync() string {
	return fmt.Sprintf("[[flows.plugins]]\nname = \"offset-sync\"\npath = %q\nconfig = { every = 1000 }\n", e.sparsePlugin())
}

// sparsePlugin is the file of the example in C.
func (e *Env) sparsePlugin() string {
	e.Helper()
	return e.above("examples", "plugins", "c", "sparse.wasm")
}

// above is a file of the tree.
func (e *Env) above(path ...string) string {
	e.Helper()
	dir, err := os.Getwd()
	if err != nil {
		e.Fatal(err)
	}
	for {
		file := filepath.Join(append([]string{dir}, path...)...)
		if _, err := os.Stat(file); err == nil {
			return file
		}
		if dir == filepath.Dir(dir) {
			e.Fatalf("%s is nowhere above the test", filepath.Join(path...))
		}
		dir = filepath.Dir(dir)
	}
}

// The plugin is on, off, replaced, and on again while records come: each part of
// the source has the syncs of the plugin that ran then, and no others.
func offsetSyncIsToggledAndReplaced(e *Env) {
	topic := e.Topic("t")
	e.Create(e.Source, topic, 2)
	load := e.Load(e.Source, topic, 2)
	m := e.Start(Flow{From: "toggled"})
	work := func() {
		m.ProgressEverywhere([]string{topic}, 3000)
		m.Saved()
	}
	work()
	off := m.change(topic, offsetSyncOff)
	work()
	sparse := m.change(topic, e.sparseOffsetSync())
	work()
	on := m.change(topic, "")
	work()
	load.Stop()
	m.CaughtUp(topic)
	m.WantSame(topic)
	const syncs = "mm2-offset-syncs.toggled.internal"
	m.WantSyncs(e.Target, syncs, topic) // each is of one record, the last of the last
	for p, pairs := range e.OffsetSyncs(e.Target, syncs, topic, 2) {
		all := upstreams(pairs)
		within := func(after, last int64) []int64 { // without those that came twice
			us := slices.DeleteFunc(slices.Clone(all), func(u int64) bool { return u <= after || u > last })
			slices.Sort(us)
			return slices.Compact(us)
		}
		if all[0] != 0 {
			e.Errorf("partition %d: the first sync is of record %d", p, all[0])
		}
		if len(within(off.before[p]-1, off.after[p])) == 0 {
			e.Errorf("partition %d: no sync of the last record before the plugin was switched off, of %d to %d", p, off.before[p], off.after[p])
		}
		if us := within(off.after[p], sparse.before[p]); len(us) > 0 {
			e.Errorf("partition %d: syncs of records %v, which were copied while the plugin was off", p, us)
		}
		var want []int64
		for u := (sparse.after[p]/1000 + 1) * 1000; u <= on.before[p]; u += 1000 {
			want = append(want, u)
		}
		if got := within(sparse.after[p], on.before[p]); !slices.Equal(got, want) || len(want) < 2 {
			e.Errorf("partition %d: syncs of records %v from %d to %d, want %v", p, got, sparse.after[p], on.before[p], want)
		}
		if us := within(sparse.before[p], sparse.after[p]); slices.ContainsFunc(us, func(u int64) bool { return u%1000 != 0 }) {
			e.Errorf("partition %d: syncs of records %v while the policy in C began", p, us)
		}
		if len(within(on.before[p], on.after[p]+1)) == 0 {
			e.Errorf("partition %d: no sync of the first record after the built-in plugin came back, of %d to %d", p, on.before[p]+1, on.after[p]+1)
		}
	}
}

// around are the positions of a topic right before a reload, and right after: the
// plugins change somewhere between.
type around struct{ before, after []int64 }

// change reloads the flow with other tables.
func (m *Mirror) change(topic, tables string) (a around) {
	m.e.Helper()
	at := func() (all []int64) {
		for p := range m.ends(topic) {
			s, _ := m.Partition(topic, int32(p))
			all = append(all, s.Position)
		}
		return all
	}
	m.Tables = tables
	a.before = at()
	if r := m.reload(configText(m.Flows, "")); r.Result != status.ReloadApplied || len(r.Problems) > 0 {
		m.e.Fatalf("the reload: %+v", r)
	}
	a.after = at()
	return a
}

// reload has the mirror change its config.
func (m *Mirror) reload(text string) status.Reload {
	return m.app.Reload(m.e.ctx, status.TriggerRequest, func() (*config.Config, error) {
		return config.Parse("mirror.toml", []byte(text), os.LookupEnv)
	})
}

// OffsetSyncs reads the offset syncs of a topic, by partition.
func (e *Env) OffsetSyncs(c *Cluster, syncs, topic string, partitions int) [][]offsets.Sync {
	e.Helper()
	all := make([][]offsets.Sync, partitions)
	for _, r := range e.Read(c, syncs)[0] {
		s, err := offsets.ParseSync(r.Key, r.Value)
		if err != nil {
			e.Fatal(err)
		}
		if s.Topic == topic {
			all[s.Partition] = append(all[s.Partition], s)
		}
	}
	return all
}

func upstreams(pairs []offsets.Sync) (all []int64) {
	for _, s := range pairs {
		all = append(all, s.Upstream)
	}
	return all
}
