package abi

// Commit is an entry of an on_commit frame: source offsets, and what became of them.
type Commit struct {
	Topic       string // source topic
	TargetTopic string
	Partition   int32 // source partition
	// TargetPartition is the partition of TargetTopic.
	TargetPartition int32

	SrcFirst, SrcLast int64 // inclusive
	DstFirst, DstLast int64 // inclusive; -1: nothing was written
	MaxTimestamp      int64 // of the records, ms; -1: unknown or none
	Records           uint32
	Dropped           uint32 // left out on purpose
	LeaderEpoch       int32  // of the source; -1: unknown
}

// Partition is an entry of an on_partitions or a tick frame.
type Partition struct {
	Topic       string // source topic
	TargetTopic string
	Partition   int32
	Event       Event

	LogStart  int64 // first offset of the source's log; -1: unknown
	Position  int64 // last source offset that is safe on the target; -1: none
	TargetEnd int64 // next offset of the target partition; -1: unknown

	TopicID, TargetTopicID [16]byte // zero: the cluster has none
}

// Group is an entry of an on_groups frame: what a source group has committed.
type Group struct {
	Group, Topic, Metadata string
	Partition              int32
	Offset                 int64 // next to read
	LogStart               int64 // first offset of the source's log; -1: unknown
	Position               int64 // last source offset that is safe on the target; -1: none
	TargetEnd              int64 // next offset of the target partition; -1: unknown
	LeaderEpoch            int32 // as committed; -1: none
}

// Commit reads entry i of an on_commit frame.
func (f Frame) Commit(i int) Commit {
	e, t := f.entry(i), textFields(OnCommit)
	return Commit{
		SrcFirst: i64(e, 0), SrcLast: i64(e, 8), DstFirst: i64(e, 16), DstLast: i64(e, 24), MaxTimestamp: i64(e, 32),
		Topic: f.text(e, t[0]), TargetTopic: f.text(e, t[1]),
		Partition: i32(e, 52), TargetPartition: i32(e, 56),
		Records: le.Uint32(e[60:]), Dropped: le.Uint32(e[64:]), LeaderEpoch: i32(e, 68),
	}
}

// Partition reads entry i of an on_partitions or a tick frame.
func (f Frame) Partition(i int) Partition {
	e, t := f.entry(i), textFields(OnPartitions)
	return Partition{
		LogStart: i64(e, 0), Position: i64(e, 8), TargetEnd: i64(e, 16),
		Topic: f.text(e, t[0]), TargetTopic: f.text(e, t[1]),
		Partition: i32(e, 36), Event: Event(le.Uint32(e[40:])),
		TopicID: [16]byte(e[48:64]), TargetTopicID: [16]byte(e[64:80]),
	}
}

// Group reads entry i of an on_groups frame.
func (f Frame) Group(i int) Group {
	e, t := f.entry(i), textFields(OnGroups)
	return Group{
		Offset: i64(e, 0), LogStart: i64(e, 8), Position: i64(e, 16), TargetEnd: i64(e, 24),
		Group: f.text(e, t[0]), Topic: f.text(e, t[1]), Metadata: f.text(e, t[2]),
		Partition: i32(e, 44), LeaderEpoch: i32(e, 56),
	}
}

func i64(b []byte, at int) int64 { return int64(le.Uint64(b[at:])) }
func i32(b []byte, at int) int32 { return int32(le.Uint32(b[at:])) }
