package pipeline

import (
	"context"
	"slices"
	"time"

	"mirror/sidecar/policy"
	"mirror/sidecar/positions"
	"mirror/sidecar/status"
	"mirror/sidecar/topics"
)

const (
	// retryPause is the longest time before another round after one that failed.
	retryPause = 10 * time.Second
	// leavePause is the time between two looks at partitions that are leaving.
	leavePause = 250 * time.Millisecond
)

// refreshLoop follows the topics of both clusters until ctx ends.
func (f *Flow) refreshLoop(ctx context.Context) {
	every := f.cfg().Refresh
	tick := time.NewTicker(every)
	defer tick.Stop()
	leaving := f.leaving()
	var retry <-chan time.Time
	var gone map[string]bool // from the source, of those that plugins keep something of
	for {
		select {
		case <-ctx.Done():
			return
		case <-leaving:
			f.seeOff(nil)
			leaving = f.leaving()
			continue
		case <-f.changed:
			if now := f.cfg().Refresh; now != every {
				every = now
				tick.Reset(every)
			}
		case <-retry:
		case <-tick.C:
		}
		err := f.refresh(ctx)
		f.lookAhead(ctx)
		f.tellLogStarts(ctx)
		gone = f.forgetStates(ctx, gone)
		failing := retry != nil
		retry, leaving = nil, f.leaving()
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			f.count(status.ErrorTopics)
			if !failing {
				f.log.Warn("topics cannot be looked up, trying again", "err", err)
			}
			retry = time.After(min(every, retryPause))
		case failing:
			f.log.Info("topics are looked up again")
		}
	}
}

// refresh does one round of topics and begins and ends partitions by it.
func (f *Flow) refresh(ctx context.Context) error {
	c := f.cfg()
	f.manager.Choose(policy.NewFilter(c.Topics, c.ExcludeTopics), c.Create)
	s, err := f.manager.Sync(ctx)
	if err != nil {
		return err
	}
	seen := make(map[string]bool, len(s.Topics))
	problems := []status.Topic{}
	for i := range s.Topics {
		t := &s.Topics[i]
		seen[t.Source] = true
		if t.Err != nil {
			problems = append(problems, status.Topic{Source: t.Source, Target: t.Target, Reason: t.Err.Error()})
		}
		f.sourceLeaders.Follow(t.Source)
		f.targetLeaders.Follow(t.Target)
		for n := range t.Partitions {
			f.keepUp(t, n)
		}
	}
	f.mu.Lock()
	f.problems = problems
	f.mu.Unlock()
	f.seeOff(func(topic string) bool { return !seen[topic] })
	return nil
}

// seeOff lets partitions leave: those that are about to, and those of topics that
// are gone.
func (f *Flow) seeOff(gone func(topic string) bool) {
	left := map[string]bool{}
	for _, p := range f.all() {
		if (p.leaves() || gone != nil && gone(p.key.Topic)) && f.leave(p) {
			left[p.key.Topic] = true
		}
	}
	for topic := range left {
		if f.manager.Selects(topic) {
			f.log.Info("topic is gone from the source, its target stays", "topic", topic)
		} else {
			f.log.Info("topic is not selected any more, its target stays", "topic", topic)
		}
	}
}

// leaving tells when to look again at partitions that are leaving; never where
// there are none.
func (f *Flow) leaving() <-chan time.Time {
	if slices.ContainsFunc(f.all(), (*partition).leaves) {
		return time.After(leavePause)
	}
	return nil
}

// keepUp makes the partition if it is new, and tells it what its topics are like.
func (f *Flow) keepUp(t *topics.Topic, number int32) {
	key := positions.Key{Topic: t.Source, Partition: number}
	f.mu.Lock()
	p, ok := f.partitions[key]
	if !ok {
		p = f.newPartition(key, t.Target)
		f.partitions[key] = p
		f.running.Store(int64(len(f.partitions)))
		p.position, p.known = f.loaded[key]
		if !p.known {
			p.position = positions.Plain(-1)
		}
		p.saved, p.kept, p.returned = p.position, p.known, f.left[key]
		p.epochs = p.position.SourceEpochs
		p.fromStart = !f.first
		p.lane.add(p)
	}
	f.mu.Unlock()
	p.dst.SetLimit(t.MaxMessageBytes)
	p.mu.Lock()
	p.targetAppendTime = t.LogAppendTime
	another, back := p.sourceID != t.SourceID || p.targetID != t.TargetID, p.leaving
	p.leaving, p.sourceID, p.targetID = false, t.SourceID, t.TargetID
	p.mu.Unlock()
	if ok && another { // one of the topics was made again
		p.close()
	}
	if !ok || another || back { // once what is on its way is stored
		f.beginAfter(p, 0)
	}
}

// leave ends a partition whose topic is gone or not selected any more, once what
// was fetched of it is stored and its position is saved. It says whether it began
// to.
func (f *Flow) leave(p *partition) (begins bool) {
	p.mu.Lock()
	begins, p.leaving = !p.leaving, true
	fetched, g := p.inbox, p.generation
	p.mu.Unlock()
	p.src.Stop(g)
	// In this order: what is in one place now may be in the next a moment later.
	if fetched > 0 || !p.dst.Idle() || !p.lane.saving.TryLock() {
		return begins // the next look may do it
	}
	defer p.lane.saving.Unlock() // a save that fails gives its positions back
	p.mu.Lock()
	done := p.inbox == 0 && (!p.dirty || p.state == status.Stalled && p.halted != nil && p.halted.kind == status.ErrorPlugin)
	// Less far than what is copied, where a plugin has halted it: if it comes back, what
	// the plugin was not told of is found on the target, and told.
	at, kept, copied := p.saved, p.kept, p.position.Offset
	p.mu.Unlock()
	if !done {
		return begins
	}
	if kept && copied > at.Offset {
		p.log.Warn("partition leaves before plugins were told of all that is copied: they are told if it comes back", "told", at.Offset, "copied", copied)
	}
	p.close()
	p.revoke()
	f.agenda.remove(p)
	p.lane.remove(p)
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.partitions, p.key)
	f.running.Store(int64(len(f.partitions)))
	f.left[p.key] = true
	if kept {
		f.loaded[p.key] = at
	}
	if !f.mirrored(p.key.Topic) {
		f.sourceLeaders.Forget(p.key.Topic)
		f.targetLeaders.Forget(p.target)
	}
	return begins
}

// mirrored says whether a partition of the topic is left. The caller holds the
// lock.
func (f *Flow) mirrored(topic string) bool {
	for k := range f.partitions {
		if k.Topic == topic {
			return true
		}
	}
	return false
}
