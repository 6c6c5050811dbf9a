package failover

import (
	"mirror/abi"
	"mirror/plugins"
	"mirror/sidecar/groups"
	"mirror/sidecar/status"
)

// due says whether a checkpoint is to be written, where there is one (nil: none) with
// metadata. Checkpoints follow the group: forward always, back only where the group
// itself went back (which is MirrorMaker's rule), or where an exact answer is lower
// than it was: then the logs are not those they were, and what is written points past
// what the group has read.
func due(was *mark, wasMetadata string, up int64, t plugins.Translation, metadata string) bool {
	switch {
	case t.Outcome == abi.NoOffset:
		return false
	case was == nil || was.down < 0:
		return true
	case was.up == up && was.down == t.Offset && wasMetadata == metadata:
		return false
	case up < was.up, t.Offset >= was.down:
		return true
	}
	return t.Outcome == abi.Exact
}

// wouldSync says what a sync does about an offset: what it commits, where it commits;
// why not, where it holds back. there is what the group has on the target now, -1:
// nothing, and other whether that is with other metadata; g is the group there, with an
// empty name where there is none.
func wouldSync(t plugins.Translation, g groups.Group, there int64, other bool) (would, held string) {
	switch {
	case t.Outcome == abi.NoOffset:
		return status.SyncHold, status.HeldNone
	case g.Share():
		return status.SyncHold, status.HeldShare
	case there == t.Offset && !other:
		return status.SyncInPlace, ""
	case g.Active():
		return status.SyncHold, status.HeldActive
	case there > t.Offset:
		return status.SyncHold, status.HeldAhead
	}
	return status.SyncCommit, ""
}

// heldBy is the reason for an offset that the target would not commit.
func heldBy(err error) string {
	switch {
	case groups.Joined(err):
		return status.HeldJoined
	case groups.Denied(err):
		return status.HeldDenied
	}
	return status.HeldFailed
}

// outcome and inexact are how answers are called.
func outcome(t plugins.Translation) string {
	switch t.Outcome {
	case abi.Exact:
		return status.OutcomeExact
	case abi.Bound:
		return status.OutcomeBound
	}
	return status.OutcomeNone
}

func inexact(t plugins.Translation) string {
	switch {
	case t.Outcome == abi.Exact:
		return ""
	case t.Reason == pastEnd:
		return status.InexactPastEnd
	}
	switch t.Reason {
	case abi.BeforeFirst:
		return status.InexactBeforeFirst
	case abi.Ahead:
		return status.InexactAhead
	case abi.InUnknown:
		return status.InexactUnknown
	case abi.Thinned:
		return status.InexactThinned
	case abi.NotKnown:
		return status.InexactNotKnown
	}
	return status.InexactFailed
}

// pastEnd is the reason of an answer past the target's end. A plugin never gives it.
const pastEnd abi.Reason = 0xffff

// believed is an answer that the target's log bears out: a group must never be sent
// ahead of data. Nor is a run shown that reaches past it.
func believed(t plugins.Translation, end int64) plugins.Translation {
	if end < 0 {
		return t
	}
	if t.Outcome != abi.NoOffset && t.Offset > end {
		t.Offset, t.Outcome, t.Reason = -1, abi.NoOffset, pastEnd
	}
	if t.Outcome == abi.NoOffset || t.Run.End() > end {
		t.Run = abi.Run{}
	}
	return t
}

// worse is the worse one of two outcomes.
func worse(a, b string) string {
	if a == status.OutcomeNone || b == status.OutcomeNone {
		return status.OutcomeNone
	}
	if a == status.OutcomeBound || b == status.OutcomeBound {
		return status.OutcomeBound
	}
	return status.OutcomeExact
}
