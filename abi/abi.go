// Package abi is the contract mirror_v1 between the mirror and a WASM plugin:
// names, codes, and how frames and emits are laid out in memory. SPEC.md beside
// it is the normative text; this is the host's half of it in Go, and what the
// golden files in testdata were made with.
//
// All integers are little-endian. The package does no I/O and knows no engine.
package abi

import "strconv"

// Names of the contract.
const (
	// Module is the module that a guest imports the host's functions from.
	Module = "mirror_v1"
	// Prefix begins every export that the contract gives a meaning to.
	Prefix = "mirror_"

	// ExportMemory is the guest's memory.
	ExportMemory = "memory"
	// ExportInitialize is called first, where a language's runtime needs it.
	ExportInitialize = "_initialize"
	// ExportVersion gives the minor version that the guest was built for.
	ExportVersion = "mirror_abi_1"
	// ExportAlloc gives room for a frame.
	ExportAlloc = "mirror_alloc"
)

// Minor is the newest minor version that this package describes. A guest that was
// built for a newer one is refused.
const Minor = 1

// Hook is a function that a guest may export; doing so subscribes it. Its value
// is also the kind of the frame that the hook is given.
type Hook uint16

// The hooks of minor 1.
const (
	OnInit       Hook = 1
	OnPartitions Hook = 2
	OnCommit     Hook = 3
	OnGroups     Hook = 4
	OnTick       Hook = 5
	OnSave       Hook = 6
	OnRestore    Hook = 7
	OnClose      Hook = 8
)

var hookNames = [...]string{OnInit: "init", OnPartitions: "on_partitions", OnCommit: "on_commit", OnGroups: "on_groups",
	OnTick: "tick", OnSave: "save", OnRestore: "restore", OnClose: "close"}

// Hooks lists the hooks of minor 1.
func Hooks() []Hook {
	return []Hook{OnInit, OnPartitions, OnCommit, OnGroups, OnTick, OnSave, OnRestore, OnClose}
}

// Export is the name that a guest exports the hook under.
func (h Hook) Export() string { return Prefix + h.String() }

func (h Hook) String() string {
	if int(h) < len(hookNames) && h != 0 {
		return hookNames[h]
	}
	return "hook " + strconv.Itoa(int(h))
}

// Stride is the size of an entry of the hook's frames as this package writes them,
// in bytes; 0: they have none.
func (h Hook) Stride() int {
	switch h {
	case OnPartitions, OnTick:
		return PartitionSize
	case OnCommit:
		return CommitSize
	case OnGroups:
		return GroupSize
	}
	return 0
}

// Status is what a hook or an import returns. Zero is good, for an import also
// anything above.
type Status int32

// Statuses of guests and imports, and those that only the host gives.
const (
	OK          Status = 0
	Fatal       Status = -1 // cannot go on
	Retry       Status = -2 // a hook: drop what was emitted, call again with the same frame
	Reject      Status = -3 // not wanted, or not allowed by the config
	BadInput    Status = -4 // what was passed makes no sense
	Unsupported Status = -5 // this side does not have that
	NoMemory    Status = -6 // no room
	StateFull   Status = -7 // the partition's state is at its limit
	NotFound    Status = -8 // no such key

	Trap     Status = -100 // the instance trapped or exited
	Deadline Status = -101 // the call took too long
	Limit    Status = -102 // a limit was passed
)

var statusNames = map[Status]string{OK: "ok", Fatal: "fatal", Retry: "retry", Reject: "reject", BadInput: "bad input", Unsupported: "unsupported",
	NoMemory: "no memory", StateFull: "state full", NotFound: "not found", Trap: "trap", Deadline: "deadline", Limit: "limit"}

func (s Status) String() string {
	if n, ok := statusNames[s]; ok {
		return n
	}
	return "status " + strconv.Itoa(int(s))
}

// Known says whether the contract gives the status a meaning.
func (s Status) Known() bool {
	_, ok := statusNames[s]
	return ok
}

// Flags of a frame.
const (
	// Flush: the positions of the frame's partitions are about to be saved. What a
	// guest holds back for them it emits now.
	Flush uint16 = 1 << 0
	// Replay: the entries were not copied now. They are known, but nothing is to be
	// emitted for them.
	Replay uint16 = 1 << 1
)

// Event is what a partition entry tells.
type Event uint32

// The events. None is how a tick lists a partition.
const (
	None          Event = 0
	Assigned      Event = 1
	Revoked       Event = 2
	LogStartMoved Event = 3
	Recreated     Event = 4
	Truncated     Event = 5
)

// Levels of the import log.
const (
	LogDebug = 0
	LogInfo  = 1
	LogWarn  = 2
	LogError = 3
)

// Types of metrics, and what the import metric does to one.
const (
	MetricCounter = 0
	MetricGauge   = 1

	MetricAdd = 0
	MetricSet = 1
)

// Limits that are part of the contract, in bytes or pieces.
const (
	MaxFrame       = 1 << 20 // a frame, all of it
	MaxEntries     = 4096    // of a frame
	MaxEmits       = 4 << 20 // what one call of a hook emits, each with EmitCost more
	EmitCost       = 64
	MaxSave        = 960 << 10
	MaxSchema      = 64
	MaxStateKey    = 1024
	MaxStateValue  = 512 << 10
	StateCost      = 64   // what a key of a partition's state counts for, beside its bytes and its value's
	MaxText        = 4096 // of a log line or of fail; the rest is cut
	MaxMetricName  = 64   // the name of a metric, and that of a label
	MaxMetricValue = 128  // the value of a label
	MaxMetricPairs = 4    // labels of a series
)
