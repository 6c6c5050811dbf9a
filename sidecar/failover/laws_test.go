package failover

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"testing"
	"time"

	"pgregory.net/rapid"

	"mirror/abi"
	"mirror/plugins"
	"mirror/sidecar/config"
	"mirror/sidecar/offsets"
)

// history is a group with one offset, and all that may happen to it and to the engine
// that follows it. The truth about translation is a subtraction; answers are that, or a
// bound below it, or none.
type history struct {
	*lab
	t       *rapid.T
	e       *Engine
	group   string
	upper   int64 // what the group has on the source, 0: nothing
	there   int64 // what it is known to have on the target, -1: nothing
	leave   func()
	answer  plugins.Translation
	written int64 // what its checkpoint says, -1: none
}

const shift = 7

func (h *history) round() {
	h.once(h.e)
	h.check()
}

// check looks at what the round has done.
func (h *history) check() {
	at := int64(-1)
	up := int64(-1)
	topic := offsets.NewCheckpoints(offsets.TopicOptions{Cluster: h.target.cluster, Name: topicName, Log: slog.New(slog.DiscardHandler)})
	defer topic.Close()
	if err := topic.Read(context.Background(), func(c offsets.Checkpoint, _ time.Time) {
		if c.Group == h.group {
			if c.Downstream < at && c.Upstream >= up {
				h.t.Fatalf("the checkpoint goes back from %d>%d to %d>%d, and the group did not", up, at, c.Upstream, c.Downstream)
			}
			up, at = c.Upstream, c.Downstream
		}
	}); err != nil {
		h.t.Fatal(err)
	}
	if at >= 0 && at > up-shift {
		h.t.Fatalf("the checkpoint %d>%d sends the group past what it has read", up, at)
	}
	if h.answer.Outcome != abi.NoOffset && h.upper > 0 && (at < 0 || at > h.upper-shift) {
		h.t.Fatalf("the group has read to %d, the answer is %+v, and the checkpoint is %d>%d", h.upper, h.answer, up, at)
	}
	if h.answer.Outcome == abi.Exact && h.upper > 0 && at != h.upper-shift {
		h.t.Fatalf("the group has read to %d, which is known exactly, and the checkpoint is %d>%d", h.upper, up, at)
	}
	h.written = at

	now := int64(-1)
	fmt.Sscanf(h.target.committed(h.group, "A.orders", 0), "%d/", &now)
	switch want := h.answer.Offset; {
	case now < h.there:
		h.t.Fatalf("the group was moved back on the target, from %d to %d", h.there, now)
	case h.leave != nil && now != h.there:
		h.t.Fatalf("the group has members on the target and was moved from %d to %d", h.there, now)
	case now > h.there && now != want:
		h.t.Fatalf("the group was moved on the target from %d to %d, want %d", h.there, now, want)
	case h.leave == nil && h.upper > 0 && want > now:
		h.t.Fatalf("the group is left at %d on the target, want %d", now, want)
	}
	h.there = now
}

// Whatever happens, in whatever order: checkpoints never go back but with the group and
// never send it past what it has read; on the target a group is never moved back, and
// never while it has members.
//
// MIRROR_TEST_ROUNDS is how many histories are drawn.
func TestLaws(t *testing.T) {
	rounds := cmp.Or(os.Getenv("MIRROR_TEST_ROUNDS"), "20")
	if err := flag.Set("rapid.checks", rounds); err != nil {
		t.Fatal(err)
	}
	l := newSyncLab(t)
	l.mirrors("orders", 1)
	n := 0
	rapid.Check(t, func(t *rapid.T) {
		n++
		h := &history{lab: l, t: t, group: fmt.Sprintf("g%d", n), there: -1, written: -1, answer: none(abi.NotKnown)}
		only := patterns(l, h.group)
		l.with(func(l *lab) {
			l.config.Groups, l.config.Checkpoints.SyncGroups = only, config.Switch{On: true}
			l.answers = func(plugins.GroupOffset) plugins.Translation { return h.answer }
		})
		h.e = l.engine()
		defer func() {
			if h.leave != nil {
				h.leave()
			}
			h.e.topic.Close()
		}()
		h.commits(rapid.Int64Range(100, 1000).Draw(t, "first"))
		t.Repeat(map[string]func(*rapid.T){
			"":                     func(*rapid.T) { h.round() },
			"the group reads on":   func(t *rapid.T) { h.commits(h.upper + rapid.Int64Range(0, 100).Draw(t, "by")) },
			"the group goes back":  func(t *rapid.T) { h.commits(max(h.upper-rapid.Int64Range(1, 100).Draw(t, "by"), 20)) },
			"less is known":        func(t *rapid.T) { h.knows(rapid.Int64Range(1, 12).Draw(t, "less")) },
			"all is known":         func(*rapid.T) { h.knows(0) },
			"the mirror restarts":  func(*rapid.T) { h.e.topic.Close(); h.e = h.engine() },
			"coordinators move":    func(*rapid.T) { h.source.RehashCoordinators(); h.target.RehashCoordinators() },
			"it expires there":     func(t *rapid.T) { h.expires(t) },
			"somebody reads there": func(t *rapid.T) { h.reads(t) },
		})
	})
}

// commits has the group commit on the source; what was known of another offset goes on
// being the case, as far as it is true of this one.
func (h *history) commits(offset int64) {
	h.upper = offset
	h.source.commit(h.group, "orders", 0, offset, "")
	less := int64(0)
	if h.answer.Outcome == abi.Bound {
		less = 5
	}
	h.knows(less)
}

// knows has the answer be so much less than the truth.
func (h *history) knows(less int64) {
	h.with(func(l *lab) {
		h.answer = exact(h.upper - shift)
		if less > 0 {
			h.answer = bound(max(h.upper-shift-less, 0), abi.Thinned)
		}
	})
}

func (h *history) expires(t *rapid.T) {
	if h.leave != nil || h.there < 0 {
		t.Skip("nothing there that could")
	}
	if _, err := h.target.admin.DeleteGroups(context.Background(), h.group); err != nil {
		t.Fatal(err)
	}
	h.there = -1
}

// reads has a member come, or commit where it is, or go.
func (h *history) reads(t *rapid.T) {
	if h.leave == nil {
		h.leave = h.target.join(h.group, "A.orders", false)
		return
	}
	h.leave()
	h.leave = nil
	eventually(h.lab, "an empty group", func() string {
		all, err := h.target.admin.ListGroups(context.Background())
		if err != nil || all[h.group].State != "Empty" {
			return all[h.group].State + textOf(err)
		}
		return ""
	})
	if rapid.Bool().Draw(t, "it has read on") {
		h.there = max(h.there, 0) + rapid.Int64Range(0, 200).Draw(t, "by")
		h.target.commit(h.group, "A.orders", 0, h.there, "")
	}
}
