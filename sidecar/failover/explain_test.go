package failover

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"mirror/abi"
	"mirror/plugins"
	"mirror/sidecar/config"
	"mirror/sidecar/offsets"
	"mirror/sidecar/status"
)

// said is an explanation in short: where it goes and why, what is there, what a sync
// would do.
func said(g status.GroupTranslation) string {
	var all []string
	for _, p := range g.Partitions {
		checkpoint, sync, run := "-", "-", "-"
		if p.Checkpoint != nil {
			checkpoint = fmt.Sprintf("%d>%d", p.Checkpoint.Upstream, p.Checkpoint.Downstream)
		}
		if p.Nearest != nil {
			sync = fmt.Sprintf("%d>%d", p.Nearest.Upstream, p.Nearest.Downstream)
		}
		if p.Run != nil {
			run = fmt.Sprintf("%d-%d>%d", p.Run.First, p.Run.Last, p.Run.Target)
		}
		all = append(all, strings.TrimSpace(fmt.Sprintf("%s-%d %d>%d %s %s; run %s, sync %s, checkpoint %s, there %d: %s %s",
			p.Topic, p.Partition, p.Source, p.Offset, p.Outcome, p.Reason, run, sync, checkpoint, p.Committed, p.Would, p.Held)))
	}
	return strings.Join(all, "\n")
}

func TestExplain(t *testing.T) {
	l := newLab(t)
	l.mirrors("orders", 2)
	l.mirrors("other", 1)
	l.source.commit("g", "orders", 0, 100, "m")
	l.source.commit("g", "orders", 1, 200, "")
	l.source.commit("g", "other", 0, 300, "")
	l.target.commit("g", "A.orders", 0, 97, "m")
	l.target.commit("g", "A.other", 0, 999, "")
	l.answers = func(o plugins.GroupOffset) plugins.Translation {
		t := exact(o.Offset - 3)
		switch {
		case o.Partition == 1:
			t = bound(150, abi.Thinned)
			t.Run = abi.Run{First: 140, Target: 150, Records: 1}
		case o.Topic == "orders":
			t.Run = abi.Run{First: 50, Target: 47, Records: 100}
		}
		return t
	}
	e := l.engine()
	e.o.Syncs = func(context.Context) ([]offsets.Sync, error) {
		return []offsets.Sync{
			{Topic: "orders", Partition: 0, Upstream: 10, Downstream: 9}, {Topic: "orders", Partition: 0, Upstream: 90, Downstream: 88},
			{Topic: "orders", Partition: 0, Upstream: 101, Downstream: 98}, {Topic: "orders", Partition: 1, Upstream: 201, Downstream: 5},
			{Topic: "unknown", Partition: 0, Upstream: 1, Downstream: 1},
		}, nil
	}
	got, err := e.Explain(t.Context(), "g", "")
	if err != nil {
		t.Fatal(err)
	}
	want := `orders-0 100>97 exact ; run 50-149>47, sync 90>88, checkpoint -, there 97: in_place
orders-1 200>150 bound thinned; run 140-140>150, sync -, checkpoint -, there -1: commit
other-0 300>297 exact ; run -, sync -, checkpoint -, there 999: hold ahead`
	if said(got) != want || got.State != "Empty" || got.TargetState != "Empty" || got.SyncGroups || got.Partitions[0].Metadata != "m" || got.Partitions[0].Plugin != "test" {
		t.Errorf("%+v\n%s\nwant\n%s", got, said(got), want)
	}
	if _, n := l.checkpoints(); n != 0 || l.target.committed("g", "A.orders", 1) != "" {
		t.Error("it has changed something")
	}

	l.with(func(l *lab) { l.config.Checkpoints.SyncGroups = config.Switch{On: true} })
	l.once(e)
	got, err = e.Explain(t.Context(), "g", "orders")
	want = `orders-0 100>97 exact ; run 50-149>47, sync 90>88, checkpoint 100>97, there 97: in_place
orders-1 200>150 bound thinned; run 140-140>150, sync -, checkpoint 200>150, there 150: in_place`
	if err != nil || said(got) != want || !got.SyncGroups {
		t.Errorf("%v\n%s\nwant\n%s", err, said(got), want)
	}
	leave := l.target.join("g", "A.other", false)
	defer leave()
	l.source.commit("g", "orders", 0, 110, "")
	got, err = e.Explain(t.Context(), "g", "other")
	if want = "other-0 300>297 exact ; run -, sync -, checkpoint 300>297, there 999: hold active"; err != nil || said(got) != want || got.TargetState != "Stable" {
		t.Errorf("%v\n%+v\nwant\n%s", err, got, want)
	}
}

// What the target's log does not bear out is not believed, and no run is shown of it.
func TestBelieved(t *testing.T) {
	run := abi.Run{First: 50, Target: 47, Records: 100}
	by := func(t plugins.Translation, r abi.Run) plugins.Translation { t.Run = r; return t }
	for _, c := range []struct {
		what      string
		end       int64
		got, want plugins.Translation
	}{
		{"what nothing is known of", -1, by(exact(97), run), by(exact(97), run)},
		{"all of it", 147, by(exact(97), run), by(exact(97), run)},
		{"the answer, and not the end of the run", 146, by(exact(97), run), exact(97)},
		{"the end, and not what is behind it", 147, by(exact(147), run), by(exact(147), run)},
		{"not the answer", 96, by(exact(97), run), none(pastEnd)},
		{"none", 5, none(abi.NotKnown), none(abi.NotKnown)},
	} {
		if got := believed(c.got, c.end); got != c.want {
			t.Errorf("%s: %+v, want %+v", c.what, got, c.want)
		}
	}
}

func TestExplainHasNothingToSay(t *testing.T) {
	l := newLab(t)
	l.mirrors("orders", 1)
	l.source.share("shared", "orders")
	e := l.engine()
	for group, want := range map[string]string{
		"nobody": `has no group "nobody"`, "tmp-1": "is not selected", "shared": "share group",
	} {
		if _, err := e.Explain(t.Context(), group, ""); !errors.Is(err, ErrNoGroup) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", group, err)
		}
	}
	l.source.commit("idle", "orders", 0, 5, "")
	l.with(func(l *lab) { l.partitions = nil })
	if g, err := e.Explain(t.Context(), "idle", ""); err != nil || len(g.Partitions) != 0 {
		t.Errorf("a group without mirrored partitions: %+v, %v", g, err)
	}
	l.with(func(l *lab) { l.off = "switched off" })
	if _, err := e.Explain(t.Context(), "idle", ""); !errors.Is(err, ErrOff) || !strings.Contains(err.Error(), "A->B: checkpoints are off: switched off") {
		t.Error(err)
	}
	if err := e.Lag(t.Context(), nil); !errors.Is(err, ErrOff) {
		t.Error(err)
	}
}

// lags are what groups would lose and repeat, in short.
func (l *lab) lags(e *Engine) map[string]string {
	l.Helper()
	all := map[string]string{}
	err := e.Lag(context.Background(), func(g status.GroupLag) {
		most := ""
		if g.AtMost {
			most = "at most "
		}
		all[g.Group] = fmt.Sprintf("%s %s%d/%d, unknown %d, not copied %d by %s", g.Outcome, most, g.Lose, g.Repeat, g.Unknown, g.NotCopied, g.By)
	})
	if err != nil {
		l.Fatal(err)
	}
	return all
}

func TestLag(t *testing.T) {
	l := newLab(t)
	l.mirrors("orders", 2)
	l.with(func(l *lab) {
		for i := range l.partitions {
			p := &l.partitions[i]
			p.Position, p.TargetEnd, p.SourceEnd = 999, 500, 1100
		}
	})
	l.source.commit("exact", "orders", 0, 100, "")
	l.source.commit("exact", "orders", 1, 1050, "") // ahead of what is copied
	l.source.commit("bound", "orders", 0, 100, "")
	l.source.commit("none", "orders", 0, 100, "")
	l.answers = func(o plugins.GroupOffset) plugins.Translation {
		switch o.Group {
		case "bound":
			return bound(40, abi.InUnknown)
		case "none":
			return none(abi.BeforeFirst)
		}
		return exact(min(o.Offset-3, 500))
	}
	e := l.engine()
	l.once(e)
	check := func(want map[string]string) {
		t.Helper()
		got := l.lags(e)
		for group, w := range want {
			if got[group] != w {
				t.Errorf("%s: %s, want %s", group, got[group], w)
			}
		}
	}
	check(map[string]string{
		"exact": "exact 0/0, unknown 0, not copied 150 by checkpoint",
		"bound": "bound at most 0/460, unknown 0, not copied 100 by checkpoint",
		"none":  "none 0/0, unknown 1, not copied 100 by checkpoint",
	})
	// The group has read on since: its checkpoint is behind until the next round.
	l.source.commit("exact", "orders", 0, 120, "")
	check(map[string]string{"exact": "exact 0/20, unknown 0, not copied 150 by checkpoint"})
	l.once(e)
	check(map[string]string{"exact": "exact 0/0, unknown 0, not copied 150 by checkpoint"})

	// With sync_groups it is the group on the target that counts: one that is ahead there
	// would lose what it passes over, one that has nothing there begins anywhere.
	l.with(func(l *lab) { l.config.Checkpoints.SyncGroups = config.Switch{On: true} })
	check(map[string]string{"exact": "exact 0/0, unknown 2, not copied 150 by group"})
	l.once(e)
	check(map[string]string{"exact": "exact 0/0, unknown 0, not copied 150 by group"})
	l.target.commit("exact", "A.orders", 0, 130, "")
	l.target.commit("bound", "A.orders", 0, 45, "")
	check(map[string]string{
		"exact": "exact 13/0, unknown 0, not copied 150 by group",
		"bound": "bound at most 5/455, unknown 0, not copied 100 by group",
	})
}

// Before the checkpoints are read there is nothing to compare with.
func TestLagBeforeTheFirstRound(t *testing.T) {
	l := newLab(t)
	l.mirrors("orders", 1)
	if err := l.engine().Lag(t.Context(), nil); !errors.Is(err, ErrOff) {
		t.Error(err)
	}
}
