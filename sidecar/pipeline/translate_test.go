package pipeline

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"mirror/abi"
	"mirror/plugins"
	"mirror/sidecar/config"
)

// translating is the guest of the plugins' own tests that has the hook on_groups: what
// is copied becomes a hundred more.
func translating(f *config.Flow) {
	echo(f)
	f.Plugins[0].Name, f.Plugins[0].Path = "translator", filepath.Join("..", "..", "plugins", "testdata", "groups.wasm")
	f.Plugins[0].Emit.Groups = true
}

// asked is what a group has committed of many partitions.
func asked(partitions int32, offset int64) (all []plugins.GroupOffset) {
	for n := range partitions {
		all = append(all, plugins.GroupOffset{Key: plugins.Key{Topic: "t", Partition: n}, Group: "g", Offset: offset, LeaderEpoch: -1})
	}
	return all
}

// Each partition is answered for by its lane, and the answers are in order.
func TestTranslate(t *testing.T) {
	l := newLab(t, translating, func(f *config.Flow) { f.Lanes = 3 })
	l.source.create("t", 9)
	r := l.start()
	for n := range int32(9) {
		l.source.write("t", n, values("v", 0, 5)...)
		l.saved("t", n, 4)
	}
	all := slices.Concat(asked(9, 3), asked(10, 5), asked(9, 77))
	got, err := r.translate(t.Context(), all)
	if err != nil {
		t.Fatal(err)
	}
	for n, g := range got {
		want := plugins.Translation{Offset: all[n].Offset + 100, Outcome: abi.Exact, Plugin: "translator"}
		switch {
		case all[n].Partition == 9: // there is none
			want = plugins.Translation{Offset: -1, Reason: abi.NotKnown, Plugin: "translator"}
		case all[n].Offset == 77:
			want = plugins.Translation{Offset: 5, Outcome: abi.Bound, Reason: abi.Ahead, Plugin: "translator"}
		}
		if g != want {
			t.Errorf("%+v becomes %+v, want %+v", all[n], g, want)
		}
	}
	r.stop()
	if _, err := r.translate(t.Context(), all); !errors.Is(err, errStopping) {
		t.Errorf("at the end: %v", err)
	}
}

// Nobody waits longer than he wants for a lane that is busy, and questions do not keep
// plugins from being swapped, nor the flow from ending.
func TestTranslateWhilePluginsChange(t *testing.T) {
	l := newLab(t, translating, func(f *config.Flow) { f.Lanes = 2 })
	l.source.create("t", 4)
	r := l.start()
	for n := range int32(4) {
		l.source.write("t", n, values("v", 0, 5)...)
		l.saved("t", n, 4)
	}
	var asking sync.WaitGroup
	ctx, cancel := context.WithCancel(t.Context())
	many := slices.Repeat(asked(4, 3), 3000) // several questions for each lane
	for range 3 {
		asking.Go(func() {
			for ctx.Err() == nil {
				got, err := r.translate(ctx, many)
				if err != nil && !errors.Is(err, plugins.ErrNoGroups) && !errors.Is(err, errStopping) && ctx.Err() == nil {
					t.Error(err)
				}
				for _, g := range got {
					if g.Outcome == abi.Exact && g.Offset != 103 || g.Outcome == abi.Bound {
						t.Errorf("answered %+v", g)
					}
				}
			}
		})
	}
	for n := range 6 {
		switch n % 3 {
		case 0:
			r.apply(without)
			if _, err := r.translate(ctx, asked(4, 3)); !errors.Is(err, plugins.ErrNoGroups) {
				t.Errorf("without plugins: %v", err)
			}
		case 1:
			r.apply(translating)
		case 2:
			r.apply(translating, func(f *config.Flow) { f.Plugins[0].Config = map[string]any{"n": fmt.Sprint(n)} })
		}
	}
	release, held := l.target.hold(t, l.cfg.Positions.Topic)
	l.source.write("t", 0, "more")
	<-held // its lane waits for a position to be saved
	short, end := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer end()
	if _, err := r.translate(short, asked(4, 3)); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a lane that waits: %v", err)
	}
	release()
	r.stop()
	cancel()
	asking.Wait()
}

// Two plugins that translate are refused, with where they are, and so is one that may not.
func TestWhoMayTranslate(t *testing.T) {
	l := newLab(t, translating)
	l.cfg.Plugins[0].Where = "mirror.toml:12"
	two := l.cfg
	two.Plugins = append(slices.Clone(two.Plugins), two.Plugins[0])
	two.Plugins[1].Name, two.Plugins[1].Where = "other", "mirror.toml:20"
	one := l.cfg
	one.Plugins = slices.Clone(one.Plugins)
	one.Plugins[0].Emit.Groups = false
	path := l.cfg.Plugins[0].Path
	for want, c := range map[string]*config.Flow{
		"flow A->B: plugins translator (mirror.toml:12, " + path + ") and other (mirror.toml:20, " + path + ") both export mirror_on_groups: only one can translate groups' offsets, disable the other": &two,
		"flow A->B: plugin translator (mirror.toml:12, " + path + "): it exports mirror_on_groups, and the config does not let it translate: set emit.groups, or take another plugin":                   &one,
	} {
		if _, err := CheckPlugins(t.Context(), c); err == nil || err.Error() != want {
			t.Errorf("%v\nwant %s", err, want)
		}
	}
}
