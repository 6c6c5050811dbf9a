package demo

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

const (
	// groupName is the consumer group that fails over.
	groupName = "billing"
	// mostAtHome is how long it reads at the source, where the demo goes on for
	// longer.
	mostAtHome = 5 * time.Second
)

// groupTopics are what it reads: one with transactions too, whose markers and aborted
// records have offsets at the source and none on the target.
var groupTopics = []string{"orders", "payments"}

// group is a consumer group that reads at the source, fails over, and goes on at the
// target. It begins with the first record, and a record has one offset of the target;
// so as far as both sides are equal, which the comparison shows, the number of records
// that it has read at the source is the offset at which it should go on.
type group struct {
	source, target []string // bootstrap addresses
	name           func(topic string) string
	patience       time.Duration // with the mirror, when the group moves

	work   sync.WaitGroup
	stop   func()      // ends the reading, to the end or not
	member *kgo.Client // on the target, nil: it did not get there

	mu         sync.Mutex
	at         string // the cluster that it reads at; "": it is on its way
	partitions map[partition]*groupPartition
	failed     error
}

type partition struct {
	topic  string // at the source
	number int32
}

// groupPartition is what the group has read of a partition.
type groupPartition struct {
	before    int64 // records, at the source
	committed int64 // its offset there; 0: none
	from      int64 // where it went on at the target
	next      int64 // at the target
	after     int64 // records, at the target
	skipped   int64 // of the target's offsets, once it had gone on
}

// lost and repeated are in records.
func (p groupPartition) lost() int64     { return max(0, p.from-p.before) + p.skipped }
func (p groupPartition) repeated() int64 { return max(0, p.before-p.from) }

func newGroup(m Mirror, name func(topic string) string, patience time.Duration) *group {
	g := &group{source: m.Bootstrap(from), target: m.Bootstrap(to), name: name, patience: patience, at: from, partitions: map[partition]*groupPartition{}}
	for _, t := range topics {
		for n := range t.partitions {
			if slices.Contains(groupTopics, t.name) {
				g.partitions[partition{t.name, n}] = &groupPartition{}
			}
		}
	}
	return g
}

// start has the group read at the source until home ends, then at the target until
// finish or, with ctx, at once.
func (g *group) start(ctx, home context.Context) {
	rest, stop := context.WithCancel(ctx)
	g.stop = stop
	g.work.Go(func() {
		err := g.readSource(ctx, home)
		if err == nil {
			err = g.move(ctx)
		}
		if err == nil {
			err = g.readTarget(ctx, rest)
		}
		g.mu.Lock()
		defer g.mu.Unlock()
		g.failed = err
	})
}

// finish has the group read to the end of the target, which takes finishTime at most,
// and waits for that.
func (g *group) finish() {
	g.stop()
	g.work.Wait()
}

// leave ends the membership on the target, once the mirror has ended: to the mirror,
// a member that comes and goes between two of its looks is one to warn of.
func (g *group) leave() {
	if g.member != nil {
		g.member.Close()
	}
}

// behind is how many of so many records of a topic the group has not come to yet; 0 where
// it will not, or does not read them.
func (g *group) behind(topic string, written int64) int {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.failed != nil || !slices.Contains(groupTopics, topic) {
		return 0
	}
	for at, p := range g.partitions {
		if at.topic == topic {
			written -= max(p.before, p.next)
		}
	}
	return int(written)
}

// consumer makes a member of the group that reads topics.
func consumer(brokers []string, topics ...string) (*kgo.Client, error) {
	return kgo.NewClient(kgo.SeedBrokers(brokers...), kgo.ConsumerGroup(groupName), kgo.ConsumeTopics(topics...), kgo.DisableAutoCommit(),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.MetadataMinAge(50*time.Millisecond))
}

// poll reads until a context has ended, which is an error if it is not the second.
func poll(ctx, until context.Context, client *kgo.Client, each func(*kgo.Record)) error {
	for until.Err() == nil && ctx.Err() == nil {
		fetches := client.PollFetches(until)
		if err := fetches.Err(); err != nil && until.Err() == nil {
			return err
		}
		fetches.EachRecord(each)
	}
	return ctx.Err()
}

// readSource reads, and commits when it stops.
func (g *group) readSource(ctx, home context.Context) error {
	client, err := consumer(g.source, groupTopics...)
	if err != nil {
		return err
	}
	defer client.Close()
	began, begin := context.WithTimeout(ctx, flushTime)
	defer begin()
	read := func(r *kgo.Record) {
		g.mu.Lock()
		defer g.mu.Unlock()
		p := g.partitions[partition{r.Topic, r.Partition}]
		p.before++
		p.committed = r.Offset + 1
		begin()
	}
	// Where it takes long to join, it stays for the first record.
	if err := errors.Join(poll(ctx, home, client, read), poll(ctx, began, client, read)); err != nil {
		return err
	}
	stop, cancel := context.WithTimeout(ctx, flushTime)
	defer cancel()
	if err := client.CommitUncommittedOffsets(stop); err != nil {
		return fmt.Errorf("group %s: commit at the source: %w", groupName, err)
	}
	return nil
}

// move waits until the mirror has taken the group's offsets over, as somebody would who
// fails over for an exercise. Where it does not, the group goes on where it is.
func (g *group) move(ctx context.Context) error {
	g.mu.Lock()
	g.at = ""
	for _, p := range g.partitions {
		p.from = 0 // where it has nothing on the target it begins anew
	}
	g.mu.Unlock()
	client, err := kgo.NewClient(kgo.SeedBrokers(g.target...))
	if err != nil {
		return err
	}
	defer client.Close()
	admin := kadm.NewClient(client)
	ctx, cancel := context.WithTimeout(ctx, g.patience)
	defer cancel()
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		offsets, err := admin.FetchOffsets(ctx, groupName)
		if err == nil && g.found(offsets) {
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil
		}
	}
}

// found notes where the group is on the target, and says whether that is where it should
// be.
func (g *group) found(offsets kadm.OffsetResponses) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	there := true
	for at, p := range g.partitions {
		o, ok := offsets.Lookup(g.name(at.topic), at.number)
		if p.from = 0; ok && o.At > 0 {
			p.from = o.At
		}
		there = there && p.from == p.before
	}
	return there
}

// readTarget goes on until rest ends, and then to the end of what is there.
func (g *group) readTarget(ctx, rest context.Context) error {
	var names []string
	for _, t := range groupTopics {
		names = append(names, g.name(t))
	}
	client, err := consumer(g.target, names...)
	if err != nil {
		return err
	}
	g.member = client
	g.mu.Lock()
	g.at = to
	for _, p := range g.partitions {
		p.next = p.from
	}
	g.mu.Unlock()
	read := func(r *kgo.Record) { g.readOn(r) }
	if err := poll(ctx, rest, client, read); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, finishTime)
	defer cancel()
	ends, err := kadm.NewClient(client).ListEndOffsets(ctx, names...)
	if err = errors.Join(err, ends.Error()); err != nil {
		return fmt.Errorf("group %s: the ends of what it reads at the target: %w", groupName, err)
	}
	ended, end := context.WithCancel(ctx)
	defer end()
	if g.reached(ends) {
		return nil
	}
	return poll(ctx, ended, client, func(r *kgo.Record) {
		read(r)
		if g.reached(ends) {
			end()
		}
	})
}

// readOn counts a record of the target.
func (g *group) readOn(r *kgo.Record) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for at, p := range g.partitions {
		if g.name(at.topic) == r.Topic && at.number == r.Partition {
			p.skipped += max(0, r.Offset-p.next)
			p.next = r.Offset + 1
			p.after++
		}
	}
}

// reached says whether the group has read up to the ends of the target's topics.
func (g *group) reached(ends kadm.ListedOffsets) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	for at, p := range g.partitions {
		if end, ok := ends.Lookup(g.name(at.topic), at.number); !ok || p.next < end.Offset {
			return false
		}
	}
	return true
}
