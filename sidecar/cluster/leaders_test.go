package cluster

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// follow returns leaders of f that have looked once.
func follow(t *testing.T, f *kfake.Cluster, topics ...string) *Leaders {
	t.Helper()
	l := NewLeaders(open(t, f, nil))
	l.Follow(topics...)
	look(t, l)
	return l
}

func look(t *testing.T, l *Leaders) {
	t.Helper()
	if err := l.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func expectLeader(t *testing.T, l *Leaders, topic string, partition, wantNode, wantEpoch int32) {
	t.Helper()
	node, epoch, ok := l.Leader(topic, partition)
	if node != wantNode || epoch != wantEpoch || ok != (wantNode >= 0) {
		t.Errorf("leader of %s-%d: %d in epoch %d, %t; want %d in epoch %d", topic, partition, node, epoch, ok, wantNode, wantEpoch)
	}
}

func TestLeaders(t *testing.T) {
	f := fake(t, kfake.SeedTopics(1, "other"))
	l := NewLeaders(open(t, f, nil))
	l.Follow("topic", "missing")
	expectLeader(t, l, "topic", 0, -1, -1)
	look(t, l)
	for i := range int32(3) {
		info := f.PartitionInfo("topic", i)
		expectLeader(t, l, "topic", i, info.Leader, info.Epoch)
	}
	expectLeader(t, l, "topic", 3, -1, -1)
	expectLeader(t, l, "topic", -1, -1, -1)
	expectLeader(t, l, "missing", 0, -1, -1)
	expectLeader(t, l, "other", 0, -1, -1) // not followed

	want := f.TopicInfo("topic").TopicID
	if id, ok := l.ID("topic"); !ok || id != want {
		t.Errorf("the id is %x, %t, want %x", id, ok, want)
	}
	if name, ok := l.Name(want); !ok || name != "topic" {
		t.Errorf("the id's name is %q, %t", name, ok)
	}
	if _, ok := l.ID("missing"); ok {
		t.Error("a missing topic has an id")
	}
	var addrs []string
	for node := range int32(3) {
		addr, ok := l.Addr(node)
		if !ok {
			t.Errorf("broker %d has no address", node)
		}
		addrs = append(addrs, addr)
	}
	slices.Sort(addrs)
	listen := f.ListenAddrs()
	slices.Sort(listen)
	if !slices.Equal(addrs, listen) {
		t.Errorf("addresses %v, want %v", addrs, listen)
	}
	if addr, ok := l.Addr(99); ok {
		t.Errorf("broker 99 is at %s", addr)
	}
}

func TestLearn(t *testing.T) {
	f := fake(t)
	l := follow(t, f, "topic")
	node, epoch, _ := l.Leader("topic", 0)
	id, _ := l.ID("topic")

	l.Learn("topic", 0, node+1, epoch)
	expectLeader(t, l, "topic", 0, node, epoch) // not newer
	l.Learn("topic", 0, -1, epoch+1)
	expectLeader(t, l, "topic", 0, node, epoch) // nobody
	l.Learn("topic", 0, 7, epoch+2)
	expectLeader(t, l, "topic", 0, 7, epoch+2)
	l.Learn("topic", 0, 8, epoch+1)
	expectLeader(t, l, "topic", 0, 7, epoch+2) // older
	l.Learn("topic", 9, 7, epoch+2)
	l.Learn("missing", 0, 7, epoch+2)
	expectLeader(t, l, "topic", 9, -1, -1)
	expectLeader(t, l, "missing", 0, -1, -1)
	if now, ok := l.ID("topic"); !ok || now != id {
		t.Errorf("the id became %x", now)
	}

	l.LearnBroker(7, "::1", 9092)
	if addr, _ := l.Addr(7); addr != "[::1]:9092" {
		t.Errorf("broker 7 is at %s", addr)
	}
	if _, ok := l.Addr(0); !ok {
		t.Error("broker 0 was forgotten")
	}

	look(t, l) // the metadata are older than the hint
	expectLeader(t, l, "topic", 0, 7, epoch+2)
	if err := f.DeleteTopic("topic"); err != nil {
		t.Fatal(err)
	}
	if err := f.CreateTopic("topic", 1, nil); err != nil {
		t.Fatal(err)
	}
	look(t, l) // but another topic is another matter
	info := f.PartitionInfo("topic", 0)
	expectLeader(t, l, "topic", 0, info.Leader, info.Epoch)
	if name, ok := l.Name(id); ok {
		t.Errorf("the old id still names %s", name)
	}
}

func TestMovesVanishingsAndForgetting(t *testing.T) {
	f := fake(t, kfake.SeedTopics(1, "other"))
	l := follow(t, f, "topic", "other")
	topicID, _ := l.ID("topic")
	otherID, _ := l.ID("other")

	if err := f.MoveTopicPartition("topic", 1, (f.LeaderFor("topic", 1)+1)%3); err != nil {
		t.Fatal(err)
	}
	look(t, l)
	info := f.PartitionInfo("topic", 1)
	expectLeader(t, l, "topic", 1, info.Leader, info.Epoch)

	if err := f.DeleteTopic("topic"); err != nil {
		t.Fatal(err)
	}
	look(t, l)
	expectLeader(t, l, "topic", 0, -1, -1)
	if _, ok := l.Name(topicID); ok {
		t.Error("the name of a vanished topic is known")
	}
	l.Forget("other")
	expectLeader(t, l, "other", 0, -1, -1)
	if _, ok := l.Name(otherID); ok {
		t.Error("the name of a forgotten topic is known")
	}
	look(t, l)
	expectLeader(t, l, "other", 0, -1, -1)
	if err := f.CreateTopic("topic", 2, nil); err != nil {
		t.Fatal(err)
	}
	look(t, l)
	info = f.PartitionInfo("topic", 1)
	expectLeader(t, l, "topic", 1, info.Leader, info.Epoch)
}

// countMetadata counts the metadata requests of f that name topics; gate, if not nil, is called
// before the answer.
func countMetadata(f *kfake.Cluster, gate func(n int)) func() int {
	var mu sync.Mutex
	n := 0
	f.ControlKey(int16(kmsg.Metadata), func(req kmsg.Request) (kmsg.Response, error, bool) {
		f.KeepControl()
		if len(req.(*kmsg.MetadataRequest).Topics) == 0 {
			return nil, nil, false
		}
		mu.Lock()
		n++
		now := n
		mu.Unlock()
		if gate != nil {
			f.SleepControl(func() { gate(now) })
		}
		return nil, nil, false
	})
	return func() int {
		mu.Lock()
		defer mu.Unlock()
		return n
	}
}

func TestRefreshIsShared(t *testing.T) {
	f := fake(t)
	l := follow(t, f, "topic")
	count := countMetadata(f, nil)
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			if err := l.Refresh(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	// All come within the interval after the first look, unless this machine stood still.
	if n := count(); n < 1 || n > 3 {
		t.Errorf("20 callers took %d requests", n)
	}
}

// TestRefreshSeesWhatWasFollowedBefore follows a topic while a request without it is on its way.
func TestRefreshSeesWhatWasFollowedBefore(t *testing.T) {
	f := fake(t, kfake.SeedTopics(1, "other"))
	l := NewLeaders(open(t, f, nil))
	l.Follow("topic")
	asked, answer := make(chan struct{}), make(chan struct{})
	countMetadata(f, func(n int) {
		if n == 1 {
			close(asked)
			<-answer
		}
	})
	var wg sync.WaitGroup
	wg.Go(func() { look(t, l) })
	<-asked
	l.Follow("other")
	wg.Go(func() { look(t, l) })
	close(answer)
	wg.Wait()
	info := f.PartitionInfo("other", 0)
	expectLeader(t, l, "other", 0, info.Leader, info.Epoch)
}

// TestRefreshOutlivesTheCallerThatAsked has two callers share a question whose asker gives up.
func TestRefreshOutlivesTheCallerThatAsked(t *testing.T) {
	f := fake(t)
	l := NewLeaders(open(t, f, nil))
	l.Follow("topic")
	l.turn <- struct{}{} // as if a request were on its way
	ctx, cancel := context.WithCancel(t.Context())
	asker := make(chan error)
	go func() { asker <- l.Refresh(ctx) }()
	for joined := false; !joined; {
		l.mu.Lock()
		joined = l.coming != nil
		l.mu.Unlock()
	}
	other, gone := make(chan error), make(chan error)
	go func() { other <- l.Refresh(t.Context()) }()
	ended, end := context.WithCancel(t.Context())
	go func() { gone <- l.Refresh(ended) }()
	end()
	if err := <-gone; !errors.Is(err, context.Canceled) {
		t.Errorf("the one who left got %v", err)
	}
	cancel()
	if err := <-asker; !errors.Is(err, context.Canceled) {
		t.Errorf("the asker got %v", err)
	}
	<-l.turn
	if err := <-other; err != nil {
		t.Errorf("the other one got %v", err)
	}
	expectLeader(t, l, "topic", 0, f.LeaderFor("topic", 0), f.PartitionInfo("topic", 0).Epoch)
}

// TestLeadersAreSafe reads while hints and refreshes come, for the race detector.
func TestLeadersAreSafe(t *testing.T) {
	l := follow(t, fake(t), "topic")
	var wg sync.WaitGroup
	for i := range int32(4) {
		wg.Go(func() {
			for j := range int32(200) {
				l.Learn("topic", j%3, i, 100+j)
				l.LearnBroker(100+i, "host", j)
				l.Leader("topic", j%3)
				l.Addr(100 + i)
			}
		})
	}
	wg.Go(func() { look(t, l) })
	wg.Wait()
	if node, epoch, ok := l.Leader("topic", 199%3); !ok || epoch != 299 || node < 0 || node > 3 {
		t.Errorf("the last hint is not known: %d in epoch %d, %t", node, epoch, ok)
	}
}
