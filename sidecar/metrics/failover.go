package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"mirror/sidecar/status"
)

// The metrics of consumer groups, their checkpoints and what is committed for them.
var (
	checkpointsEnabled = flowDesc("mirror_checkpoints_enabled",
		"1 while groups are followed and checkpoints are written, else 0.")
	checkpointsUpdated = flowDesc("mirror_checkpoints_updated_timestamp_seconds",
		"Unix time at which the last round over all groups began that brought every checkpoint up to date; absent before the first.")
	checkpointsCount = flowDesc("mirror_checkpoints",
		"Checkpoints in the topic of groups that exist.")
	checkpointsWritten = flowDesc("mirror_checkpoints_written_total",
		"Checkpoints written.")
	groupsByOutcome = flowDesc("mirror_groups",
		"Groups of the source with offsets of mirrored partitions, by the worst outcome of their translation: exact, bound or none.", "outcome")
	groupsUnreadable = flowDesc("mirror_groups_unreadable",
		"Groups of the source whose offsets could not be read in the last round.")
	groupsDeleted = flowDesc("mirror_groups_deleted_total",
		"Groups that have gone from the source; what was written for them stays.")
	groupOffsets = flowDesc("mirror_group_offsets",
		"Offsets of groups, by the outcome of their translation.", "outcome")
	groupInexact = flowDesc("mirror_group_offsets_inexact",
		"Offsets of groups whose translation is not exact, by reason.", "reason")
	groupHeld = flowDesc("mirror_group_offsets_held",
		"Offsets that were not committed to their group on the target in the last round, by reason.", "reason")
	groupCommits = flowDesc("mirror_group_commits_total",
		"Offsets committed to groups on the target.")
	groupRefused = flowDesc("mirror_group_commits_refused_total",
		"Offsets that the target would not commit, by reason.", "reason")
	groupExpired = flowDesc("mirror_group_commits_expired_total",
		"Offsets that were committed again because they were gone from the target.")
	groupCrossed = flowDesc("mirror_group_commits_crossed_total",
		"Groups to which a member came and went around a commit, so that an offset of its own may have been overwritten.")

	failoverDescs = []*prometheus.Desc{checkpointsEnabled, checkpointsUpdated, checkpointsCount, checkpointsWritten, groupsByOutcome, groupsUnreadable,
		groupsDeleted, groupOffsets, groupInexact, groupHeld, groupCommits, groupRefused, groupExpired, groupCrossed}
)

func collectFailover(to chan<- prometheus.Metric, f *status.Flow) {
	s := &f.Failover
	gauge(to, checkpointsEnabled, one(s.Enabled), f.Name)
	if !s.Updated.IsZero() {
		gauge(to, checkpointsUpdated, float64(s.Updated.UnixMilli())/1000, f.Name)
	}
	gauge(to, checkpointsCount, float64(s.Checkpoints), f.Name)
	counter(to, checkpointsWritten, s.Written, f.Name)
	for _, o := range status.Outcomes {
		gauge(to, groupsByOutcome, float64(s.Groups[o]), f.Name, o)
		gauge(to, groupOffsets, float64(s.Offsets[o]), f.Name, o)
	}
	gauge(to, groupsUnreadable, float64(s.Unreadable), f.Name)
	counter(to, groupsDeleted, s.Deleted, f.Name)
	for _, why := range status.InexactReasons {
		gauge(to, groupInexact, float64(s.Inexact[why]), f.Name, why)
	}
	for _, why := range status.HeldReasons {
		gauge(to, groupHeld, float64(s.Held[why]), f.Name, why)
	}
	counter(to, groupCommits, s.Committed, f.Name)
	for _, why := range status.RefusedReasons {
		counter(to, groupRefused, s.Refused[why], f.Name, why)
	}
	counter(to, groupExpired, s.Expired, f.Name)
	counter(to, groupCrossed, s.Crossed, f.Name)
}
