package contract

import (
	bigendian "encoding/binary"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
)

// CommitGroup commits offsets of a topic's partitions, in their order, for a group
// that has no members; below zero: none of that partition.
func (e *Env) CommitGroup(c *Cluster, group, topic string, offsets ...int64) {
	e.Helper()
	all := kadm.Offsets{}
	for p, at := range offsets {
		if at >= 0 {
			all.Add(kadm.Offset{Topic: topic, Partition: int32(p), At: at, LeaderEpoch: -1, Metadata: fmt.Sprintf("%s at %d", group, at)})
		}
	}
	e.Eventually("offsets of group "+group+" to be committed", func() string {
		rs, err := c.admin.CommitOffsets(e.ctx, group, all)
		return text(errors.Join(err, rs.Error()))
	})
}

// GroupOffsets has what a group has committed; nothing where there is no such group.
func (e *Env) GroupOffsets(c *Cluster, group string) (rs kadm.OffsetResponses) {
	e.Helper()
	e.Eventually("the offsets of group "+group, func() string {
		var err error
		if rs, err = c.admin.FetchOffsets(e.ctx, group); errors.Is(err, kerr.GroupIDNotFound) {
			return ""
		}
		return text(errors.Join(err, rs.Error()))
	})
	return rs
}

// text is an error's; coordinators move, and idle connections are closed.
func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// ScatterGroups makes n groups that have each committed an offset of every partition
// of the topics, anywhere from one offset to another, also where there is no record.
func (e *Env) ScatterGroups(rng *rand.Rand, name string, n int, from, to map[string][]int64) (groups []string) {
	e.Helper()
	for i := range n {
		groups = append(groups, e.Topic(fmt.Sprintf("%s-%d", name, i)))
		for _, t := range slices.Sorted(maps.Keys(to)) {
			var at []int64
			for p, end := range to[t] {
				at = append(at, from[t][p]+rng.Int64N(end-from[t][p]+1))
			}
			e.CommitGroup(e.Source, groups[i], t, at...)
		}
	}
	return groups
}

// Checkpoint is a record of a topic of checkpoints, as MirrorMaker writes them.
type Checkpoint struct {
	Group                string
	Topic                string // on the target
	Partition            int32
	Upstream, Downstream int64
	Metadata             string
}

// Checkpoints has all that were ever written for a flow from an alias about topics
// of this scenario, in order.
func (e *Env) Checkpoints(alias string) (all []Checkpoint) {
	e.Helper()
	name := alias + ".checkpoints.internal"
	if !e.Exists(e.Target, name) {
		return nil
	}
	for _, r := range e.Read(e.Target, name)[0] {
		k, v := fields{left: r.Key}, fields{left: r.Value}
		c := Checkpoint{Group: k.text(), Topic: k.text(), Partition: int32(k.number(4))}
		version := v.number(2)
		c.Upstream, c.Downstream, c.Metadata = v.number(8), v.number(8), v.text()
		if version != 0 || k.short || v.short || len(k.left)+len(v.left) > 0 {
			e.Fatalf("%s: the record at %d is no checkpoint: %x, %x", name, r.Offset, r.Key, r.Value)
		}
		if strings.Contains(c.Topic, e.prefix+"_") {
			all = append(all, c)
		}
	}
	return all
}

// LastCheckpoints are those that a reader of the topic ends up with: by group, topic
// on the target, and partition.
func (e *Env) LastCheckpoints(alias string) map[string]map[string]map[int32]Checkpoint {
	e.Helper()
	last := map[string]map[string]map[int32]Checkpoint{}
	for _, c := range e.Checkpoints(alias) {
		if last[c.Group] == nil {
			last[c.Group] = map[string]map[int32]Checkpoint{}
		}
		if last[c.Group][c.Topic] == nil {
			last[c.Group][c.Topic] = map[int32]Checkpoint{}
		}
		last[c.Group][c.Topic][c.Partition] = c
	}
	return last
}

// fields takes apart what Kafka's own schemas have written.
type fields struct {
	left  []byte
	short bool // something was missing
}

func (f *fields) take(n int) []byte {
	if n > len(f.left) {
		f.short, f.left = true, nil
		return make([]byte, n)
	}
	b := f.left[:n]
	f.left = f.left[n:]
	return b
}

func (f *fields) number(size int) int64 {
	b := f.take(size)
	switch size {
	case 2:
		return int64(bigendian.BigEndian.Uint16(b))
	case 4:
		return int64(bigendian.BigEndian.Uint32(b))
	default:
		return int64(bigendian.BigEndian.Uint64(b))
	}
}

func (f *fields) text() string { return string(f.take(int(f.number(2)))) }

// GroupsFollow waits until each of the groups has on the target, for each partition
// of the topics, an offset at which it goes on exactly where it is on the source, with
// its metadata and no leader epoch. The topics have to be caught up.
func (f *Flow) GroupsFollow(topics, groups []string) {
	e := f.e
	e.Helper()
	copied := map[string][]Copied{}
	for _, t := range topics {
		copied[t] = f.Copied(t)
	}
	for _, g := range groups {
		source, left := e.GroupOffsets(f.Source, g), ""
		follows := func() string {
			target := e.GroupOffsets(f.Target, g)
			for _, t := range topics {
				for p, c := range copied[t] {
					was, ok := source.Lookup(t, int32(p))
					if !ok || was.At < 0 {
						continue
					}
					now, ok := target.Lookup(f.TargetName(t), int32(p))
					if !ok || now.At < 0 {
						return fmt.Sprintf("it is at %d of %s/%d and has nothing on the target", was.At, t, p)
					}
					if m := c.Moved(was.At, now.At); m != (Moved{}) {
						return fmt.Sprintf("it is at %d of %s/%d and at %d on the target: %v", was.At, t, p, now.At, m)
					}
					if now.LeaderEpoch != -1 || now.Metadata != was.Metadata {
						return fmt.Sprintf("it has %q with leader epoch %d for %s/%d, want %q with -1", now.Metadata, now.LeaderEpoch, t, p, was.Metadata)
					}
				}
			}
			return ""
		}
		f.Wait("group "+g+" to follow", func() string {
			if e.ctx.Err() == nil { // else nobody answers any more
				left = follows()
			}
			return left
		})
	}
}
