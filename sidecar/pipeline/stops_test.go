package pipeline

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"

	"mirror/abi"
	"mirror/plugins"
	"mirror/sidecar/batch"
	"mirror/sidecar/config"
	"mirror/sidecar/state"
)

// Whatever has happened to the mirror on the way (it was stopped, crashed at any request that
// stores something, the plugin was off for a while, its state was deleted beside it), groups
// of what was copied with the plugin on go on exactly, and no group of the rest loses anything.
func TestGroupsGoOnWhateverHappened(t *testing.T) {
	seed, err := strconv.ParseUint(os.Getenv("MIRROR_TEST_SEED"), 10, 64)
	if err != nil {
		seed = rand.Uint64()
	}
	for n := range uint64(rounds()) {
		t.Run(fmt.Sprint("MIRROR_TEST_SEED=", seed+n), func(t *testing.T) {
			t.Parallel()
			h := &happenings{lab: newLab(t, offsetSync, grace(200*time.Millisecond), func(f *config.Flow) {
				f.Resume = true
				f.Plugins[0].Limits = config.Limits{Memory: 64 << 20, Call: time.Minute}
				f.Plugins[0].Config["translate"] = true
			}), random: rand.New(rand.NewPCG(seed+n, 0)), on: true}
			h.source.create("t", 1)
			h.plugin = h.cfg.Plugins
			h.r = h.start()
			for range 12 {
				h.happens()
			}
			h.check()
		})
	}
}

// rounds is how many times that is tried: MIRROR_TEST_STOPS, or a few.
func rounds() int {
	if n, err := strconv.Atoi(os.Getenv("MIRROR_TEST_STOPS")); err == nil {
		return n
	}
	return 4
}

// happenings are what happens to a mirror, and what was copied meanwhile.
type happenings struct {
	*lab
	r      *running
	random *rand.Rand
	plugin []config.Plugin
	on     bool
	values int
	off    [][2]int64 // source offsets that were copied with the plugin off, ends not included
	begun  int64      // where the source ended when it was switched last
}

func (h *happenings) end() int64 { return h.source.PartitionInfo("t", 0).HighWatermark }

// grows writes some more to the source.
func (h *happenings) grows() {
	for range 1 + h.random.IntN(4) {
		n := 1 + h.random.IntN(4)
		all := values(fmt.Sprint("v", h.values), 0, n)
		h.values++
		if h.random.IntN(3) == 0 {
			h.source.write("t", 0, all...)
		} else {
			h.source.transaction("t", h.random.IntN(3) > 0, all...)
		}
	}
}

func (h *happenings) settles() {
	h.Helper()
	if end := h.end(); end > 0 {
		h.saved("t", 0, end-1)
	}
	eventually(h.T, "the plugin", func() string { // it may have been saved by the process before
		if n := len(h.r.Status().Plugins); n != len(h.r.cfg().Plugins) {
			return fmt.Sprintf("there are %d", n)
		}
		return ""
	})
}

func (h *happenings) happens() {
	h.Helper()
	switch h.random.IntN(12) {
	case 0, 7: // a stop
		h.grows()
		if h.random.IntN(2) == 0 {
			h.settles()
		}
		h.r.stop()
		h.grows()
		h.r = h.start()
	case 1: // switched
		h.settles()
		h.on = !h.on
		end := h.end()
		if h.on {
			h.off = append(h.off, [2]int64{h.begun, end})
		}
		h.begun = end
		h.r.apply(func(f *config.Flow) {
			f.Plugins = nil
			if h.on {
				f.Plugins = h.plugin
			}
		})
	case 2: // its state is deleted
		h.settles()
		name := state.TopicName("A", config.OffsetSyncPlugin, ".")
		if h.on && h.target.TopicInfo(name) != nil {
			if err := h.target.DeleteTopic(name); err != nil {
				h.Fatal(err)
			}
			h.grows()
			h.settles()
			h.whole(name)
		}
	case 3, 4, 5, 6: // a crash
		h.settles()
		topics := []string{"A.t", "mm2-offsets.A.internal"}
		if h.on {
			topics = append(topics, state.TopicName("A", config.OffsetSyncPlugin, "."))
		}
		topic := topics[h.random.IntN(len(topics))]
		if h.target.TopicInfo(topic) == nil {
			return
		}
		crashed := h.crashAt(crash{topic, 1, h.random.IntN(2) == 0})
		_ = h.source.tryStore("t", 0, h.source.made(batch.None, values(fmt.Sprint("v", h.values), 0, 1+h.random.IntN(3))...))
		h.values++
		select {
		case <-crashed:
		case <-time.After(20 * time.Second):
			h.Fatal("what it was to crash at does not happen: " + topic)
		}
		h.r.stop()
		for _, s := range []*side{h.source, h.target} {
			s.net.set(work)
			s.connect(s.cluster.Alias())
		}
		h.r = h.start()
	default:
		h.grows()
	}
}

// whole waits until a topic of state that was deleted has all of it again.
func (h *happenings) whole(name string) {
	h.Helper()
	eventually(h.T, "the state in its topic", func() string {
		s, err := state.Open(h.Context(), state.Options{Cluster: h.target.cluster, Name: name, Schema: h.r.states.all()[0].name.schema, Log: h.slog()})
		if err != nil {
			return err.Error()
		}
		defer s.Close()
		n := 0
		for range s.Take(plugins.Key{Topic: "t"}).Pairs() {
			n++
		}
		if p := h.r.Status().Plugins; len(p) == 0 || p[0].StateKeys != n {
			return fmt.Sprintf("%d keys, %+v", n, p)
		}
		return ""
	})
}

func (h *happenings) check() {
	h.Helper()
	h.settles()
	if !h.on {
		h.off = append(h.off, [2]int64{h.begun, h.end()})
		h.r.apply(func(f *config.Flow) { f.Plugins = h.plugin })
	}
	h.source.write("t", 0, "last")
	h.settles()
	end := h.end()
	var asked []plugins.GroupOffset
	for offset := range end + 1 {
		asked = append(asked, plugins.GroupOffset{Key: plugins.Key{Topic: "t"}, Group: "g", Offset: offset, LeaderEpoch: -1, LogStart: -1})
	}
	ctx, cancel := context.WithTimeout(h.Context(), 20*time.Second)
	defer cancel()
	answers, err := h.r.translate(ctx, asked)
	if err != nil {
		h.Fatal(err)
	}
	source, target := h.source.committed("t"), h.target.committed("A.t")
	at := map[string]int64{"": 1 << 60}
	for _, r := range target {
		if _, twice := at[string(r.Value)]; twice {
			h.Errorf("%s is there twice", r.Value)
		}
		at[string(r.Value)] = r.Offset
	}
	inexact := 0
	for offset, a := range answers {
		want, got := after(source, int64(offset)), ""
		if a.Outcome != abi.NoOffset {
			got = after(target, a.Offset)
		}
		off, next := false, end // the record that comes next is what counts
		for _, r := range source {
			if r.Offset >= int64(offset) {
				next = r.Offset
				break
			}
		}
		for _, o := range h.off {
			off = off || next >= o[0] && next < o[1] || int64(offset) >= o[0] && int64(offset) <= o[1]
		}
		switch {
		case a.Outcome == abi.Exact && got != want:
			h.Errorf("offset %d: exactly %d, which is %q, want %q", offset, a.Offset, got, want)
		case a.Outcome == abi.Bound && at[got] > at[want]:
			h.Errorf("offset %d: bound %d, which is %q, past %q", offset, a.Offset, got, want)
		case a.Outcome != abi.Exact && !off:
			h.Errorf("offset %d of %d: %+v, and it was copied with the plugin on; off: %v", offset, end, a, h.off)
		}
		if a.Outcome != abi.Exact {
			inexact++
		}
	}
	h.Logf("%d offsets, %d not exact, off %v", len(answers), inexact, h.off)
	h.r.stop()
}
