package failover

import (
	"fmt"
	"maps"
	"time"

	"mirror/sidecar/status"
)

// report is how all groups stood in the last round.
type report struct {
	updated    time.Time
	groups     map[string]int // by worst outcome
	unreadable int
	offsets    map[string]int // by outcome
	inexact    map[string]int // by reason
	held       map[string]int // by reason
}

// counts rise from the start on.
type counts struct {
	written, deleted, committed, expired, crossed uint64
	refused                                       map[string]uint64 // by reason
}

// tally makes a report, chunk by chunk.
type tally struct {
	report  report
	trouble error // with the first group that there was any with
}

func newTally() *tally {
	return &tally{report: report{groups: map[string]int{}, offsets: map[string]int{}, inexact: map[string]int{}, held: map[string]int{}}}
}

func (t *tally) add(views []*view, sync bool) {
	r := &t.report
	for _, v := range views {
		if v.err != nil {
			r.unreadable++
			t.say(v.err)
			continue
		}
		if len(v.offsets) == 0 {
			continue
		}
		t.say(v.unread)
		if v.refused != nil {
			t.refusal(v)
		}
		worst := status.OutcomeExact
		for i := range v.offsets {
			s := &v.offsets[i]
			o := outcome(s.to)
			worst = worse(worst, o)
			r.offsets[o]++
			if o != status.OutcomeExact {
				r.inexact[inexact(s.to)]++
			}
			if sync && s.held != "" {
				r.held[s.held]++
			}
		}
		r.groups[worst]++
	}
}

// refusal is no trouble where a member has joined: that is how it should be.
func (t *tally) refusal(v *view) {
	if heldBy(v.refused) != status.HeldJoined {
		t.say(v.refused)
	}
}

func (t *tally) say(err error) {
	if err != nil && t.trouble == nil {
		t.trouble = fmt.Errorf("%w (and maybe others)", err)
	}
}

func (r *report) status() status.Failover {
	s := status.Failover{
		Updated: r.updated, Unreadable: r.unreadable, Groups: map[string]int{}, Offsets: map[string]int{},
		Inexact: map[string]int{}, Held: map[string]int{},
	}
	for _, o := range status.Outcomes { // 0 too
		s.Groups[o], s.Offsets[o] = r.groups[o], r.offsets[o]
	}
	for _, why := range status.InexactReasons {
		s.Inexact[why] = r.inexact[why]
	}
	for _, why := range status.HeldReasons {
		s.Held[why] = r.held[why]
	}
	return s
}

func (c *counts) into(s *status.Failover) {
	s.Written, s.Deleted, s.Committed, s.Expired, s.Crossed = c.written, c.deleted, c.committed, c.expired, c.crossed
	s.Refused = map[string]uint64{}
	for _, why := range status.RefusedReasons {
		s.Refused[why] = 0
	}
	maps.Copy(s.Refused, c.refused)
}
