package failover

import (
	"context"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"mirror/abi"
	"mirror/plugins"
	"mirror/sidecar/config"
	"mirror/sidecar/status"
)

func newSyncLab(t testing.TB) *lab {
	t.Helper()
	l := newLab(t)
	l.config.Checkpoints.SyncGroups = config.Switch{On: true}
	return l
}

// stands checks what a group has on the target, as offset/epoch/metadata.
func (l *lab) stands(group, topic, want string) {
	l.Helper()
	if got := l.target.committed(group, "A."+topic, 0); got != want {
		l.Errorf("group %s has %q on the target, want %q", group, got, want)
	}
}

func TestGroupsAreSynced(t *testing.T) {
	l := newSyncLab(t)
	l.mirrors("orders", 1)
	l.mirrors("other", 1)
	l.source.commit("g", "orders", 0, 100, "metadata of g")
	l.source.commit("g", "other", 0, 50, "")
	l.source.commit("h", "orders", 0, 10, "")
	e := l.engine()
	l.once(e)
	// The source's leader epoch means nothing on the target.
	l.stands("g", "orders", "97/-1/metadata of g")
	l.stands("g", "other", "47/-1/")
	l.stands("h", "orders", "7/-1/")
	l.has("g", "orders", "100>97 metadata of g")
	if s := e.Status(); s.Committed != 3 || held(e) != "" || !s.SyncGroups {
		t.Errorf("status %+v", s)
	}
	l.once(e)
	// A group that the mirror's own commit has made had no member.
	if s := e.Status(); s.Committed != 3 || s.Crossed != 0 {
		t.Errorf("%d offsets were committed again, %d groups crossed", s.Committed-3, s.Crossed)
	}
	l.source.commit("h", "orders", 0, 11, "")
	l.once(e)
	l.stands("h", "orders", "8/-1/")
	l.source.commit("h", "orders", 0, 11, "other metadata")
	l.once(e)
	l.stands("h", "orders", "8/-1/other metadata")
	if s := e.Status(); s.Crossed != 0 {
		t.Errorf("%d groups crossed", s.Crossed)
	}
}

// Only what is exact or a bound is committed.
func TestWhatIsNotTranslatedIsNotSynced(t *testing.T) {
	l := newSyncLab(t)
	l.mirrors("orders", 1)
	l.source.commit("g", "orders", 0, 100, "")
	l.answers = func(plugins.GroupOffset) plugins.Translation { return none(abi.BeforeFirst) }
	e := l.engine()
	l.once(e)
	l.stands("g", "orders", "")
	if got := held(e); got != "none 1" {
		t.Errorf("held back: %s", got)
	}
	l.answers = func(plugins.GroupOffset) plugins.Translation { return bound(5, abi.InUnknown) }
	l.once(e)
	l.stands("g", "orders", "5/-1/")
}

// A source group that went back is followed by its checkpoint, and not by the group
// on the target; nor is one that has read on there.
func TestGroupsAreNeverMovedBack(t *testing.T) {
	l := newSyncLab(t)
	l.mirrors("orders", 1)
	l.source.commit("g", "orders", 0, 100, "")
	e := l.engine()
	l.once(e)
	l.source.commit("g", "orders", 0, 50, "")
	l.once(e)
	l.has("g", "orders", "50>47")
	l.stands("g", "orders", "97/-1/")
	if got := held(e); got != "ahead 1" {
		t.Errorf("held back: %s", got)
	}
	l.target.commit("g", "A.orders", 0, 200, "") // somebody has read on there
	l.source.commit("g", "orders", 0, 150, "")
	l.once(e)
	l.stands("g", "orders", "200/0/")
	if got := held(e); got != "ahead 1" {
		t.Errorf("held back: %s", got)
	}
	l.source.commit("g", "orders", 0, 300, "")
	l.once(e)
	l.stands("g", "orders", "297/-1/")
	if held(e) != "" {
		t.Errorf("held back: %s", held(e))
	}
}

// Nothing is committed for a group that has members, classic or KIP-848.
func TestGroupsWithMembersAreLeftAlone(t *testing.T) {
	for name, next := range map[string]bool{"classic": false, "consumer": true} {
		t.Run(name, func(t *testing.T) {
			l := newSyncLab(t)
			l.mirrors("orders", 1)
			l.source.commit("g", "orders", 0, 100, "")
			leave := l.target.join("g", "A.orders", next)
			e := l.engine()
			l.once(e)
			l.stands("g", "orders", "")
			if got := held(e); got != "active 1" {
				t.Errorf("held back: %s", got)
			}
			l.has("g", "orders", "100>97") // its checkpoint is written all the same
			leave()
			eventually(t, "an empty group", func() string { l.once(e); return held(e) })
			l.stands("g", "orders", "97/-1/")
		})
	}
}

// join has a member in a group, until it leaves.
func (s *side) join(group, topic string, next bool) (leave func()) {
	s.t.Helper()
	options := []kgo.Opt{kgo.SeedBrokers(s.ListenAddrs()...), kgo.ConsumerGroup(group), kgo.ConsumeTopics(topic), kgo.DisableAutoCommit()}
	if next {
		options = append(options, kgo.ServerSideBalancer())
	}
	c, err := kgo.NewClient(options...)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(c.Close)
	eventually(s.t, "a member", func() string {
		all, err := s.admin.ListGroups(context.Background())
		if err != nil {
			return err.Error()
		}
		g := all[group]
		if want := map[bool]string{false: "classic", true: "consumer"}[next]; g.State != "Stable" || g.GroupType != want {
			return g.State + " " + g.GroupType
		}
		return ""
	})
	return c.Close
}

// A group that has expired on the target is committed again.
func TestGroupsThatExpireAreCommittedAgain(t *testing.T) {
	l := newSyncLab(t)
	l.mirrors("orders", 1)
	l.source.commit("g", "orders", 0, 100, "")
	e := l.engine()
	l.once(e)
	if _, err := l.target.admin.DeleteGroups(t.Context(), "g"); err != nil {
		t.Fatal(err)
	}
	l.once(e)
	l.stands("g", "orders", "97/-1/")
	if s := e.Status(); s.Expired != 1 || s.Committed != 2 || l.log.Count("offsets are gone from the target") != 1 {
		t.Errorf("status %+v", s)
	}
}

// meanwhile does something between the look at groups on the target and the first commit.
func (s *side) meanwhile(do func()) {
	done := false
	s.ControlKey(kmsg.OffsetCommit.Int16(), func(r kmsg.Request) (kmsg.Response, error, bool) {
		s.KeepControl()
		if req := r.(*kmsg.OffsetCommitRequest); done || req.MemberID != "" || req.Generation >= 0 {
			return nil, nil, false
		}
		done = true
		s.SleepControl(do)
		return nil, nil, false
	})
}

// A member that joins between the look and the commit has it refused. That is not
// tried again before the next look.
func TestAMemberThatJoinsMeanwhile(t *testing.T) {
	l := newSyncLab(t)
	l.mirrors("orders", 1)
	l.source.commit("g", "orders", 0, 100, "")
	var leave func()
	l.target.meanwhile(func() { leave = l.target.join("g", "A.orders", false) })
	e := l.engine()
	l.once(e)
	l.stands("g", "orders", "")
	if s := e.Status(); held(e) != "joined 1" || s.Refused[status.HeldJoined] != 1 || s.Problem != "" {
		t.Errorf("status %+v", s)
	}
	l.once(e)
	if s := e.Status(); held(e) != "active 1" || s.Refused[status.HeldJoined] != 1 {
		t.Errorf("status with the member there %+v", s)
	}
	leave()
	eventually(t, "a commit", func() string { l.once(e); return held(e) })
	l.stands("g", "orders", "97/-1/")
}

// One that joins, commits and leaves in between cannot be kept from losing its offset.
// It is noticed and said with the next look, unless the group had members of the classic
// protocol before: then nothing tells.
func TestAMemberThatComesAndGoesMeanwhile(t *testing.T) {
	for _, c := range []struct {
		name         string
		before, next bool // it had members before; they speak KIP-848
	}{{"classic", false, false}, {"consumer", false, true}, {"consumer again", true, true}} {
		t.Run(c.name, func(t *testing.T) {
			l := newSyncLab(t)
			l.mirrors("orders", 1)
			visit := func() {
				l.target.join("g", "A.orders", c.next)()
				eventually(t, "an empty group", func() string {
					if all, err := l.target.admin.ListGroups(t.Context()); err != nil || all["g"].State != "Empty" {
						return all["g"].State
					}
					return ""
				})
			}
			if c.before {
				visit()
			}
			l.source.commit("g", "orders", 0, 100, "")
			l.target.meanwhile(func() {
				visit()
				l.target.commit("g", "A.orders", 0, 150, "")
			})
			e := l.engine()
			l.once(e)
			l.stands("g", "orders", "97/-1/")
			l.once(e)
			l.once(e)
			if s := e.Status(); s.Crossed != 1 || l.log.Count("a member of the group came and went") != 1 {
				t.Errorf("status %+v", s)
			}
			// What comes and goes without one is nothing to say.
			l.source.commit("g", "orders", 0, 101, "")
			l.once(e)
			l.once(e)
			if s := e.Status(); s.Crossed != 1 || s.Committed != 2 {
				t.Errorf("status %+v", s)
			}
		})
	}
}

// What tells, and what does not.
func TestKindsThatTellOfMembers(t *testing.T) {
	none := kind{}
	made, had := kind{typ: "classic"}, kind{typ: "classic", protocol: "consumer"}
	next := func(epoch int32) kind { return kind{"consumer", "consumer", epoch} }
	streams := func(epoch int32) kind { return kind{"streams", "streams", epoch} }
	for _, c := range []struct {
		was, now kind
		want     bool
	}{
		{none, made, false}, // by the mirror's own commit
		{none, had, true},
		{none, streams(2), true},
		{made, made, false},
		{made, had, true},
		{made, next(2), true},
		{made, streams(2), true},
		{had, had, false}, // nothing shows it
		{next(2), next(2), false},
		{next(2), next(4), true},
		{streams(2), streams(2), false},
		{streams(2), streams(4), true},
		{streams(2), streams(0), false}, // it could not be had
		{next(0), next(4), false},
		{streams(2), next(2), true},
	} {
		if got := c.was.visited(c.now); got != c.want {
			t.Errorf("%v, then %v: visited %v", c.was, c.now, got)
		}
	}
}

// Somebody who moves a group back on the target is overruled, and that is said.
func TestGroupsThatAreMovedBackOnTheTarget(t *testing.T) {
	l := newSyncLab(t)
	l.mirrors("orders", 1)
	l.source.commit("g", "orders", 0, 100, "")
	e := l.engine()
	l.once(e)
	l.target.commit("g", "A.orders", 0, 5, "")
	l.once(e)
	l.stands("g", "orders", "97/-1/")
	if l.log.Count("moved back on the target") != 1 {
		t.Error("it is not said")
	}
}

func TestShareGroupsAreLeftAlone(t *testing.T) {
	l := newSyncLab(t)
	l.mirrors("orders", 1)
	l.source.commit("g", "orders", 0, 100, "")
	l.target.share("g", "A.orders")
	l.source.share("shared", "orders")
	e := l.engine()
	l.once(e)
	if got := held(e); got != "share 1" {
		t.Errorf("held back: %s", got)
	}
	if last, n := l.checkpoints(); n != 1 || last["g/A.orders-0"] == "" {
		t.Errorf("checkpoints %v", last)
	}
}

// share makes a share group, with a member.
func (s *side) share(group, topic string) {
	s.t.Helper()
	req := kmsg.NewPtrShareGroupHeartbeatRequest()
	req.GroupID, req.MemberID, req.MemberEpoch, req.SubscribedTopicNames = group, "AAAAAAAAAAAAAAAAAAAAAA", 0, []string{topic}
	eventually(s.t, "a share group", func() string {
		resp, err := req.RequestWith(context.Background(), s.cluster.Client())
		if err == nil {
			err = kerr.ErrorForCode(resp.ErrorCode)
		}
		return textOf(err)
	})
}

// A target topic that is not there, or another one, is trouble of that offset only.
func TestCommitsThatFail(t *testing.T) {
	l := newSyncLab(t)
	l.mirrors("orders", 1)
	l.mirrors("other", 1)
	l.source.commit("g", "orders", 0, 100, "")
	l.source.commit("g", "other", 0, 100, "")
	l.target.ControlKey(kmsg.OffsetCommit.Int16(), func(r kmsg.Request) (kmsg.Response, error, bool) {
		l.target.KeepControl()
		req := r.(*kmsg.OffsetCommitRequest)
		resp := req.ResponseKind().(*kmsg.OffsetCommitResponse)
		for _, rt := range req.Topics {
			t := kmsg.NewOffsetCommitResponseTopic()
			t.Topic, t.TopicID = rt.Topic, rt.TopicID
			p := kmsg.NewOffsetCommitResponseTopicPartition()
			if len(resp.Topics) == 0 {
				p.ErrorCode = kerr.TopicAuthorizationFailed.Code
			}
			t.Partitions = append(t.Partitions, p)
			resp.Topics = append(resp.Topics, t)
		}
		return resp, nil, true
	})
	e := l.engine()
	l.once(e)
	l.once(e)
	s := e.Status()
	if held(e) != "denied 1" || s.Refused[status.HeldDenied] != 2 || s.Problem == "" || l.log.Count("cannot be followed") != 1 {
		t.Errorf("status %+v", s)
	}
}
