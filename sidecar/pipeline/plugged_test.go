package pipeline

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"mirror/plugins"
	"mirror/sidecar/config"
	"mirror/sidecar/offsets"
	"mirror/sidecar/positions"
)

const syncsTopic = "mm2-offset-syncs.A.internal"

// offsetSync switches the built-in plugin on.
func offsetSync(f *config.Flow) {
	f.OffsetSyncs.Location = config.OnTarget
	f.Plugins = []config.Plugin{{
		Name: config.OffsetSyncPlugin, Emit: config.Emit{OffsetSyncs: true, Groups: true}, Failure: config.FailureHalt,
		Config: map[string]any{"lag_max": int64(100), "mm2_syncs": true},
	}}
}

func without(f *config.Flow) { f.Plugins = nil }

// syncs are the pairs in the topic, of one partition, in order.
func (l *lab) syncs(topic string, number int32) (pairs [][2]int64) {
	l.Helper()
	t := offsets.NewSyncs(offsets.TopicOptions{Cluster: l.target.cluster, Name: syncsTopic})
	all, err := t.Read(l.Context())
	if err != nil {
		l.Fatal(err)
	}
	for _, s := range all {
		if s.Topic == topic && s.Partition == number {
			pairs = append(pairs, [2]int64{s.Upstream, s.Downstream})
		}
	}
	return pairs
}

// synced waits until the last pair of the partition is this one.
func (l *lab) synced(topic string, upstream, downstream int64) {
	l.Helper()
	eventually(l.T, "an offset sync", func() string {
		pairs := l.syncs(topic, 0)
		if n := len(pairs); n == 0 || pairs[n-1] != [2]int64{upstream, downstream} {
			return fmt.Sprintf("the pairs are %v, want %d, %d at the end", pairs, upstream, downstream)
		}
		return ""
	})
}

func (l *lab) positionOf(topic string) int64 {
	return l.positions()[positions.Key{Topic: topic}].Offset
}

// TestOffsetSyncsAreWritten: the last record of a topic that goes quiet has its
// pair, and the position follows it.
func TestOffsetSyncsAreWritten(t *testing.T) {
	l := newLab(t, offsetSync)
	l.source.create("t", 1)
	l.source.write("t", 0, values("t", 0, 5)...)
	r := l.start()
	l.copied("t", 0, values("t", 0, 5)...)
	l.synced("t", 4, 4)
	l.saved("t", 0, 4)
	l.source.write("t", 0, values("t", 5, 3)...)
	l.synced("t", 7, 7)
	for _, hook := range []string{"on_partitions", "on_commit"} {
		if p := r.Status().Plugins[0]; p.Calls[hook] == 0 || p.Seconds[hook] <= 0 {
			t.Errorf("%s: called %d times, for %v s", hook, p.Calls[hook], p.Seconds[hook])
		}
	}
	r.stop()
	if at := l.positionOf("t"); at != 7 {
		t.Errorf("the position is %d at the end, want 7", at)
	}
	p := r.Status().Plugins
	if len(p) != 1 || p[0].Name != config.OffsetSyncPlugin || p[0].Generation != 1 || len(p[0].SHA256) != 64 {
		t.Errorf("status: %+v", p)
	}
}

// TestSmallTransactionsAreNotHeldUp: each is pieces of its own for a plugin, until
// a flush. When there are too many the flush comes, and does not wait for the time at
// which positions are saved.
func TestSmallTransactionsAreNotHeldUp(t *testing.T) {
	l := newLab(t, offsetSync, func(f *config.Flow) { f.CommitInterval = time.Hour })
	l.source.create("t", 1)
	l.source.create("idle", 2*(maxLanes*heldTogether/heldMost)) // so many that a partition may have no more than heldMost
	const n = heldMost/2 + 10                                   // records; a range and a marker each
	all := values("t", 0, n)
	l.source.transactions("t", true, slices.Collect(slices.Chunk(all, 1))...)
	l.start()
	l.copied("t", 0, all...)
	for _, v := range values("late", 0, 3) { // the first may have been asked for before
		l.source.write("t", 0, v)
		all = append(all, v)
		l.copied("t", 0, all...)
	}
}

// TestPluginsAreToggledLive: what is copied while the plugin is off has no pair, all
// else has, and nothing is lost.
func TestPluginsAreToggledLive(t *testing.T) {
	l := newLab(t, offsetSync)
	l.source.create("t", 1)
	l.source.write("t", 0, values("t", 0, 5)...)
	r := l.start()
	l.synced("t", 4, 4)
	r.apply(without)
	before := len(l.syncs("t", 0))
	l.source.write("t", 0, values("t", 5, 5)...)
	l.copied("t", 0, values("t", 0, 10)...)
	l.saved("t", 0, 9)
	if n := len(l.syncs("t", 0)); n != before {
		t.Errorf("%d pairs were written while the plugin was off", n-before)
	}
	r.apply(offsetSync)
	l.source.write("t", 0, values("t", 10, 5)...)
	l.synced("t", 14, 14)
	l.copied("t", 0, values("t", 0, 15)...)
	if g := r.Status().Plugins[0].Generation; g != 2 {
		t.Errorf("generation %d after a reload, want 2", g)
	}
	r.apply(offsetSync, func(f *config.Flow) { f.Plugins[0].Config["lag_max"] = int64(5) })
	l.source.write("t", 0, values("t", 15, 5)...)
	l.synced("t", 19, 19)
	r.apply() // nothing has changed
	if g := r.Status().Plugins[0].Generation; g != 3 {
		t.Errorf("generation %d, want 3", g)
	}
	r.stop()
}

// TestABadPluginChangesNothing: what cannot be loaded is refused before anything is
// touched.
func TestABadPluginChangesNothing(t *testing.T) {
	l := newLab(t, offsetSync)
	l.source.create("t", 1)
	r := l.start()
	r.runs("t", 0)
	next := l.cfg
	offsetSync(&next)
	next.Plugins[0].Config = map[string]any{"lag_max": "many"}
	if _, err := r.Prepare(t.Context(), next); err == nil {
		t.Error("a plugin that refuses its config was loaded")
	}
	next.Plugins[0].Path = "nowhere.wasm"
	if _, err := r.Prepare(t.Context(), next); err == nil {
		t.Error("a file that does not exist was loaded")
	}
	l.source.write("t", 0, values("t", 0, 5)...)
	l.synced("t", 4, 4)
}

// TestAPluginThatCannotBeLoadedEndsTheFlow: its positions would wait for ever.
func TestAPluginThatCannotBeLoadedEndsTheFlow(t *testing.T) {
	l := newLab(t, offsetSync, func(f *config.Flow) { f.Plugins[0].Path = "nowhere.wasm" })
	f := New(Options{Config: l.cfg, Source: l.source.cluster, Target: l.target.cluster, Log: l.slog()})
	done := make(chan error, 1)
	go func() { done <- f.Run(t.Context()) }()
	select {
	case err := <-done:
		if err == nil {
			t.Error("the flow ended without an error")
		}
	case <-time.After(20 * time.Second):
		t.Fatal("the flow runs on")
	}
}

// A plugin that is switched on while a partition begins is told of it.
func TestSwitchedOnWhileAPartitionBegins(t *testing.T) {
	l := newLab(t, remembers, without, refreshing(20*time.Millisecond))
	l.source.create("u", 1)
	l.source.write("u", 0, "one")
	r := l.start()
	l.saved("u", 0, 0)
	release, asked := l.target.hold(t, "mm2-offsets.A.internal")
	l.source.create("t", 1)
	<-asked // to save where it begins
	r.apply(remembers)
	release()
	l.source.write("t", 0, values("v", 0, 5)...)
	l.saved("t", 0, 4)
	if last := l.last("t"); last != 4 {
		t.Errorf("position 4 is saved, and the plugin has been told up to %d", last)
	}
	r.stop()
}

// What offset syncs say of partitions goes to the lanes that these are in: each takes it
// out of its own when it begins with them, and lanes begin side by side.
func TestEachLaneHasItsOwnReplays(t *testing.T) {
	l := newLab(t, offsetSync, func(f *config.Flow) { f.Lanes = 3 })
	var all []offsets.Sync
	for n := range int32(30) {
		all = append(all, offsets.Sync{Topic: "t", Partition: n, Upstream: int64(n), Downstream: int64(n)})
	}
	s := offsets.NewSyncs(offsets.TopicOptions{Cluster: l.target.cluster, Name: syncsTopic, Log: l.slog()})
	defer s.Close()
	if err := s.Write(t.Context(), all); err != nil {
		t.Fatal(err)
	}
	f := New(Options{Config: l.cfg, Source: l.source.cluster, Target: l.target.cluster, Log: l.slog()})
	defer f.sink.close()
	lanes := f.replays(t.Context(), f.cfg())
	for _, x := range all {
		for i, known := range lanes {
			rs, ours := known[plugins.Key{Topic: x.Topic, Partition: x.Partition}], f.laneOf(positions.Key{Topic: x.Topic, Partition: x.Partition}) == i
			if ours != (len(rs) == 1) || ours && (rs[0].First != x.Upstream || rs[0].TargetFirst != x.Downstream || !rs[0].Replay) {
				t.Errorf("lane %d has %v of partition %d, which is its own: %v", i, rs, x.Partition, ours)
			}
		}
	}
}
