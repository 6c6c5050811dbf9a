// Package status is what a running mirror says of itself: one model, filled by
// the pipeline, shown by /status (its JSON is a written contract), by /metrics
// and by the demo's table.
package status

import "time"

// Report is the whole process.
type Report struct {
	Version string    `json:"version"`
	Started time.Time `json:"started"`
	Ready   bool      `json:"ready"`
	Reasons []string  `json:"reasons"` // why it is not ready; empty when it is
	// Warnings are for somebody to see to, and make nothing unready.
	Warnings []string `json:"warnings"`
	Config   Config   `json:"config"`
	Flows    []Flow   `json:"flows"`
}

// Flow is one direction, from a source cluster to a target cluster.
type Flow struct {
	Name  string `json:"name"` // "primary->backup"
	From  string `json:"from"`
	To    string `json:"to"`
	State State  `json:"state"`
	// Reason says what a flow that is starting waits for, or why it stalled.
	Reason        string    `json:"reason,omitempty"`
	Lanes         int       `json:"lanes"`
	MemoryInUse   int64     `json:"memory_in_use_bytes"`
	MemoryLimit   int64     `json:"memory_limit_bytes"`
	PositionsSave time.Time `json:"positions_saved"` // last time all positions were on the target
	// PositionsProblem is what is wrong with the topic of positions, or with
	// saving them.
	PositionsProblem string      `json:"positions_problem,omitempty"`
	Topics           []Topic     `json:"topics"`     // only those with a problem
	Partitions       []Partition `json:"partitions"` // by source topic, then number
	Plugins          []Plugin    `json:"plugins"`    // in the config's order
	Failover         Failover    `json:"failover"`
	// Errors counts what went wrong and was retried, by kind (see ErrorKinds).
	Errors map[string]uint64 `json:"errors"`
	// Latency is how many seconds after its timestamp a record was safe on the
	// target: the youngest one of each batch, when the batch was acknowledged.
	Latency Histogram `json:"latency"`
}

// Histogram counts observations by their size, in seconds.
type Histogram struct {
	Count   uint64   `json:"count"`
	Sum     float64  `json:"sum_seconds"`
	Buckets []Bucket `json:"buckets"` // by Most
}

// Bucket counts the observations that are not larger than Most, those of the
// smaller buckets included.
type Bucket struct {
	Most  float64 `json:"le"` // seconds
	Count uint64  `json:"count"`
}

// State is the state of a flow or a partition.
type State string

const (
	Starting State = "starting" // not copying yet: no leader, no position
	Running  State = "running"
	Stalled  State = "stalled" // waits for somebody to act; retried now and then
	Stopping State = "stopping"
)

// Topic is a selected source topic that cannot be mirrored at the moment.
type Topic struct {
	Source string `json:"source"`
	Target string `json:"target"`
	Reason string `json:"reason"`
}

// Partition is one source partition and the target partition of the same number.
type Partition struct {
	Topic     string `json:"topic"`
	Target    string `json:"target"`
	Partition int32  `json:"partition"`
	Lane      int    `json:"lane"`
	State     State  `json:"state"`
	Reason    string `json:"reason,omitempty"`
	// StalledAt is the source offset that a stalled partition cannot get past,
	// -1 otherwise.
	StalledAt int64 `json:"stalled_at"`
	// Position is the last source offset that is safe on the target, -1: none.
	Position int64 `json:"position"`
	// SourceEnd is the end of what may be copied: the source's last stable
	// offset when reading committed, its high watermark otherwise; -1: not known.
	SourceEnd int64 `json:"source_end"`
	// Lag is SourceEnd - (Position + 1), in offsets, 0 when SourceEnd is not known.
	Lag int64 `json:"lag"`
	// LagSeconds is the age of the oldest record that may be copied and is not yet
	// safe on the target, 0 where there is none or SourceEnd is not known: by its
	// timestamp or, where that is later, from when nothing was last seen to wait.
	LagSeconds float64 `json:"lag_seconds"`
	// LastRecord is the timestamp of the last record copied, as its producer or the
	// source's broker set it; zero where there is none.
	LastRecord time.Time `json:"last_record,omitzero"`
	// Lost counts the source offsets that retention took before they were copied.
	Lost uint64 `json:"lost_offsets"`
	// Repeats counts records that may be on the target twice: it held them after
	// the saved position, and they could not be matched with the source.
	Repeats uint64 `json:"possibly_repeated"`
	// Merging says that batches are merged now because they wait.
	Merging bool `json:"merging"`
	// Isolated says that the target's followers are slow to store it, so that it has
	// a connection other than most.
	Isolated bool `json:"isolated"`
	// Records and Bytes (compressed, as stored) acknowledged by the target.
	Records uint64 `json:"records"`
	Bytes   uint64 `json:"bytes"`
	// Batches counts source batches by the path they took (see Paths).
	Batches map[string]uint64 `json:"batches"`
	// Paths says more of each path, and of each reason to take it.
	Paths []Count `json:"paths"`
}

// Count is what took one path for one reason.
type Count struct {
	Path string `json:"path"`
	// Reason is why a batch was not just passed on; empty for raw and merged.
	// Skipped: control, aborted, empty (the cleaner left no record), before (the
	// position was past it), stored (the target was found to hold it, at resume).
	// Reencoded: legacy (magic 0 or 1), cut (begins before the position), holes (the
	// cleaner took records out), log_append_time (the target would show other
	// timestamps), oversize (for the target topic), small (recompressed with
	// others, on a long link).
	Reason string `json:"reason,omitempty"`
	// Batches are the source's. Records and Bytes (compressed) are as the target
	// acknowledged them, and as the source has them where they are skipped.
	Batches uint64 `json:"batches"`
	Records uint64 `json:"records"`
	Bytes   uint64 `json:"bytes"`
}

// Paths of a source batch, in the order of Partition counters.
const (
	PathRaw       = "raw"       // crossed as the bytes it came in
	PathMerged    = "merged"    // its records were copied, undecoded, into a larger batch
	PathReencoded = "reencoded" // decoded and encoded again
	PathSkipped   = "skipped"   // not for the target, or there already
)

// ReasonStored is why records are skipped that the target was found to hold
// after the saved position. (The other reasons are those of package batch.)
const ReasonStored = "stored"

// Paths lists all paths.
var Paths = []string{PathRaw, PathMerged, PathReencoded, PathSkipped}

// Kinds of errors.
const (
	ErrorSourceConnection = "source_connection" // dial, cut, timeout
	ErrorTargetConnection = "target_connection"
	ErrorFetch            = "fetch"   // an error code in a fetch response
	ErrorProduce          = "produce" // an error code in a produce response
	ErrorCorrupt          = "corrupt" // a batch whose CRC or structure is wrong
	ErrorRefused          = "refused" // the target refuses a batch for its content
	ErrorPositions        = "positions"
	ErrorResume           = "resume" // a target's tail that cannot be matched: records may be repeated
	ErrorPlugin           = "plugin" // a plugin has halted a partition, or what it emits cannot be written
	ErrorTopics           = "topics" // discovery, creation
	ErrorGroups           = "groups" // reading groups, checkpoints, commits for groups on the target
	// What the keys on_data_loss, on_recreated and on_lost_positions are about, whether they halt or not.
	ErrorDataLoss      = "data_loss"      // records gone before they were copied, or from the target after it had acknowledged them
	ErrorRecreated     = "recreated"      // a source topic that was made again, or truncated
	ErrorLostPositions = "lost_positions" // a target with records and without a position
)

// ErrorKinds lists all kinds of errors.
var ErrorKinds = []string{ErrorSourceConnection, ErrorTargetConnection, ErrorFetch, ErrorProduce,
	ErrorCorrupt, ErrorRefused, ErrorPositions, ErrorResume, ErrorPlugin, ErrorTopics, ErrorGroups, ErrorDataLoss, ErrorRecreated, ErrorLostPositions}

// PluginStates lists what a plugin may be doing.
var PluginStates = []string{"running", "retrying", "halted", "off"}

// Plugin is a commit hook of a flow, over all its lanes.
type Plugin struct {
	Name       string   `json:"name"`
	Path       string   `json:"path"`
	SHA256     string   `json:"sha256"`
	Hooks      []string `json:"hooks"`
	Generation uint64   `json:"generation"` // rises with each reload that changes plugins
	State      string   `json:"state"`      // running, retrying, halted, off
	Reason     string   `json:"reason,omitempty"`
	// Halted is the number of partitions that it has halted one by one, Waiting what
	// it is still to be told of all of them, in ranges.
	Halted  int `json:"halted_partitions"`
	Waiting int `json:"waiting"`
	// Since the generation was loaded: calls by hook and the time that they took,
	// failures by status, ranges that it was not told because of its policy, and so on.
	Calls    map[string]uint64  `json:"calls"`
	Seconds  map[string]float64 `json:"seconds"`
	Failures map[string]uint64  `json:"failures"`
	Emits    uint64             `json:"emits"`
	Skipped  uint64             `json:"skipped_ranges"`
	// Memory is that of all instances.
	Memory int64 `json:"memory_bytes"`
	// StateBytes and StateKeys are what it keeps of all partitions, the bytes as
	// limits.state counts them; StateRefused what it put and there was no room for.
	StateBytes   int64  `json:"state_bytes"`
	StateKeys    int    `json:"state_keys"`
	StateRefused uint64 `json:"state_refused"`
	// Series are metrics of the plugin's own.
	Series []Series `json:"series"`
}

// Series is a metric that a plugin has defined.
type Series struct {
	Name    string `json:"name"` // with the plugin's labels, as in name{key="value"}
	Counter bool   `json:"counter"`
	Lane    int    `json:"lane"` // of a gauge; counters are summed over the lanes
	Value   int64  `json:"value"`
}
