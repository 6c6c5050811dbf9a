package pipeline

import (
	"context"
	"time"

	"mirror/sidecar/cluster"
)

// ends takes over how far the source may be copied. The caller holds the lock.
func (p *partition) ends(end int64, now time.Time) {
	if p.atEnd() {
		p.seenAtEnd = now // until now nothing waited
	}
	p.end = end
	if p.atEnd() {
		p.seenAtEnd = now
	}
}

// atEnd says that all that may be copied, as far as known, is safe on the target.
// The caller holds the lock.
func (p *partition) atEnd() bool { return p.end >= 0 && p.position.Offset+1 >= p.end }

// lag is how long the oldest record waits that may be copied and is not yet safe
// on the target, 0 where there is none. oldest is the timestamp of the first batch
// that the target end holds, 0: it holds none. The caller holds the lock.
//
// There are two answers, and each may only be too long: the age by timestamp, of
// that batch or of the last record that was copied, which came before it; and the
// time since nothing waited. The shorter one holds. So a topic that was idle for a
// day is not a day behind once a record comes, and one that is written without a
// pause is not behind for as long as it is written. A timestamp that says nothing (none, or
// one of the future) counts for nothing.
func (p *partition) lag(now time.Time, oldest int64) time.Duration {
	if p.end < 0 || p.atEnd() {
		return 0
	}
	if oldest == 0 {
		oldest = p.lastTimestamp
	}
	since := p.seenAtEnd
	if at := time.UnixMilli(oldest); oldest > 0 && at.After(since) && !at.After(now) {
		since = at
	}
	if since.IsZero() {
		since = p.made
	}
	return max(now.Sub(since), 0)
}

// lookAhead asks how far those partitions may be copied that are not fetched at
// the moment, because they are stalled or the target is out of reach: their lag
// grows all the same.
func (f *Flow) lookAhead(ctx context.Context) {
	asked := map[cluster.TopicPartition]*partition{}
	var ask []cluster.TopicPartition
	for _, p := range f.all() {
		p.mu.Lock()
		known := p.known
		p.mu.Unlock()
		if known && !p.src.Fetching() {
			ask = append(ask, sourcePartition(p))
			asked[sourcePartition(p)] = p
		}
	}
	ctx, cancel := context.WithTimeout(ctx, lookTime)
	defer cancel()
	for k, o := range f.source.ListOffsets(ctx, ask, cluster.LatestOffset, f.cfg().Isolation) {
		if p := asked[k]; o.Err == nil && !p.src.Fetching() {
			p.mu.Lock()
			p.ends(o.Offset, time.Now())
			p.mu.Unlock()
		}
	}
}
