package pipeline

import (
	"context"
	"errors"

	"mirror/abi"
	"mirror/sidecar/cluster"
	"mirror/sidecar/config"
)

// errPluginsBehind is a partition that begins once plugins have been told what was found
// of it on the target: its position must not pass that before.
var errPluginsBehind = errors.New("waiting for plugins to be told what the target holds")

// errLeaves is a partition that has begun to leave meanwhile: plugins are told nothing
// more of it, and its position stays.
var errLeaves = errors.New("the topic is gone, or not selected any more")

// tellBeginnings tells the plugins where partitions begin, and what was found of
// them on the target after the saved position. Those whose position the plugins do
// not allow to be saved yet begin later, from there.
func (f *Flow) tellBeginnings(ctx context.Context, bs []*beginning) {
	var ours []*beginning
	for _, b := range bs {
		if b.going() && b.p.lane.hooks.Load() != nil {
			ours = append(ours, b)
		}
	}
	if len(ours) == 0 {
		return
	}
	// Another mirror that still writes has to learn of this one now: as long as it
	// goes on there is more to be told each time.
	if err := f.claim(ctx, ours); err != nil {
		for _, b := range ours {
			b.err = err
		}
		return
	}
	starts := f.offsets(ctx, f.source, ours, sourcePartition, cluster.EarliestOffset, config.ReadUncommitted)
	for _, b := range ours {
		if b.going() {
			b.tell(starts[b])
		}
	}
}

func (b *beginning) tell(logStart int64) {
	p := b.p
	h := p.lane.hooks.Load()
	if h == nil {
		return // they have been switched off
	}
	if b.at.Offset < b.from { // it goes back, to copy again what the target has lost
		b.from, b.ranges = b.at.Offset, nil
	}
	p.mu.Lock()
	if p.leaving {
		p.mu.Unlock()
		b.err = errLeaves
		return
	}
	if kind := b.event; p.hooks != h || p.toldTo != b.from || kind != abi.None {
		if p.hooks != h || kind == abi.None {
			kind = abi.Assigned
		}
		at := b.at
		at.Offset = b.from
		p.assign(h, kind, at, logStart, b.targetEnd)
	}
	p.tell(b.ranges, b.at.Offset, -1, b.at.SourceLeaderEpoch)
	if len(b.ranges) > 0 { // the next look goes on from there
		at := b.at
		if b.repeats != nil { // and sees for itself what cannot be matched
			at.TargetOffset = b.matchedTo
		}
		p.position, p.known, p.epochs = at, true, b.at.SourceEpochs
	}
	p.mu.Unlock()
	if why := p.haltedByPlugin(); why != nil {
		b.halted = why
		return
	}
	if h.safe(p.plugged()) < b.at.Offset {
		b.err = errPluginsBehind
		wake(p.lane.flush)
	}
}

// tellLogStarts tells plugins where the source has deleted records since they were told
// last: what they keep about those is of no use any more.
func (f *Flow) tellLogStarts(ctx context.Context) {
	asked := map[cluster.TopicPartition]*partition{}
	var ask []cluster.TopicPartition
	for _, p := range f.all() {
		p.mu.Lock()
		told := p.hooks != nil && p.began
		p.mu.Unlock()
		if told {
			ask = append(ask, sourcePartition(p))
			asked[sourcePartition(p)] = p
		}
	}
	ctx, cancel := context.WithTimeout(ctx, lookTime)
	defer cancel()
	for k, o := range f.source.ListOffsets(ctx, ask, cluster.EarliestOffset, config.ReadUncommitted) {
		if o.Err == nil {
			asked[k].startsAt(o.Offset)
		}
	}
}

// startsAt tells the plugins where the source's log starts, if it has not been there.
func (p *partition) startsAt(logStart int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	// Until they are loaded a position that is told says how far positions may go.
	if h := p.hooks; h != nil && h.plugins() != nil && logStart > p.logStart {
		p.logStart = logStart
		p.happens(p.event(abi.LogStartMoved, p.toldTo, logStart, p.position.TargetOffset+1))
	}
}

// revoke tells the plugins that the partition is not the lane's any more.
func (p *partition) revoke() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.hooks != nil {
		p.happens(p.event(abi.Revoked, p.position.Offset, -1, -1))
		p.leaveHooks()
	}
}
