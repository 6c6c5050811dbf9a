package state

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"go.uber.org/goleak"

	"mirror/plugins"
	"mirror/sidecar/cluster"
	"mirror/sidecar/config"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const topic = "mm2-plugin-state.A.p.internal"

// lab is a fake target, and what is logged.
type lab struct {
	*testing.T
	*kfake.Cluster
	client *cluster.Cluster
	log    bytes.Buffer // to be read when nothing writes
}

func newLab(t *testing.T) *lab {
	t.Helper()
	l := &lab{T: t}
	var err error
	if l.Cluster, err = kfake.NewCluster(kfake.NumBrokers(2)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.Cluster.Close)
	if l.client, err = cluster.Open(config.Cluster{Alias: "B", Bootstrap: l.ListenAddrs(), ClientID: "mirror"}, slog.New(slog.DiscardHandler)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.client.Close)
	return l
}

func (l *lab) options() Options {
	return Options{Cluster: l.client, Name: topic, Schema: "v1", Log: slog.New(slog.NewTextHandler(&l.log, nil))}
}

func (l *lab) open() *Topic {
	l.Helper()
	s, err := Open(l.Context(), l.options())
	if err != nil {
		l.Fatal(err)
	}
	l.T.Cleanup(s.Close)
	return s
}

var ids = [16]byte{1}

// set is changes of one partition: keys and values in turn; "-" removes.
func set(partition int32, pairs ...string) (all []plugins.Change) {
	for i := 0; i < len(pairs); i += 2 {
		c := plugins.Change{Key: plugins.Key{Topic: "t", Partition: partition}, TopicID: ids, Name: []byte(pairs[i])}
		if pairs[i+1] != "-" {
			c.Value = []byte(pairs[i+1])
		}
		all = append(all, c)
	}
	return all
}

func (l *lab) write(s *Topic, changes ...plugins.Change) {
	l.Helper()
	if err := s.Write(l.Context(), changes); err != nil {
		l.Fatal(err)
	}
}

// has compares what a store keeps of a partition.
func (l *lab) has(s *Topic, partition int32, want ...string) {
	l.Helper()
	got := []string{}
	for key, value := range s.Take(plugins.Key{Topic: "t", Partition: partition}).Pairs() {
		got = append(got, string(key), string(value))
	}
	if !slices.Equal(got, want) {
		l.Errorf("partition %d has %q, want %q", partition, got, want)
	}
}

// doubts are the keys of a partition that are to be written again.
func (s *Topic) doubts(partition int32) []string {
	return slices.Sorted(slices.Values(s.of(plugins.Key{Topic: "t", Partition: partition}).Doubted()))
}

// What is written is there for the next process; without it there is no topic.
func TestKept(t *testing.T) {
	l := newLab(t)
	s := l.open()
	l.has(s, 0)
	if l.TopicInfo(topic) != nil {
		t.Fatal("a topic was made and nothing was written")
	}
	l.write(s, set(0, "b", "2", "a", "1", "c", "3")...)
	l.write(s, set(1, "a", "x")...)
	l.write(s, set(0, "b", "-", "a", "", "d", strings.Repeat("d", 100_000))...)
	s = l.open()
	l.has(s, 0, "a", "", "c", "3", "d", strings.Repeat("d", 100_000))
	l.has(s, 1, "a", "x")
	l.has(s, 2)
	if id := s.Take(plugins.Key{Topic: "t"}).TopicID(); id != ids {
		t.Errorf("it is of topic %v", id)
	}
	info := l.TopicInfo(topic)
	if len(s.next) != Partitions || *info.Configs["cleanup.policy"] != "compact" || *info.Configs["segment.bytes"] != "4194304" || *info.Configs["max.message.bytes"] != "1048588" {
		t.Errorf("%d partitions, %v", len(s.next), info.Configs)
	}
}

// Records of other schemas, and those that are no state, are passed over.
func TestOthers(t *testing.T) {
	l := newLab(t)
	l.write(l.open(), set(0, "a", "1")...)
	o := l.options()
	o.Schema = "v2"
	other, err := Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	l.has(other, 0)
	l.write(other, set(0, "a", "2")...)
	w := cluster.NewWriter(l.client, kgo.RecordPartitioner(kgo.ManualPartitioner()))
	defer w.Close()
	if err := w.Write(t.Context(), []*kgo.Record{{Topic: topic, Value: []byte("garbage")}}, func(context.Context, string) error { return nil }); err != nil {
		t.Fatal(err)
	}
	l.log.Reset()
	l.has(l.open(), 0, "a", "1")
	for _, want := range []string{"keys of other schemas, which are left alone", "passed over records that are no plugin's state"} {
		if strings.Count(l.log.String(), want) != 1 || !strings.Contains(l.log.String(), "records=1") {
			t.Errorf("no %q in %s", want, &l.log)
		}
	}
}

// A mirror that has been replaced cannot spoil what its successor keeps, and learns
// that it has been.
func TestAPredecessorThatStillWrites(t *testing.T) {
	l := newLab(t)
	old := l.open()
	l.write(old, set(0, "a", "1", "b", "1")...)
	next := l.open()
	next.run.opened = 0                 // its clock is behind
	l.write(old, set(0, "c", "old")...) // the successor has not written yet: it has to find this
	l.write(next, set(0, "a", "2")...)
	if d := next.doubts(0); !slices.Equal(d, []string{"c"}) {
		t.Errorf("to be written again: %v", d)
	}
	if err := old.Write(t.Context(), set(0, "a", "old", "d", "old")); !errors.Is(err, ErrTakenOver) {
		t.Errorf("it may go on: %v", err)
	}
	// A third one does not read it, and writes again what it has hidden.
	third := l.open()
	l.has(third, 0, "a", "2", "b", "1", "c", "old")
	if d := third.doubts(0); !slices.Equal(d, []string{"a", "d"}) {
		t.Errorf("to be written again by the third: %v", d)
	}
	l.write(next, set(0, "b", "2")...)
	if d := next.doubts(0); !slices.Equal(d, []string{"a", "c", "d"}) {
		t.Errorf("to be written again: %v", d)
	}
	l.has(l.open(), 0, "a", "2", "b", "2", "c", "old")
}

// Two mirrors of one flow that copy different topics at once do not disturb each other,
// and one that takes a partition over goes on with what the other left.
func TestMirrorsSideBySide(t *testing.T) {
	l := newLab(t)
	a, b := l.open(), l.open()
	one, two := plugins.Key{Topic: "t"}, plugins.Key{Topic: "t", Partition: sameAs(0)}
	a.Take(one)
	b.Take(two)
	for i := range 5 {
		l.write(a, set(one.Partition, "n", fmt.Sprint(i))...)
		l.write(b, set(two.Partition, "n", fmt.Sprint(i))...)
	}
	if d := slices.Concat(a.doubts(one.Partition), b.doubts(two.Partition)); len(d) > 0 {
		t.Errorf("doubts without a reason: %v", d)
	}
	next := l.open()
	l.has(next, one.Partition, "n", "4")
	l.has(next, two.Partition, "n", "4")
	elsewhere := one.Partition + 1
	for partitionOf(plugins.Key{Topic: "t", Partition: elsewhere}) == partitionOf(one) {
		elsewhere++
	}
	l.write(b, set(elsewhere, "n", "0")...) // a writes nothing there
	l.write(a, set(one.Partition, "n", "4")...)
	l.write(b, set(two.Partition, "n", "4")...)
	l.write(a, set(one.Partition, "n", "4")...)
	l.has(a, elsewhere, "n", "0")
	if next := l.open().next; !maps.Equal(a.next, next) {
		t.Errorf("read to %v of %v: the next look reads the same again", a.next, next)
	}

	l.write(a, set(one.Partition, "n", "5")...) // it sees what the other has written last
	b.Give(two)
	a.Take(two)
	l.has(a, two.Partition, "n", "4")
	l.write(a, set(two.Partition, "n", "of the first")...)
	l.has(l.open(), two.Partition, "n", "of the first")
	// The other was not told to leave it: it learns that it has been replaced.
	b.Take(two)
	if err := b.Write(t.Context(), set(two.Partition, "n", "late")); !errors.Is(err, ErrTakenOver) {
		t.Errorf("it may go on: %v", err)
	}
}

// sameAs is another source partition in the same partition of the topic.
func sameAs(partition int32) int32 {
	n := partition + 1
	for partitionOf(plugins.Key{Topic: "t", Partition: n}) != partitionOf(plugins.Key{Topic: "t", Partition: partition}) {
		n++
	}
	return n
}

// A request that a broker finishes after it was given up does not count either.
func TestALateRequest(t *testing.T) {
	l := newLab(t)
	s := l.open()
	l.write(s, set(0, "a", "1")...)
	late := record(topic, "v1", set(0, "a", "late")[0], s.run)
	l.write(s, set(0, "a", "2")...)
	w := cluster.NewWriter(l.client, kgo.RecordPartitioner(kgo.ManualPartitioner()))
	defer w.Close()
	if err := w.Write(t.Context(), []*kgo.Record{late}, func(context.Context, string) error { return nil }); err != nil {
		t.Fatal(err)
	}
	l.has(l.open(), 0, "a", "2")
	l.write(s, set(0, "b", "1")...)
	if d := s.doubts(0); !slices.Equal(d, []string{"a"}) {
		t.Errorf("to be written again: %v", d)
	}
}

// What cannot be written is an error; what of it is there is not told from what is not.
func TestAWriteThatFails(t *testing.T) {
	l := newLab(t)
	s := l.open()
	l.write(s, set(0, "a", "1")...)
	fault := l.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Err: kerr.TopicAuthorizationFailed, Count: 1})
	defer fault.Remove()
	if err := s.Write(t.Context(), set(0, "a", "2")); err == nil || !strings.Contains(err.Error(), `write state in topic "mm2-plugin-state.A.p.internal" on cluster "B"`) {
		t.Errorf("%v", err)
	}
	l.write(s, set(0, "a", "3")...)
	l.has(l.open(), 0, "a", "3")
}

// A topic that is deleted is made again, and all is written to it again.
func TestATopicThatIsDeleted(t *testing.T) {
	l := newLab(t)
	s := l.open()
	l.write(s, set(0, "a", "1")...)
	l.write(s, set(1, "a", "1")...)
	s = l.open()
	if err := l.DeleteTopic(topic); err != nil {
		t.Fatal(err)
	}
	other := int32(2) // one that the topic had nothing of, so that its offset does not tell
	for s.next[partitionOf(plugins.Key{Topic: "t", Partition: other})] > 0 {
		other++
	}
	// The first write may find the one that was. What is written to the new one fails all
	// the same, so that whoever keeps state writes all of it before a position is saved.
	tries := 0
	for ; tries < 4; tries++ {
		err := s.Write(t.Context(), set(other, "b", "1"))
		if err == nil {
			break
		}
		if d := s.doubts(0); errors.Is(err, errAnother) != slices.Equal(d, []string{"a"}) {
			t.Errorf("%v, and to be written again: %v", err, d)
		}
	}
	if tries == 0 || tries == 4 {
		t.Errorf("it succeeds after %d failures", tries)
	}
	for n := range int32(2) {
		if d := s.doubts(n); !slices.Equal(d, []string{"a"}) {
			t.Errorf("to be written again of partition %d: %v", n, d)
		}
	}
	l.has(l.open(), other, "b", "1")
}

func TestATopicThatIsNotFit(t *testing.T) {
	l := newLab(t)
	if err := l.CreateTopic(topic, 1, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(t.Context(), l.options()); err == nil || !strings.Contains(err.Error(), "it has one partition and needs 4") {
		t.Errorf("%v", err)
	}
	if err := errors.Join(l.DeleteTopic(topic), l.CreateTopic(topic, 6, map[string]string{"cleanup.policy": "delete"})); err != nil {
		t.Fatal(err)
	}
	s := l.open()
	l.write(s, set(0, "a", "1")...)
	if err := s.Read(t.Context()); err != nil {
		t.Error(err)
	}
	if n := strings.Count(l.log.String(), "is not compacted"); n != 1 {
		t.Errorf("it is said %d times:\n%s", n, &l.log)
	}
	l.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Fetch}, Err: kerr.TopicAuthorizationFailed, Count: -1})
	if _, err := Open(t.Context(), l.options()); err == nil || !strings.Contains(err.Error(), "allow Read and Write on it") {
		t.Errorf("%v", err)
	}
}

// A look that fails half way has not read what it took for somebody else's.
func TestALookThatFailsHalfWay(t *testing.T) {
	l := newLab(t)
	s, old := l.open(), l.open()
	keys := 40 // in all partitions, which two brokers lead
	for n := range int32(keys) {
		l.write(old, set(n, "a", "1", "b", "1")...)
		l.write(old, set(n, "a", "2")...)
	}
	ctx, cancel := context.WithCancel(t.Context())
	fetches := 0
	l.ControlKey(int16(kmsg.Fetch), func(kmsg.Request) (kmsg.Response, error, bool) {
		l.KeepControl()
		if fetches++; fetches == 2 {
			cancel()
		}
		return nil, nil, false
	})
	if err := s.Read(ctx); !errors.Is(err, context.Canceled) {
		t.Fatalf("%v after %d fetches", err, fetches)
	}
	if len(s.seen) == 0 || len(s.seen) == keys {
		t.Fatalf("it has read %d partitions of %d: not half", len(s.seen), keys)
	}
	if err := s.Read(t.Context()); err != nil {
		t.Fatal(err)
	}
	for n := range int32(keys) {
		l.has(s, n, "a", "2", "b", "1")
		if d := s.doubts(n); len(d) != 0 {
			t.Errorf("to be written again of partition %d: %v", n, d)
		}
	}
}

// Several lanes write at once.
func TestLanes(t *testing.T) {
	l := newLab(t)
	s := l.open()
	done := make(chan error)
	for n := range int32(8) {
		go func() {
			var err error
			for i := range 20 {
				err = errors.Join(err, s.Write(t.Context(), set(n, "n", fmt.Sprint(i), "last", fmt.Sprint(i))))
			}
			done <- err
		}()
	}
	for range 8 {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	next := l.open()
	for n := range int32(8) {
		l.has(next, n, "last", "19", "n", "19")
		if d := s.doubts(n); len(d) > 0 {
			t.Errorf("doubts without a reason: %v", d)
		}
	}
	used := map[int32]bool{}
	for k := range next.seen {
		used[partitionOf(k)] = true
	}
	if len(used) != Partitions {
		t.Errorf("partitions %v are used", used)
	}
}
