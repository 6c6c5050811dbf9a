package groups

import (
	"context"
	"fmt"
	"maps"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"mirror/integration/watch"
)

// streams has the cluster coordinate Streams groups with these epochs, which it does not
// know by itself.
func (l *lab) streams(epochs map[string]int32) {
	l.t.Helper()
	known, err := kmsg.NewPtrApiVersionsRequest().RequestWith(l.t.Context(), l.cluster.Client())
	if err != nil {
		l.t.Fatal(err)
	}
	describe := kmsg.NewApiVersionsResponseApiKey()
	describe.ApiKey = kmsg.StreamsGroupDescribe.Int16()
	known.ApiKeys = append(known.ApiKeys, describe)
	l.ControlKey(kmsg.ApiVersions.Int16(), func(r kmsg.Request) (kmsg.Response, error, bool) {
		l.KeepControl()
		versions := *known
		versions.Version = r.GetVersion()
		return &versions, nil, true
	})
	l.ControlKey(describe.ApiKey, func(r kmsg.Request) (kmsg.Response, error, bool) {
		l.KeepControl()
		resp := r.ResponseKind().(*kmsg.StreamsGroupDescribeResponse)
		for _, name := range r.(*kmsg.StreamsGroupDescribeRequest).Groups {
			g := kmsg.NewStreamsGroupDescribeResponseGroup()
			g.Group = name
			epoch, ok := epochs[name]
			switch {
			case l.CoordinatorFor(name) != l.CurrentNode():
				g.ErrorCode = kerr.NotCoordinator.Code
			case !ok:
				g.ErrorCode = kerr.GroupIDNotFound.Code
			default:
				g.Epoch = epoch
			}
			resp.Groups = append(resp.Groups, g)
		}
		return resp, nil, true
	})
	l.open() // one that knows
}

// Epochs are had of each kind of group that has any, from its coordinator: after that
// has moved with the look after the next.
func TestEpochs(t *testing.T) {
	l := newLab(t)
	want := map[string]int32{"s1": 1, "s2": 12, "s3": 123, "s4": 1234}
	l.streams(maps.Clone(want))
	member, err := kgo.NewClient(kgo.SeedBrokers(l.ListenAddrs()...), kgo.ConsumerGroup("next"), kgo.ConsumeTopics("t"), kgo.ServerSideBalancer())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(member.Close)
	watch.Until(t, "a member", func() string {
		if all, err := l.List(context.Background()); err != nil || all["next"].State != "Stable" {
			return fmt.Sprintf("%+v, %v", all["next"], err)
		}
		return ""
	})
	asked := []Group{{Name: "next", Type: "consumer"}, {Name: "old", Type: "classic"}, {Name: "gone", Type: "streams"}}
	for name := range want {
		asked = append(asked, Group{Name: name, Type: "streams"})
	}
	for range 3 {
		l.Epochs(t.Context(), asked)
		got := l.Epochs(t.Context(), asked)
		if want["next"] = got["next"]; want["next"] < 1 || !maps.Equal(got, want) {
			t.Errorf("epochs %v, want %v", got, want)
		}
		delete(want, "next")
		found := l.count(kmsg.FindCoordinator)
		if got := l.Epochs(t.Context(), asked[1:2]); len(got) != 0 || found.Load() != 0 {
			t.Errorf("a classic group has epochs %v, asked for with %d requests", got, found.Load())
		}
		l.RehashCoordinators()
	}
}
