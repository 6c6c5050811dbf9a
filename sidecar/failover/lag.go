package failover

import (
	"context"
	"fmt"

	"mirror/abi"
	"mirror/sidecar/groups"
	"mirror/sidecar/status"
)

// Lag has each see, of every group in the order of their names, what it would lose or
// repeat if it failed over now: to where its group on the target stands with
// sync_groups, else to its checkpoints. It asks for all groups, a chunk at a time, and
// changes nothing. Beside ctx's its errors are ErrOff and what the clusters answer.
func (e *Engine) Lag(ctx context.Context, each func(status.GroupLag)) error {
	c := e.o.Config()
	if on, why := e.o.On(); !on {
		return fmt.Errorf("flow %s: %w: %s", c.Name(), ErrOff, why)
	}
	m := e.mirrored()
	listed, err := e.source.List(ctx)
	if err != nil {
		return err
	}
	e.mu.Lock()
	loaded := e.marks != nil
	e.mu.Unlock()
	if !loaded {
		return fmt.Errorf("flow %s: %w: the checkpoints are being read, ask again in a moment", c.Name(), ErrOff)
	}
	sync := c.Checkpoints.SyncGroups.On
	for names := e.names(c, listed, false); len(names) > 0; {
		n := e.chunk(names, len(m.all))
		views, err := e.look(ctx, names[:n], m)
		if err != nil {
			return err
		}
		if sync {
			e.lookThere(ctx, views, m, map[string]groups.Group{}, true)
		}
		for _, v := range views {
			if len(v.offsets) > 0 || v.err != nil {
				each(e.lag(c.Name(), v, sync))
			}
		}
		names = names[n:]
	}
	return ctx.Err()
}

func (e *Engine) lag(flow string, v *view, sync bool) status.GroupLag {
	l := status.GroupLag{Flow: flow, Group: v.name, Outcome: status.OutcomeExact, Offsets: len(v.offsets), By: status.ByCheckpoint}
	if sync {
		l.By = status.ByGroup
	}
	if err := v.err; err != nil || sync && v.unread != nil {
		if err == nil {
			err = v.unread
		}
		l.Outcome, l.Error = status.OutcomeNone, err.Error()
		return l
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	for i := range v.offsets {
		s := &v.offsets[i]
		l.Outcome = worse(l.Outcome, outcome(s.to))
		if next := max(s.p.Position+1, s.from.Offset); s.p.SourceEnd > next {
			l.NotCopied += s.p.SourceEnd - next
		}
		at := s.there
		if !sync {
			at = -1
			if k := e.marked(v.name, s); k != nil {
				at = k.down
			}
		}
		lose, repeat, known := harm(s, at)
		if !known {
			l.Unknown++
			continue
		}
		l.Lose, l.Repeat = l.Lose+lose, l.Repeat+repeat
		l.AtMost = l.AtMost || s.to.Outcome != abi.Exact
	}
	return l
}

// harm is what a group would lose or repeat at a partition that goes on at an offset
// there. The exact answer is what it is, or, for a bound, anything from there to the
// end of the log.
func harm(s *standing, at int64) (lose, repeat int64, known bool) {
	least, most := s.to.Offset, s.to.Offset
	if s.to.Outcome == abi.Bound {
		most = max(s.p.TargetEnd, least)
	}
	if at < 0 || s.to.Outcome == abi.NoOffset {
		return 0, 0, false
	}
	return max(at-least, 0), max(most-at, 0), true
}
