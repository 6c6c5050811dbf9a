package pipeline

import (
	"context"
	"sync"

	"mirror/abi"
	"mirror/plugins"
	"mirror/sidecar/positions"
	"mirror/sidecar/produce"
	"mirror/sidecar/resume"
	"mirror/sidecar/status"
)

// How many pieces of a partition may wait for a plugin before fetching it pauses:
// heldMost, and while the lane has few partitions each its share of heldTogether.
// What was told counts until it is flushed, and a save of positions for every
// thousand small transactions costs more than all that plugins do with them.
const (
	heldMost     = 1_000
	heldTogether = 32_000
	heldByOne    = 8_000
)

// toldTogether is how many pieces of a partition are told at once, or those that there
// are when a round begins: a lock for each is dear where transactions are small.
const toldTogether = 32

// most is how many may wait now. The caller holds the lock.
func (h *hooks) most() int {
	if h.lane == nil {
		return heldMost // of all together
	}
	return max(heldMost, min(heldByOne, heldTogether/max(h.lane.Partitions(), 1)))
}

// hooks is a lane's plugins: what they are told, and how far that lets positions
// go. Until they are loaded it keeps what is to be told: copying does not wait for
// that, positions do.
//
// Lock order: partition.mu before hooks.mu.
type hooks struct {
	mu       sync.Mutex
	lane     *plugins.Lane // nil: they are being loaded
	kept     []kept
	begun    map[plugins.Key]int64 // where a partition begins in kept
	replays  replays
	replayed map[plugins.Key]bool
	paused   map[*partition]bool // because too much waits for the plugins
	asked    bool                // for a flush, before one has to pause
	behind   []*partition        // with pieces that are to be told when a round begins
}

// kept is an event or a range of key.
type kept struct {
	key   plugins.Key
	event *plugins.Event
	r     plugins.Range
}

// replays is what was known of a partition before it was begun with, from an
// existing topic of offset syncs, in rising order.
type replays map[plugins.Key][]plugins.Range

func newHooks() *hooks {
	return &hooks{begun: map[plugins.Key]int64{}, replayed: map[plugins.Key]bool{}, paused: map[*partition]bool{}}
}

// loaded hands over to the plugins.
func (h *hooks) loaded(l *plugins.Lane, known replays) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.lane, h.replays, h.asked = l, known, false
	for _, k := range h.kept {
		if k.event != nil {
			h.notify(*k.event)
		} else {
			l.Acknowledged(k.key, k.r)
		}
	}
	h.kept, h.begun = nil, nil
	for p := range h.paused {
		wake(p.lane.flush)
	}
}

// plugins is the lane once it is loaded.
func (h *hooks) plugins() *plugins.Lane {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.lane
}

// happened tells an event.
func (h *hooks) happened(e plugins.Event) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.lane == nil {
		h.kept = append(h.kept, kept{key: e.Key, event: &e})
		h.begun[e.Key] = e.Position
		return
	}
	h.notify(e)
}

// notify passes an event on, and after the first of a partition what was known of it.
func (h *hooks) notify(e plugins.Event) {
	h.lane.Notify(e)
	if e.Kind == abi.Revoked || h.replayed[e.Key] {
		return
	}
	h.replayed[e.Key] = true
	for _, r := range h.replays[e.Key] {
		if r.Last <= e.Position {
			h.lane.Acknowledged(e.Key, r)
		}
	}
	delete(h.replays, e.Key)
}

// fallsBehind has the partition catch up when the next round begins.
func (h *hooks) fallsBehind(p *partition) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.behind = append(h.behind, p)
}

// stored tells ranges, in order.
func (h *hooks) stored(k plugins.Key, rs []plugins.Range) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.lane != nil {
		h.lane.Acknowledged(k, rs...)
		return
	}
	for _, r := range rs {
		h.kept = append(h.kept, kept{key: k, r: r})
	}
}

// safe is the last source offset that may be saved.
func (h *hooks) safe(k plugins.Key) int64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.lane != nil {
		return h.lane.Safe(k)
	}
	if at, ok := h.begun[k]; ok {
		return at
	}
	return -1
}

// crowded says that a partition should not be fetched for now, and remembers it.
func (h *hooks) crowded(p *partition) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	n := len(h.kept)
	if h.lane != nil {
		n = h.lane.Waiting(p.plugged())
	}
	if n <= heldMost/2 || n <= h.most()/2 { // mostly the first
		return false
	}
	// What was told counts until it is flushed, and the next save may be long in coming.
	full := n > h.most()
	if !h.asked || full && !h.paused[p] {
		h.asked = true
		wake(p.lane.flush)
	}
	if full {
		h.paused[p] = true
		p.heldBy.Store(h)
	}
	return full
}

// relieved are the partitions that were crowded and are not any more.
func (h *hooks) relieved() (ps []*partition) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for p := range h.paused {
		if h.lane != nil && h.lane.Waiting(p.plugged()) <= h.most()/2 {
			delete(h.paused, p)
			p.heldBy.Store(nil)
			ps = append(ps, p)
		}
	}
	return ps
}

// halted says which plugin has halted a partition, and why; "": none.
func (h *hooks) halted(k plugins.Key) (plugin string, why error) {
	if l := h.plugins(); l != nil {
		return l.Halted(k)
	}
	return "", nil
}

// round tells the plugins what has been acknowledged. flush: what safe allows may be
// saved then.
func (h *hooks) round(ctx context.Context, flush bool) error {
	l := h.plugins()
	if l == nil {
		return nil
	}
	h.catchUp()
	if err := l.Round(ctx, flush); err != nil {
		return err
	}
	if flush {
		h.mu.Lock()
		h.asked = false
		h.mu.Unlock()
	}
	for _, p := range h.relieved() {
		p.unpause()
	}
	return nil
}

// catchUp has all partitions tell what they have been told themselves by now.
func (h *hooks) catchUp() {
	h.mu.Lock()
	behind := h.behind
	h.behind = nil
	h.mu.Unlock()
	for _, p := range behind {
		p.catchUp(h)
	}
}

// plugged is the partition's name for plugins.
func (p *partition) plugged() plugins.Key {
	return plugins.Key{Topic: p.key.Topic, Partition: p.key.Partition}
}

// event is what the plugins are told of the partition. The caller holds the lock.
func (p *partition) event(kind abi.Event, position, logStart, targetEnd int64) plugins.Event {
	return plugins.Event{
		Key: p.plugged(), Kind: kind, TargetTopic: p.target,
		LogStart: logStart, Position: position, TargetEnd: targetEnd, TopicID: p.sourceID, TargetTopicID: p.targetID,
	}
}

// tell tells the plugins of records that are stored at the target, from an offset
// on, and that the source offsets around them up to last hold none. A target
// of -1 is not known: then it is as if the partition began after them. The caller
// holds the lock.
func (p *partition) tell(runs []resume.Range, last int64, maxTimestamp int64, leaderEpoch int32) {
	h := p.hooks
	if h == nil || last <= p.toldTo {
		return
	}
	next := p.toldTo + 1
	p.toldTo = last
	empty := func(to int64) {
		if to >= next {
			p.untold = append(p.untold, plugins.Range{First: next, Last: to, TargetFirst: -1, TargetLast: -1, MaxTimestamp: -1, LeaderEpoch: leaderEpoch})
		}
	}
	for _, r := range runs {
		if r.Target < 0 {
			p.happens(p.event(abi.Assigned, last, -1, -1))
			return
		}
		if r.Source < next { // told before
			over := min(next-r.Source, r.Count)
			r.Source, r.Target, r.Count = r.Source+over, r.Target+over, r.Count-over
		}
		if r.Count <= 0 {
			continue
		}
		empty(r.Source - 1)
		p.untold = append(p.untold, plugins.Range{
			First: r.Source, Last: r.Source + r.Count - 1, TargetFirst: r.Target, TargetLast: r.Target + r.Count - 1,
			MaxTimestamp: maxTimestamp, Records: uint32(r.Count), LeaderEpoch: leaderEpoch,
		})
		next = r.Source + r.Count
	}
	empty(last)
	if len(p.untold) >= toldTogether {
		p.handOver()
	} else if !p.behind {
		p.behind = true
		h.fallsBehind(p)
	}
}

// handOver tells the plugins what they are not told yet. The caller holds the lock.
func (p *partition) handOver() {
	p.hooks.stored(p.plugged(), p.untold)
	p.untold = p.untold[:0]
}

// happens tells an event, after what was before it. The caller holds the lock.
func (p *partition) happens(e plugins.Event) {
	p.handOver()
	p.hooks.happened(e)
}

// catchUp is when a round of h begins.
func (p *partition) catchUp(h *hooks) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.hooks == h { // else others have it, or none
		p.behind = false
		p.handOver()
	}
}

// tellStored tells the plugins of what a target has acknowledged. The caller holds
// the lock.
func (p *partition) tellStored(a *produce.Ack) {
	if p.hooks == nil {
		return
	}
	p.telling = p.telling[:0]
	target := a.TargetOffset
	if a.Count > 0 {
		for _, r := range a.Runs {
			p.telling = append(p.telling, resume.Range{Source: r.Source, Target: target, Count: int64(r.Count)})
			if target >= 0 {
				target += int64(r.Count)
			}
		}
	}
	p.tell(p.telling, a.Last, a.Timestamp, a.LeaderEpoch)
}

// crowded says that too much waits for plugins. It must not be called with the lock
// held.
func (p *partition) crowded() bool {
	p.mu.Lock()
	h := p.hooks
	p.mu.Unlock()
	return h != nil && h.crowded(p)
}

// unpause goes on fetching, if neither the budget nor plugins are in the way.
func (p *partition) unpause() {
	p.mu.Lock()
	held := p.inbox
	p.mu.Unlock()
	if held+p.dst.Bytes() <= p.flow.partitionLimit()/2 && !p.crowded() {
		p.src.Resume()
	}
}

// safe says whether a position may be saved as far as plugins are concerned.
func (p *partition) safe(at positions.Position) bool {
	p.mu.Lock()
	h := p.hooks
	p.mu.Unlock()
	return h == nil || h.safe(p.plugged()) >= at.Offset
}

// haltedByPlugin is why a plugin has stopped the partition, nil: none has.
func (p *partition) haltedByPlugin() *halt {
	p.mu.Lock()
	h, at := p.hooks, p.position.Offset+1
	p.mu.Unlock()
	if h == nil {
		return nil
	}
	name, why := h.halted(p.plugged())
	if why == nil {
		return nil
	}
	return &halt{status.ErrorPlugin, at, "plugin " + name + ": " + why.Error() + "; fix the plugin or change its table in the config, and reload"}
}
