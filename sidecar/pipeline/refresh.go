package pipeline

import (
	"context"
	"time"

	"mirror/sidecar/positions"
	"mirror/sidecar/status"
	"mirror/sidecar/topics"
)

// refreshLoop follows the topics of both clusters until ctx ends.
func (f *Flow) refreshLoop(ctx context.Context) {
	tick := time.NewTicker(f.cfg.Refresh)
	defer tick.Stop()
	failing := false
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		err := f.refresh(ctx)
		f.lookAhead(ctx)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			f.count(status.ErrorTopics)
			if !failing {
				f.log.Warn("topics cannot be looked up, trying again", "err", err)
			}
		case failing:
			f.log.Info("topics are looked up again")
		}
		failing = err != nil
	}
}

// refresh does one round of topics and begins and ends partitions by it.
func (f *Flow) refresh(ctx context.Context) error {
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
	left := map[string]bool{}
	for _, p := range f.all() {
		if !seen[p.key.Topic] && f.leave(p) {
			left[p.key.Topic] = true
		}
	}
	for topic := range left {
		f.log.Info("topic is gone from the source, its target stays", "topic", topic)
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
		p.epochs = p.position.SourceEpochs
		p.fromStart = !f.first
		p.lane.add(p)
	}
	f.mu.Unlock()
	p.dst.SetLimit(t.MaxMessageBytes)
	p.mu.Lock()
	p.targetAppendTime = t.LogAppendTime
	another := !ok || p.leaving || p.sourceID != t.SourceID || p.targetID != t.TargetID
	p.leaving, p.sourceID, p.targetID = false, t.SourceID, t.TargetID
	p.mu.Unlock()
	if another { // new, back again, or one of the topics was made again
		if ok {
			p.close()
		}
		f.beginAfter(p, 0)
	}
}

// leave ends a partition whose topic is gone or not selected any more, once what
// was fetched of it is stored and its position is saved. It says whether it began
// to.
func (f *Flow) leave(p *partition) (begins bool) {
	p.mu.Lock()
	begins, p.leaving = !p.leaving, true
	done := p.inbox == 0 && !p.dirty
	at, known, g := p.at(), p.known, p.generation
	p.mu.Unlock()
	p.src.Stop(g)
	if !done || !p.dst.Idle() {
		return begins // the next round looks again
	}
	p.close()
	f.agenda.remove(p)
	p.lane.remove(p)
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.partitions, p.key)
	f.running.Store(int64(len(f.partitions)))
	if known {
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
