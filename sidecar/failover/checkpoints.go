package failover

import (
	"context"
	"time"

	"mirror/plugins"
	"mirror/sidecar/offsets"
)

// write writes the checkpoints that are due. Nothing is remembered of what may not be
// in the topic.
func (e *Engine) write(ctx context.Context, views []*view) error {
	var all []offsets.Checkpoint
	e.mu.Lock()
	for _, v := range views {
		g := e.marks.group(v.name)
		for i := range v.offsets {
			s := &v.offsets[i]
			place := e.marks.placeOf(s.onTarget())
			was, metadata := g.find(place), ""
			if was != nil {
				metadata = g.metadata[place]
			}
			if due(was, metadata, s.from.Offset, s.to, s.metadata()) {
				all = append(all, offsets.Checkpoint{
					Group: v.name, Topic: s.p.Target, Partition: s.p.Partition, Upstream: s.from.Offset, Downstream: s.to.Offset, Metadata: s.metadata(),
				})
			}
		}
	}
	e.mu.Unlock()
	if len(all) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, writeTime)
	defer cancel()
	now := time.Now()
	if err := e.topic.Write(ctx, all, now); err != nil {
		return err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, c := range all {
		e.marks.written(c, now)
	}
	e.counts.written += uint64(len(all))
	return nil
}

// onTarget is the partition on the target.
func (s *standing) onTarget() plugins.Key {
	return plugins.Key{Topic: s.p.Target, Partition: s.p.Partition}
}

// metadata is what goes along with the offset: all of it, or none that the format
// has no room for.
func (s *standing) metadata() string {
	if len(s.from.Metadata) > offsets.MaxString {
		return ""
	}
	return s.from.Metadata
}
