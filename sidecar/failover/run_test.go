package failover

import (
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"mirror/plugins"
)

// Rounds follow one another; what goes wrong is said once, and so is that it is over.
// Off, nothing is remembered; on again, it goes on from the topic.
func TestRounds(t *testing.T) {
	l := newLab(t)
	l.mirrors("orders", 1)
	l.source.commit("g", "orders", 0, 100, "")
	e, stop := l.start()
	checkpoint := func(want string) {
		t.Helper()
		eventually(t, "a checkpoint", func() string {
			if last, _ := l.checkpoints(); last["g/A.orders-0"] != want {
				return fmt.Sprint(last)
			}
			return ""
		})
	}
	checkpoint("100>97")
	l.with(func(l *lab) { l.failure = errors.New("plugins are busy") })
	eventually(t, "a failure", func() string {
		if s := e.Status(); s.Problem != "translate offsets of groups: plugins are busy" {
			return "the problem is " + s.Problem
		}
		return ""
	})
	l.source.commit("g", "orders", 0, 200, "")
	updated := e.Status().Updated
	l.with(func(l *lab) { l.failure = nil })
	checkpoint("200>197")
	eventually(t, "an end of it", func() string {
		if s := e.Status(); s.Problem != "" || !s.Updated.After(updated) {
			return "the problem is " + s.Problem
		}
		return ""
	})
	if said, over := l.log.Count("groups cannot be followed"), l.log.Count("groups are followed again"); said != 1 || over != 1 {
		t.Errorf("said %d times, and %d times that it is over", said, over)
	}
	l.with(func(l *lab) { l.off = "switched off" })
	eventually(t, "an end", func() string {
		if s := e.Status(); s.Enabled || s.Reason != "switched off" || s.Checkpoints != 0 || !s.Updated.IsZero() {
			return fmt.Sprintf("%+v", s)
		}
		return ""
	})
	_, records := l.checkpoints()
	l.with(func(l *lab) { l.off = "" })
	eventually(t, "a round", func() string {
		if s := e.Status(); s.Checkpoints != 1 || s.Updated.IsZero() {
			return fmt.Sprintf("%+v", s)
		}
		return ""
	})
	stop()
	if _, n := l.checkpoints(); n != records {
		t.Errorf("%d records were written again", n-records)
	}
}

// Switched off in the middle of a round, nothing more is committed; and what was asked
// for then is no error.
func TestARoundIsCutShort(t *testing.T) {
	l := newSyncLab(t)
	l.mirrors("orders", 1)
	for n := range chunkGroups + 1 {
		l.source.commit(fmt.Sprintf("g%03d", n), "orders", 0, 100, "")
	}
	l.with(func(l *lab) { l.config.Checkpoints.Interval = time.Hour })
	e, _ := l.start()
	committed := func() uint64 { return e.Status().Committed }
	eventually(t, "the first chunk", func() string {
		if n := committed(); n != chunkGroups {
			return fmt.Sprintf("%d", n)
		}
		return ""
	})
	l.with(func(l *lab) {}) // a reload of something else
	l.with(func(l *lab) { l.off, l.failure = "switched off", plugins.ErrNoGroups })
	eventually(t, "an end", func() string {
		if s := e.Status(); s.Enabled || s.Checkpoints != 0 {
			return fmt.Sprintf("%+v", s)
		}
		return ""
	})
	l.with(func(l *lab) { l.off, l.failure, l.config.Checkpoints.SyncGroups.On = "", nil, false })
	eventually(t, "a round without commits", func() string {
		if s := e.Status(); s.Checkpoints < chunkGroups {
			return fmt.Sprintf("%+v", s)
		}
		return ""
	})
	if n := committed(); n != chunkGroups || l.log.Count("level=ERROR") != 0 {
		t.Errorf("%d commits, %s", n, l.log)
	}
}

// What is wrong with one coordinator, or one group, is no trouble of the others.
func TestTroubleStaysWhereItIs(t *testing.T) {
	for name, code := range map[string]*kerr.Error{"denied": kerr.GroupAuthorizationFailed, "loading": kerr.CoordinatorLoadInProgress, "unknown": kerr.UnknownServerError} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t)
			l.mirrors("orders", 1)
			l.source.commit("bad", "orders", 0, 100, "")
			l.source.commit("good", "orders", 0, 100, "")
			var failing atomic.Bool
			failing.Store(true)
			l.source.ControlKey(kmsg.OffsetFetch.Int16(), func(r kmsg.Request) (kmsg.Response, error, bool) {
				l.source.KeepControl()
				req := r.(*kmsg.OffsetFetchRequest)
				if !failing.Load() {
					return nil, nil, false
				}
				for _, g := range req.Groups {
					if g.Group == "bad" && len(req.Groups) == 1 {
						resp := req.ResponseKind().(*kmsg.OffsetFetchResponse)
						answer := kmsg.NewOffsetFetchResponseGroup()
						answer.Group, answer.ErrorCode = g.Group, code.Code
						resp.Groups = append(resp.Groups, answer)
						return resp, nil, true
					}
				}
				return nil, nil, false
			})
			if l.source.CoordinatorFor("bad") == l.source.CoordinatorFor("good") {
				t.Skip("both have the same coordinator")
			}
			e := l.engine()
			l.once(e)
			l.once(e)
			l.has("good", "orders", "100>97")
			l.has("bad", "orders", "")
			if s := e.Status(); s.Unreadable != 1 || s.Deleted != 0 || s.Problem == "" {
				t.Errorf("status %+v", s)
			}
			if said := l.log.Count("DESCRIBE on the group at the source"); (said == 1) != (name == "denied") {
				t.Errorf("the right that is missing is said %d times", said)
			}
			failing.Store(false)
			l.once(e)
			l.has("bad", "orders", "100>97")
			if said, over := l.log.Count("some consumer groups cannot be followed"), l.log.Count("all consumer groups are followed again"); said != 1 || over != 1 {
				t.Errorf("said %d times, and %d times that it is over", said, over)
			}
		})
	}
}

// Groups whose coordinator moves are asked for at the next one at once.
func TestCoordinatorsMove(t *testing.T) {
	l := newSyncLab(t)
	l.mirrors("orders", 1)
	for _, g := range []string{"a", "b", "c", "d", "e"} {
		l.source.commit(g, "orders", 0, 100, "")
	}
	e := l.engine()
	l.once(e)
	for range 3 {
		l.source.RehashCoordinators()
		l.target.RehashCoordinators()
		l.once(e)
		if s := e.Status(); s.Unreadable != 0 || s.Deleted != 0 || s.Problem != "" || held(e) != "" {
			t.Errorf("status %+v", s)
		}
	}
	l.source.commit("c", "orders", 0, 200, "")
	l.source.RehashCoordinators()
	l.target.RehashCoordinators()
	l.once(e)
	l.has("c", "orders", "200>197")
	l.stands("c", "orders", "197/-1/")
}

// Without a mirrored partition nobody is asked; a topic that is mirrored into the topic
// of checkpoints is refused.
func TestNothingToFollow(t *testing.T) {
	l := newLab(t)
	l.source.create("orders", 1)
	l.source.commit("g", "orders", 0, 100, "")
	var requests atomic.Int64
	l.source.ControlKey(kmsg.ListGroups.Int16(), func(kmsg.Request) (kmsg.Response, error, bool) {
		l.source.KeepControl()
		requests.Add(1)
		return nil, nil, false
	})
	e := l.engine()
	l.once(e)
	if n := requests.Load(); n != 0 {
		t.Errorf("%d requests", n)
	}
	l.mirrors("checkpoints.internal", 1)
	if err := e.round(t.Context(), e.o.Config()); err == nil {
		t.Error("checkpoints are written among mirrored records")
	}
}
