package status

import "time"

// Failover is how a flow's consumer groups would go on at the target: its checkpoints,
// and what is committed for the groups there.
type Failover struct {
	// Enabled says that checkpoints are written. Reason says why they are not, or not
	// yet.
	Enabled bool   `json:"enabled"`
	Reason  string `json:"reason,omitempty"`
	// SyncGroups says that translated offsets are committed to groups on the target.
	SyncGroups bool   `json:"sync_groups"`
	Topic      string `json:"topic,omitempty"` // of the checkpoints, on the target
	// Problem is what is wrong with reading groups, with translating, or with the
	// topic.
	Problem string `json:"problem,omitempty"`
	// Updated is when the last round began after which all checkpoints were on the
	// target.
	Updated time.Time `json:"updated"`
	// Groups counts those that have offsets of mirrored partitions, by the worst
	// outcome of these (see Outcomes). Unreadable are those whose offsets could not be
	// read in the last round.
	Groups     map[string]int `json:"groups"`
	Unreadable int            `json:"unreadable_groups"`
	// Offsets counts their offsets, by outcome; Inexact those that are not exact, by
	// reason (see InexactReasons).
	Offsets map[string]int `json:"offsets"`
	Inexact map[string]int `json:"inexact_offsets"`
	// Checkpoints are those in the topic of groups that exist.
	Checkpoints int `json:"checkpoints"`
	// Held counts the offsets that were not committed to their group on the target in
	// the last round, by reason (see HeldReasons).
	Held map[string]int `json:"held_offsets"`
	// Written counts checkpoints, Deleted groups that are gone from the source,
	// Committed offsets, Expired those of these that had been there before and were gone,
	// Crossed groups to which a member came and went around a commit, so that an offset of
	// its own may have been overwritten; all since the start.
	Written   uint64 `json:"written"`
	Deleted   uint64 `json:"deleted_groups"`
	Committed uint64 `json:"committed"`
	Expired   uint64 `json:"expired"`
	Crossed   uint64 `json:"crossed_commits"`
	// Refused counts offsets that the target would not have committed, by reason.
	Refused map[string]uint64 `json:"refused_commits"`
}

// Outcomes of a translation, best first.
const (
	OutcomeExact = "exact" // who goes on there misses nothing and repeats nothing
	OutcomeBound = "bound" // misses nothing, and may repeat some
	OutcomeNone  = "none"
)

// Outcomes lists all outcomes.
var Outcomes = []string{OutcomeExact, OutcomeBound, OutcomeNone}

// Reasons for a translation that is not exact.
const (
	InexactBeforeFirst = "before_first" // what is known of the partition begins later
	InexactAhead       = "ahead"        // the group is ahead of what is copied
	InexactUnknown     = "unknown_span" // the plugin was not told what became of the records there
	InexactThinned     = "thinned"      // given up for room
	InexactNotKnown    = "not_known"    // nothing is known of the partition, or not yet
	InexactFailed      = "failed"       // the plugin could not tell just now
	InexactPastEnd     = "past_end"     // the plugin's answer is past the target's end: not believed
)

// InexactReasons lists all of them.
var InexactReasons = []string{InexactBeforeFirst, InexactAhead, InexactUnknown, InexactThinned, InexactNotKnown, InexactFailed, InexactPastEnd}

// Reasons for not committing an offset to a group on the target.
const (
	HeldNone       = "none"       // there is no translation
	HeldActive     = "active"     // the group has members there
	HeldAhead      = "ahead"      // the group is further there: it is never moved back
	HeldShare      = "share"      // it is a share group there
	HeldJoined     = "joined"     // a member joined between the look and the commit, so that it was refused
	HeldDenied     = "denied"     // a right is missing
	HeldUnreadable = "unreadable" // what the group has there cannot be read
	HeldFailed     = "failed"     // the commit failed otherwise
)

// HeldReasons lists all of them.
var HeldReasons = []string{HeldNone, HeldActive, HeldAhead, HeldShare, HeldJoined, HeldDenied, HeldUnreadable, HeldFailed}

// RefusedReasons lists those by which the target refuses what is committed.
var RefusedReasons = []string{HeldJoined, HeldDenied, HeldFailed}

// What a sync does, or would do, about an offset.
const (
	SyncCommit  = "commit"   // commits it
	SyncInPlace = "in_place" // nothing: the group has it there
	SyncHold    = "hold"     // nothing: see the reason
)

// GroupTranslation is where a group would go on at the target of a flow, as it is
// now. Its JSON is a contract.
type GroupTranslation struct {
	Flow  string    `json:"flow"`
	Group string    `json:"group"`
	At    time.Time `json:"at"`
	// State is the group's on the source, TargetState on the target; "" where the
	// brokers do not tell, "Absent" where there is no such group.
	State       string `json:"state"`
	TargetState string `json:"target_state"`
	// SyncGroups says that what Would says is done each round; else it is what would be
	// done with sync_groups switched on.
	SyncGroups bool               `json:"sync_groups"`
	Partitions []TranslatedOffset `json:"partitions"` // by topic, then number
}

// TranslatedOffset is one offset of a group.
type TranslatedOffset struct {
	Topic     string `json:"topic"` // on the source
	Target    string `json:"target"`
	Partition int32  `json:"partition"`
	// Source is what the group has committed on the source, the next to read; Offset
	// where it would go on at the target, -1: that is not known.
	Source   int64  `json:"source_offset"`
	Metadata string `json:"metadata,omitempty"`
	Offset   int64  `json:"target_offset"`
	Outcome  string `json:"outcome"`          // see Outcomes
	Reason   string `json:"reason,omitempty"` // why it is not exact, see InexactReasons
	Plugin   string `json:"plugin"`           // whose answer it is
	// Run is the run of records that the answer goes by; null where it goes by none, or
	// the plugin does not say.
	Run *Run `json:"run"`
	// Nearest is the nearest offset sync at or before Source, which MirrorMaker would
	// translate by; null where there is none, or none can be read.
	Nearest *SyncPoint `json:"offset_sync"`
	// Checkpoint is the one in the topic; null: none.
	Checkpoint *WrittenCheckpoint `json:"checkpoint"`
	// Committed is what the group has on the target now, -1: nothing. Would is what a
	// sync would do (SyncCommit…), Held why it would not.
	Committed int64  `json:"target_committed"`
	Would     string `json:"would"`
	Held      string `json:"held,omitempty"` // see HeldReasons
}

// Run is records that follow each other without a gap on both sides: those from First to
// Last on the source, the first of which is at Target on the target.
type Run struct {
	First  int64 `json:"first"`
	Last   int64 `json:"last"`
	Target int64 `json:"target_first"`
}

// SyncPoint is an offset sync: the source record at Upstream is at Downstream.
type SyncPoint struct {
	Upstream   int64 `json:"upstream"`
	Downstream int64 `json:"downstream"`
}

// WrittenCheckpoint is a checkpoint as it is in the topic.
type WrittenCheckpoint struct {
	Upstream   int64     `json:"upstream"`
	Downstream int64     `json:"downstream"`
	Written    time.Time `json:"written"`
	Age        float64   `json:"age_seconds"`
}

// GroupLag is what a group would lose or repeat if it failed over now. Its JSON is a
// contract.
type GroupLag struct {
	Flow  string `json:"flow"`
	Group string `json:"group"`
	// Outcome is the worst one of the group's offsets.
	Outcome string `json:"outcome"`
	Offsets int    `json:"offsets"` // of mirrored partitions
	// By says where it would go on: ByGroup where sync_groups is on, else ByCheckpoint.
	By string `json:"by"`
	// Lose and Repeat are how many records of the target it would pass over or read
	// again, at most; exactly so many where AtMost is false. Offsets without an answer do
	// not count there but in Unknown.
	Lose    int64 `json:"lose"`
	Repeat  int64 `json:"repeat"`
	AtMost  bool  `json:"at_most"`
	Unknown int   `json:"unknown_offsets"`
	// NotCopied is how many source offsets the group has still to read that are not safe
	// on the target yet: lost if the source never comes back.
	NotCopied int64 `json:"not_copied"`
	// Error is why nothing can be said of the group.
	Error string `json:"error,omitempty"`
}

// Where a group goes on after it has failed over.
const (
	ByGroup      = "group"      // where the group on the target stands
	ByCheckpoint = "checkpoint" // where the checkpoints say
)

// Translations is the answer about a group, of each flow that follows it. Its JSON is a
// contract.
type Translations struct {
	Groups []GroupTranslation `json:"groups"`
	Errors []string           `json:"errors"` // of flows that cannot tell
}

// Lags is the answer about all groups. Its JSON is a contract.
type Lags struct {
	Groups []GroupLag `json:"groups"` // by flow, then name
	Errors []string   `json:"errors"` // of flows that cannot tell
}
