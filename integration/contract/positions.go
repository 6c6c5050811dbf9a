package contract

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/twmb/franz-go/pkg/kgo"
)

var positionScenarios = []Scenario{
	{Name: "positions", Run: positionsAreMirrorMakers},
	{Name: "first-position", Run: positionIsSavedBeforeTheFirstFetch},
}

// positionsTopic is where MirrorMaker keeps the positions of flows from "src".
const positionsTopic = "mm2-offsets.src.internal"

// position is the value of a position record. The first field is MirrorMaker's.
type position struct {
	Offset            *int64 `json:"offset"`
	ProducerID        *int64 `json:"producerId"`
	ProducerEpoch     *int16 `json:"producerEpoch"`
	Sequence          *int32 `json:"sequence"`
	TargetOffset      *int64 `json:"targetOffset"`
	TargetTopicID     string `json:"targetTopicId"`
	SourceTopicID     string `json:"sourceTopicId"`
	SourceLeaderEpoch *int32 `json:"sourceLeaderEpoch"`
}

// Positions has every position that was ever saved for a partition of a flow
// from "src", in order, and the partition of the positions topic that they are in.
func (e *Env) Positions(topic string, partition int32) (all []position, in int32) {
	e.Helper()
	key := fmt.Sprintf(`["MirrorSourceConnector",{"cluster":"src","partition":%d,"topic":"%s"}]`, partition, topic)
	in = -1
	for _, rs := range e.Read(e.Target, positionsTopic) {
		for _, r := range rs {
			if string(r.Key) != key {
				continue
			}
			if in >= 0 && in != r.Partition {
				e.Errorf("positions of %s/%d are in partitions %d and %d", topic, partition, in, r.Partition)
			}
			in = r.Partition
			all = append(all, e.parsePosition(r))
		}
	}
	if len(all) == 0 {
		e.Fatalf("no position with the key %s", key)
	}
	return all, in
}

var positionFields = []string{"offset", "producerEpoch", "producerId", "sequence", "sourceEpochs", "sourceLeaderEpoch", "sourceTopicId", "targetOffset", "targetTopicId"}

func (e *Env) parsePosition(r *kgo.Record) (p position) {
	e.Helper()
	var fields map[string]any
	if err := json.Unmarshal(r.Value, &fields); err != nil {
		e.Fatalf("position %s: %v", r.Value, err)
	}
	if got := slices.Sorted(maps.Keys(fields)); !slices.Equal(got, positionFields) {
		e.Fatalf("position %s has the fields %v, want %v", r.Value, got, positionFields)
	}
	if err := json.Unmarshal(r.Value, &p); err != nil {
		e.Fatalf("position %s: %v", r.Value, err)
	}
	if len(r.Headers) != 0 {
		e.Errorf("position %s has headers", r.Value)
	}
	return p
}

func positionsAreMirrorMakers(e *Env) {
	topic := e.Topic("t")
	e.Create(e.Source, topic, 1)
	m := e.Start()
	e.Put(e.Source, topic, Numbered(0, "x", 10)...)
	m.CaughtUp(topic)
	m.Stop()

	if n := len(e.Describe(e.Target, positionsTopic).Partitions); n != 25 {
		e.Errorf("%s has %d partitions, want 25", positionsTopic, n)
	}
	if got := e.Config(e.Target, positionsTopic, "cleanup.policy"); got != "compact" {
		e.Errorf("%s has cleanup.policy %q, want compact", positionsTopic, got)
	}
	all, _ := e.Positions(topic, 0)
	last := all[len(all)-1]
	if *last.Offset != 9 || *last.TargetOffset != 9 {
		e.Errorf("the last position is %d, at %d on the target; want 9 at 9", *last.Offset, *last.TargetOffset)
	}
	if *last.ProducerID < 0 || *last.ProducerEpoch < 0 || *last.Sequence != 9 || *last.SourceLeaderEpoch < 0 {
		e.Errorf("the last position is of producer %d, epoch %d, sequence %d, leader epoch %d; want sequence 9 and none below 0",
			*last.ProducerID, *last.ProducerEpoch, *last.Sequence, *last.SourceLeaderEpoch)
	}
	source, target := e.Describe(e.Source, topic).ID.String(), e.Describe(e.Target, m.TargetName(topic)).ID.String()
	if kafkaID(last.SourceTopicID) != kafkaID(source) || kafkaID(last.TargetTopicID) != kafkaID(target) {
		e.Errorf("the last position names the topics %s and %s, want %s and %s", last.SourceTopicID, last.TargetTopicID, source, target)
	}
}

// kafkaID is a topic id without the padding that some print.
func kafkaID(s string) string {
	return strings.NewReplacer("+", "-", "/", "_").Replace(strings.TrimRight(s, "="))
}

// The first thing that is ever written is a position of one before the first
// offset, with the producer id. After a restart it comes again: with the same id
// and sequence, which go on, or without resume under a new id.
func positionIsSavedBeforeTheFirstFetch(e *Env) {
	topic := e.Topic("t")
	e.Create(e.Source, topic, 2)
	e.Put(e.Source, topic, Numbered(0, "x", 10)...)
	e.Trim(e.Source, topic, 0, 6)
	m := e.Start()
	m.CaughtUp(topic)
	m.Stop()
	for p, want := range map[int32]int64{0: 5, 1: -1} {
		all, _ := e.Positions(topic, p)
		if got := *all[0].Offset; got != want {
			e.Errorf("the first position of partition %d is %d, want %d", p, got, want)
		}
	}
	e.positionComesAgain(topic, true)
	e.positionComesAgain(topic, false)
}

func (e *Env) positionComesAgain(topic string, resume bool) {
	e.Helper()
	before := map[int32][]position{}
	for p := range int32(2) {
		before[p], _ = e.Positions(topic, p)
	}
	m := e.Start(Flow{Keys: fmt.Sprintf("resume = %v", resume)})
	e.Put(e.Source, topic, append(Values(0, "new"), Values(1, "new")...)...)
	m.CaughtUp(topic)
	m.Stop()
	for p, old := range before {
		all, _ := e.Positions(topic, p)
		if len(all) == len(old) {
			e.Errorf("no position of partition %d was saved after the restart", p)
			continue
		}
		last, first := old[len(old)-1], all[len(old)]
		if *first.Offset != *last.Offset {
			e.Errorf("partition %d: after the restart comes position %d, want %d again", p, *first.Offset, *last.Offset)
		}
		same := *first.ProducerID == *last.ProducerID && *first.ProducerEpoch == *last.ProducerEpoch
		if same != resume {
			e.Errorf("partition %d, resume %v: producer id %d, before the restart %d", p, resume, *first.ProducerID, *last.ProducerID)
		}
		if resume && *first.Sequence != *last.Sequence {
			e.Errorf("partition %d: sequence %d after the restart, want %d", p, *first.Sequence, *last.Sequence)
		}
	}
}
