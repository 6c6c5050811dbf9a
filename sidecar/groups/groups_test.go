package groups

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/kversion"
	"go.uber.org/goleak"

	"mirror/sidecar/cluster"
	"mirror/sidecar/config"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// lab is a client of a cluster in this process, with three brokers and a topic.
type lab struct {
	*kfake.Cluster
	*Client
	t      *testing.T
	topics Topics
}

func newLab(t *testing.T, opts ...kfake.Opt) *lab {
	t.Helper()
	k, err := kfake.NewCluster(append(opts, kfake.NumBrokers(3), kfake.SeedTopics(4, "t", "other"))...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(k.Close)
	l := &lab{Cluster: k, t: t, topics: Topics{Names: map[string]bool{"t": true}, ByID: map[[16]byte]string{}}}
	l.open()
	l.topics.ByID[l.id("t")] = "t"
	return l
}

// open begins with another client.
func (l *lab) open() {
	l.t.Helper()
	c, err := cluster.Open(config.Cluster{Alias: "A", Bootstrap: l.ListenAddrs(), ClientID: "test"}, slog.New(slog.DiscardHandler))
	if err != nil {
		l.t.Fatal(err)
	}
	l.t.Cleanup(c.Close)
	l.Client = New(c)
}

func (l *lab) id(topic string) [16]byte {
	l.t.Helper()
	found, err := l.cluster.Topics(context.Background(), []string{topic})
	if err != nil {
		l.t.Fatal(err)
	}
	return found[topic].ID
}

func (l *lab) offset(topic string, partition int32, offset int64) Offset {
	return Offset{Topic: topic, TopicID: l.id(topic), Partition: partition, Offset: offset, LeaderEpoch: -1, Metadata: "m" + topic}
}

func (l *lab) commit(group string, offsets ...Offset) {
	l.t.Helper()
	if err := errors.Join(l.Commit(context.Background(), group, offsets)...); err != nil {
		l.t.Fatal(err)
	}
}

// read is what groups have committed, in words.
func (l *lab) read(names ...string) (all []string) {
	l.t.Helper()
	for i, c := range l.Fetch(context.Background(), names, l.topics) {
		var words []string
		for _, o := range c.Offsets {
			words = append(words, fmt.Sprintf("%s-%d %d/%d %s", o.Topic, o.Partition, o.Offset, o.LeaderEpoch, o.Metadata))
		}
		slices.Sort(words)
		if c.Err != nil {
			words = append(words, c.Err.Error())
		}
		all = append(all, names[i]+": "+strings.Join(words, ", "))
	}
	return all
}

func (l *lab) reads(want map[string]string) {
	l.t.Helper()
	var names []string
	for name := range want {
		names = append(names, name)
	}
	slices.Sort(names)
	for i, got := range l.read(names...) {
		if want := names[i] + ": " + want[names[i]]; got != want {
			l.t.Errorf("got  %s\nwant %s", got, want)
		}
	}
}

// count counts requests of a key.
func (l *lab) count(key kmsg.Key) *atomic.Int64 {
	var n atomic.Int64
	l.ControlKey(key.Int16(), func(kmsg.Request) (kmsg.Response, error, bool) {
		l.KeepControl()
		n.Add(1)
		return nil, nil, false
	})
	return &n
}

// Committed and read again, on brokers of any age, with few requests where they can.
func TestCommitAndFetch(t *testing.T) {
	for _, c := range []struct {
		name     string
		versions *kversion.Versions
		fetches  int64 // most requests to read all
	}{
		{"now", nil, 3},
		{"3.9, by names", kversion.V3_9_0(), 3},
		{"2.8, one by one", kversion.V2_8_0(), 10},
		{"0.11", kversion.V0_11_0(), 10},
	} {
		t.Run(c.name, func(t *testing.T) {
			var opts []kfake.Opt
			if c.versions != nil {
				opts = append(opts, kfake.MaxVersions(c.versions))
			}
			l := newLab(t, opts...)
			want := map[string]string{"nobody": ""}
			for i := range int64(10) {
				group := fmt.Sprintf("g%d", i)
				l.commit(group, l.offset("t", 0, 10+i), l.offset("t", 3, 20+i), l.offset("other", 0, 30))
				want[group] = fmt.Sprintf("t-0 %d/-1 mt, t-3 %d/-1 mt", 10+i, 20+i)
			}
			l.commit("elsewhere", l.offset("other", 1, 5))
			want["elsewhere"] = ""
			l.reads(want) // which finds whose is whose
			listed, err := l.List(t.Context())
			if err != nil || len(listed) != 11 || listed["g3"].Active() || listed["g3"].Share() {
				t.Errorf("listed %v, %v", listed, err)
			}
			delete(want, "nobody")
			delete(want, "elsewhere")
			found, fetched := l.count(kmsg.FindCoordinator), l.count(kmsg.OffsetFetch)
			l.reads(want)
			if found.Load() != 0 || fetched.Load() > c.fetches {
				t.Errorf("%d requests for coordinators, %d for offsets", found.Load(), fetched.Load())
			}
		})
	}
}

// A coordinator that has moved is followed at once, and nothing is committed twice.
func TestCoordinatorsThatMove(t *testing.T) {
	l := newLab(t)
	want := map[string]string{}
	for i := range 10 {
		group := fmt.Sprintf("g%d", i)
		l.commit(group, l.offset("t", 0, 1))
		want[group] = "t-0 1/-1 mt"
	}
	for range 4 {
		l.RehashCoordinators()
		l.reads(want)
		l.RehashCoordinators()
		l.commit("g3", l.offset("t", 0, 7))
		want["g3"] = "t-0 7/-1 mt"
	}
}

// A coordinator that is loading, or away, is not waited for: that is its groups' trouble.
func TestTroubleOfOneCoordinator(t *testing.T) {
	l := newLab(t)
	for i := range 10 {
		l.commit(fmt.Sprintf("g%d", i), l.offset("t", 0, 1))
	}
	bad := l.CoordinatorFor("g0")
	for name, answer := range map[string]func(r *kmsg.OffsetFetchRequest) (kmsg.Response, error, bool){
		"loading": func(r *kmsg.OffsetFetchRequest) (kmsg.Response, error, bool) {
			resp := r.ResponseKind().(*kmsg.OffsetFetchResponse)
			for _, g := range r.Groups {
				rg := kmsg.NewOffsetFetchResponseGroup()
				rg.Group, rg.ErrorCode = g.Group, kerr.CoordinatorLoadInProgress.Code
				resp.Groups = append(resp.Groups, rg)
			}
			return resp, nil, true
		},
		"cut off": func(*kmsg.OffsetFetchRequest) (kmsg.Response, error, bool) { return nil, errors.New("cut"), true },
	} {
		t.Run(name, func(t *testing.T) {
			var on atomic.Bool
			on.Store(true)
			var asked atomic.Int64
			l.ControlKey(kmsg.OffsetFetch.Int16(), func(r kmsg.Request) (kmsg.Response, error, bool) {
				l.KeepControl()
				if req := r.(*kmsg.OffsetFetchRequest); on.Load() && l.CoordinatorFor(req.Groups[0].Group) == bad {
					asked.Add(1)
					return answer(req)
				}
				return nil, nil, false
			})
			for i, c := range l.Fetch(t.Context(), []string{"g0", "g1", "g2", "g3", "g4", "g5"}, l.topics) {
				if failed := l.CoordinatorFor(fmt.Sprintf("g%d", i)) == bad; (c.Err != nil) != failed {
					t.Errorf("g%d: %v", i, c.Err)
				}
			}
			if most := map[string]int64{"loading": 1, "cut off": 3}[name]; asked.Load() > most {
				t.Errorf("asked %d times", asked.Load())
			}
			on.Store(false)
			l.reads(map[string]string{"g0": "t-0 1/-1 mt"})
		})
	}
}

// A connection that has ended is no trouble for who reads. Who commits does not know
// whether that was done, and leaves it to the next look.
func TestAConnectionThatEnds(t *testing.T) {
	l := newLab(t)
	l.commit("g", l.offset("t", 0, 1))
	if _, err := l.List(t.Context()); err != nil { // so that there are connections
		t.Fatal(err)
	}
	for _, key := range []kmsg.Key{kmsg.ListGroups, kmsg.OffsetFetch, kmsg.OffsetCommit} {
		l.ControlKey(key.Int16(), func(kmsg.Request) (kmsg.Response, error, bool) { return nil, errors.New("cut"), true })
	}
	if listed, err := l.List(t.Context()); err != nil || len(listed) != 1 {
		t.Errorf("listed %v, %v", listed, err)
	}
	l.reads(map[string]string{"g": "t-0 1/-1 mt"})
	if err := l.Commit(t.Context(), "g", []Offset{l.offset("t", 0, 2)})[0]; err == nil {
		t.Error("committed twice")
	}
	l.reads(map[string]string{"g": "t-0 1/-1 mt"})
	l.commit("g", l.offset("t", 0, 3))
	l.reads(map[string]string{"g": "t-0 3/-1 mt"})
}

func TestErrorsByKind(t *testing.T) {
	for _, c := range []struct {
		err                   error
		moved, denied, joined bool
	}{
		{kerr.NotCoordinator, true, false, false},
		{kerr.CoordinatorLoadInProgress, true, false, false},
		{kerr.GroupAuthorizationFailed, false, true, false},
		{kerr.TopicAuthorizationFailed, false, true, false},
		{kerr.UnknownMemberID, false, false, true},
		{kerr.RebalanceInProgress, false, false, true},
		{kerr.UnknownTopicOrPartition, false, false, false},
		{nil, false, false, false},
	} {
		if Moved(c.err) != c.moved || Denied(c.err) != c.denied || Joined(c.err) != c.joined {
			t.Errorf("%v: %v, %v, %v", c.err, Moved(c.err), Denied(c.err), Joined(c.err))
		}
	}
}

func TestStates(t *testing.T) {
	for _, c := range []struct {
		Group
		active, share, epoch bool
	}{
		{Group{State: "Empty", Type: "classic"}, false, false, false},
		{Group{State: "Dead"}, false, false, false},
		{Group{State: ""}, false, false, false}, // not told: the coordinator refuses what must not be
		{Group{State: "Stable", Type: "consumer"}, true, false, true},
		{Group{State: "PreparingRebalance"}, true, false, false},
		{Group{State: "Empty", Type: "share"}, false, true, false},
		{Group{State: "NotReady", Type: "streams", Protocol: "streams"}, true, false, true}, // it has members, and lacks topics
		{Group{State: "Empty", Type: "streams", Protocol: "streams"}, false, false, true},
	} {
		if c.Active() != c.active || c.Share() != c.share || c.HasEpoch() != c.epoch {
			t.Errorf("%+v: active %v, share %v, epoch %v", c.Group, c.Active(), c.Share(), c.HasEpoch())
		}
	}
}
