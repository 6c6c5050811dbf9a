package batch

// Path is the way that a batch takes to the target.
type Path uint8

// The paths.
const (
	PathRaw      Path = iota // as it is, with a rewritten header
	PathReencode             // opened and made anew
	PathSkip                 // not at all: the position moves past it
)

// String names the path, as a metric's label.
func (p Path) String() string {
	switch p {
	case PathRaw:
		return "raw"
	case PathReencode:
		return "reencode"
	}
	return "skip"
}

// Reason says why a batch does not cross raw, as a metric's label. It is empty for one that does.
type Reason string

// The reasons, in the order in which they are looked for.
const (
	ReasonControl       Reason = "control"         // skip: control records belong to the source's log
	ReasonBefore        Reason = "before"          // skip: all of it is before the fetch offset
	ReasonAborted       Reason = "aborted"         // skip: data of an aborted transaction
	ReasonLegacy        Reason = "legacy"          // re-encode: magic 0 or 1
	ReasonEmpty         Reason = "empty"           // skip: the cleaner left the header alone
	ReasonCut           Reason = "cut"             // re-encode: begins before the fetch offset
	ReasonHoles         Reason = "holes"           // re-encode: the cleaner took records out
	ReasonLogAppendTime Reason = "log_append_time" // re-encode: the target would show other timestamps
	ReasonOversize      Reason = "oversize"        // re-encode: larger than the target topic takes; split it
)

// ReasonSmall is no reason of Decide: small compressed batches that wait are made one, by [Concat].
const ReasonSmall Reason = "small"

// Conditions is what decides the path of a batch, beside the batch itself.
type Conditions struct {
	// FetchOffset is the first source offset that is still wanted.
	FetchOffset int64
	// MaxBytes is the target topic's max.message.bytes, 0 when it is not known. A broker counts the whole batch
	// with its 12-byte prefix.
	MaxBytes int
	// TargetLogAppendTime tells that the target topic sets timestamps itself.
	TargetLogAppendTime bool
	// Aborted is what [Aborted.Covers] said.
	Aborted bool
}

// Decide tells which way a verified batch takes, and why if not raw. It looks at the header alone.
func Decide(b Batch, c Conditions) (Path, Reason) {
	switch {
	case b.Control(): // first of all: once the attributes are masked, a marker passes as a record
		return PathSkip, ReasonControl
	case b.LastOffset() < c.FetchOffset:
		return PathSkip, ReasonBefore
	case c.Aborted:
		return PathSkip, ReasonAborted
	case b.legacy():
		return PathReencode, ReasonLegacy
	case b.Count() == 0:
		return PathSkip, ReasonEmpty
	case b.BaseOffset() < c.FetchOffset:
		return PathReencode, ReasonCut
	case !b.Dense():
		return PathReencode, ReasonHoles
	case b.LogAppendTime() && !c.TargetLogAppendTime:
		return PathReencode, ReasonLogAppendTime
	case c.MaxBytes > 0 && len(b) > c.MaxBytes:
		return PathReencode, ReasonOversize
	}
	return PathRaw, ""
}
