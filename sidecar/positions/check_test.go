package positions

import (
	"context"
	"errors"
	"maps"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"
)

func TestCheckSaysWhatThePolicyIs(t *testing.T) {
	for policy, fine := range map[string]bool{"compact": true, "delete": false, "compact,delete": false} {
		tg := newTarget(t, kfake.SeedTopics(3, "x"))
		if err := tg.CreateTopic(topic, 3, map[string]string{"cleanup.policy": policy}); err != nil {
			t.Fatal(err)
		}
		s := tg.open(t)
		renewed, err := s.Check(t.Context())
		if renewed {
			t.Errorf("%s: it is said to be another topic", policy)
		}
		if fine {
			if err != nil {
				t.Errorf("%s: %v", policy, err)
			}
			continue
		}
		if !errors.Is(err, ErrCleanupPolicy) {
			t.Errorf("%s: got %v, want ErrCleanupPolicy", policy, err)
			continue
		}
		for _, part := range []string{topic, `cluster "B"`, `"` + policy + `"`, "--entity-name " + topic + " --add-config cleanup.policy=compact"} {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("%q does not say %s", err, part)
			}
		}
		// And it works all the same.
		want := map[Key]Position{{"t", 0}: full}
		if err := s.Save(t.Context(), want); err != nil {
			t.Fatal(err)
		}
		wantLoad(t, s, want)
	}
}

func TestCheckWithoutTheRightToRead(t *testing.T) {
	tg := newTarget(t)
	s := tg.open(t)
	tg.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.DescribeConfigs}, Err: kerr.TopicAuthorizationFailed, Count: -1})
	for range 2 {
		if renewed, err := s.Check(t.Context()); renewed || err != nil {
			t.Fatal(renewed, err)
		}
	}
	if n := strings.Count(tg.log.String(), "allow DescribeConfigs"); n != 1 {
		t.Errorf("what to allow is logged %d times: %s", n, tg.log)
	}
}

// A topic that is deleted while it is used is made again, and one that somebody
// else has made is noticed; both can be written to and watched.
func TestCheckMakesTheTopicAgain(t *testing.T) {
	for name, theirs := range map[string]bool{"gone": false, "another": true} {
		t.Run(name, func(t *testing.T) {
			tg := newTarget(t)
			s := tg.open(t)
			one := map[Key]Position{{"t", 0}: full}
			if err := s.Save(t.Context(), one); err != nil {
				t.Fatal(err)
			}
			wantLoad(t, s, one)
			taken := make(chan Key, 10)
			ctx, cancel := context.WithCancel(t.Context())
			watched := make(chan error)
			go func() { watched <- s.Watch(ctx, func(k Key) { taken <- k }) }()
			if renewed, err := s.Check(t.Context()); renewed || err != nil {
				t.Fatal(renewed, err)
			}
			if err := tg.DeleteTopic(topic); err != nil {
				t.Fatal(err)
			}
			if theirs {
				if err := tg.CreateTopic(topic, 4, map[string]string{"cleanup.policy": "compact"}); err != nil {
					t.Fatal(err)
				}
			}
			if renewed, err := s.Check(t.Context()); !renewed || err != nil {
				t.Fatalf("renewed %v, %v", renewed, err)
			}
			if renewed, err := s.Check(t.Context()); renewed || err != nil {
				t.Fatalf("the second time renewed %v, %v", renewed, err)
			}
			wantLoad(t, s, map[Key]Position{})
			if err := s.Save(t.Context(), one); err != nil {
				t.Fatal(err)
			}
			if err := s.Claim(t.Context(), []Key{{"t", 0}, {"t", 1}}); err != nil {
				t.Fatal(err)
			}
			wantLoad(t, s, one)

			other := tg.open(t)
			wantLoad(t, other, one) // as who goes on does first; it makes it the successor
			if err := other.Claim(t.Context(), []Key{{"t", 1}}); err != nil {
				t.Fatal(err)
			}
			if k := <-taken; k != (Key{"t", 1}) {
				t.Errorf("%v is taken, want t-1", k)
			}
			for s, want := range map[*Store]map[Key]bool{s: {{"t", 1}: true}, other: {{"t", 0}: true}} {
				if got, err := s.Claimed(t.Context()); err != nil || !maps.Equal(got, want) {
					t.Errorf("claimed by others: %v, %v; want %v", got, err, want)
				}
			}
			cancel()
			if err := <-watched; err != nil {
				t.Error(err)
			}
		})
	}
}

// A broker that does not know a topic for a moment has not lost it.
func TestCheckIsNotFooled(t *testing.T) {
	tg := newTarget(t)
	s := tg.open(t)
	if renewed, err := s.Check(t.Context()); renewed || err != nil {
		t.Fatal(renewed, err)
	}
	tg.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Metadata}, Topic: topic, Err: kerr.UnknownTopicOrPartition})
	for range 2 {
		if renewed, err := s.Check(t.Context()); renewed || err != nil {
			t.Fatal(renewed, err)
		}
	}
}
