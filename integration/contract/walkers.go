package contract

import (
	"context"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// Walkers are consumer groups that go through topics of the source, each at a pace of
// its own, and commit as they go, while a flow takes where they are to the target.
type Walkers struct {
	groups []string
	topics []string
	flow   *Flow
	loads  []*Load
	ends   []func()
	seen   map[sighting]bool
}

// sighting is where a group was on the target, and then on the source.
type sighting struct {
	topic          string
	partition      int32
	source, target int64
}

// Walk starts n groups, and looks again and again at where they are. They end with the
// test, or by Stop.
func (e *Env) Walk(flow Flow, n int, topics ...string) *Walkers {
	e.Helper()
	w := &Walkers{flow: e.flows([]Flow{flow})[0], topics: topics, seen: map[sighting]bool{}}
	for i := range n {
		group := e.Topic(fmt.Sprint("walker-", i))
		w.groups = append(w.groups, group)
		w.walk(group, 20<<(2*i))
	}
	l := &Load{e: e, flush: func() error { return nil }}
	l.run(100*time.Millisecond, func() {
		for _, g := range w.groups {
			w.look(g)
		}
	})
	w.loads = append(w.loads, l)
	return w
}

// stepTime bounds what a walker does at once: brokers may be away.
const stepTime = time.Second

// walk has a group read so many records at a time.
func (w *Walkers) walk(group string, records int) {
	e := w.flow.e
	client := w.flow.Source.Client(e, kgo.ConsumerGroup(group), kgo.ConsumeTopics(w.topics...), kgo.DisableAutoCommit(),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.SessionTimeout(6*time.Second))
	l := &Load{e: e, flush: func() error { return nil }}
	l.run(50*time.Millisecond, func() {
		ctx, cancel := context.WithTimeout(e.ctx, stepTime)
		defer cancel()
		client.PollRecords(ctx, records)
		_ = client.CommitUncommittedOffsets(ctx) // else with the next ones
	})
	w.loads, w.ends = append(w.loads, l), append(w.ends, client.Close)
}

// look notes where a group is, the target first: the group only goes on. What brokers
// do not answer at the moment the next look will find.
func (w *Walkers) look(group string) {
	ctx, cancel := context.WithTimeout(w.flow.e.ctx, stepTime)
	defer cancel()
	target, err := w.flow.Target.admin.FetchOffsets(ctx, group)
	if err != nil {
		return
	}
	source, err := w.flow.Source.admin.FetchOffsets(ctx, group)
	if err != nil {
		return
	}
	for _, t := range w.topics {
		for p, s := range source[t] {
			if now, ok := target.Lookup(w.flow.TargetName(t), p); ok && now.Err == nil && s.Err == nil && now.At >= 0 {
				w.seen[sighting{t, p, s.At, now.At}] = true
			}
		}
	}
}

// Stop ends the groups where they are.
func (w *Walkers) Stop() {
	w.flow.e.Helper()
	for _, l := range w.loads {
		l.Stop()
	}
	for _, end := range w.ends {
		end()
	}
}

// WantFollowed checks, after Stop and once a flow is caught up, that each group is on the
// target where it would go on exactly, and never was seen where it would have lost
// something.
func (w *Walkers) WantFollowed(f *Flow) {
	e := f.e
	e.Helper()
	f.GroupsFollow(w.topics, w.groups)
	copied := map[string][]Copied{}
	for _, t := range w.topics {
		copied[t] = f.Copied(t)
	}
	for s := range w.seen {
		if m := copied[s.topic][s.partition].Moved(s.source, s.target); m.Lost > 0 || m.Ahead > 0 {
			e.Errorf("%s/%d: a group that had got to %d at most was at %d on the target: %v", s.topic, s.partition, s.source, s.target, m)
		}
	}
	if len(w.seen) < 10*len(w.groups) {
		e.Errorf("groups were seen on the target at %d places only", len(w.seen))
	}
	e.Logf("groups were seen on the target at %d places", len(w.seen))
}
