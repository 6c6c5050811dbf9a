package state

import (
	"context"
	"errors"
	"maps"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"mirror/plugins"
)

// ErrTakenOver is the cause of an error of Write's when a mirror that began later keeps
// the same state.
var ErrTakenOver = errors.New("another mirror, which began later, keeps the plugin's state now")

// errAnother fails a write to a topic that has been made again, so that whoever writes
// comes back with all that was in the one before, and no position is saved until then.
var errAnother = errors.New("the topic was deleted or made again: writing all that was in it again")

// writeTime is how long one Write may take, and a second more for every MiB: all there
// is is written at once when the topic was lost.
const writeTime = 10 * time.Second

// Write implements plugins.Store.
func (t *Topic) Write(ctx context.Context, changes []plugins.Change) error {
	if err := t.take(ctx); err != nil {
		return err
	}
	defer t.leave()
	if err := t.write(ctx, changes); err != nil {
		return t.explain("write", err)
	}
	return nil
}

func (t *Topic) write(ctx context.Context, changes []plugins.Change) error {
	size := 0
	for _, c := range changes {
		size += len(c.Value)
		if s := t.seen[c.Key]; s.compareRun(t.run) > 0 { // another mirror had it
			t.run = newStamp(s.epoch + 1)
		}
	}
	records := make([]*kgo.Record, len(changes))
	for i, c := range changes {
		t.run.write++
		records[i] = record(t.o.Name, t.o.Schema, c, t.run)
	}
	ctx, cancel := context.WithTimeout(ctx, writeTime+time.Duration(size>>20)*time.Second)
	defer cancel()
	t.another = false
	if err := t.writer.Write(ctx, records, t.prepare); err != nil {
		return err
	}
	if err := t.settle(ctx, records); err != nil {
		return err
	}
	if t.another {
		return errAnother
	}
	return nil
}

// settle looks at the offsets of what was written. Others in between are those of a
// predecessor that has not noticed yet, or of a request that was given up: their keys
// are written again.
func (t *Topic) settle(ctx context.Context, records []*kgo.Record) error {
	next, own, about, gaps := map[int32]int64{}, map[int32]map[int64]bool{}, map[plugins.Key]bool{}, false
	for _, r := range records {
		n := r.Partition
		e, _ := parse(r) // it was made of one
		about[e.key] = true
		if own[n] == nil {
			own[n], next[n] = map[int64]bool{}, t.next[n]
		}
		if r.Offset < next[n] { // without a topic id nothing else tells
			t.lost()
			next[n] = 0
		}
		gaps = gaps || r.Offset > next[n]
		own[n][r.Offset], next[n] = true, r.Offset+1
	}
	if gaps {
		read, err := t.between(ctx, own, about)
		if err != nil {
			return err
		}
		maps.Copy(next, read)
	}
	maps.Copy(t.next, next)
	for _, r := range records {
		e, _ := parse(r)
		t.seen[e.key] = e.stamp
	}
	return nil
}

// between reads what others have written between, or after, what is ours. What is about
// partitions that this mirror has is a predecessor's, a successor's, or late; all else is
// another's that runs beside it and copies other topics. The result is where it has read to.
func (t *Topic) between(ctx context.Context, own map[int32]map[int64]bool, about map[plugins.Key]bool) (map[int32]int64, error) {
	from := map[int32]int64{}
	for n := range int32(Partitions) {
		from[n] = t.next[n]
	}
	taken := false
	ends, err := t.o.Cluster.Read(ctx, t.o.Name, from, func(r *kgo.Record) {
		e, err := parse(r)
		if err != nil || e.schema != t.o.Schema || own[r.Partition][r.Offset] {
			return
		}
		switch run := e.stamp.compareRun(t.run); {
		case !about[e.key] && t.beside(e):
		case run > 0:
			taken = true
		case run < 0 || e.stamp.write < t.seen[e.key].write:
			t.of(e.key).Doubt(e.name)
		}
	})
	if err == nil && taken {
		err = ErrTakenOver
	}
	return ends, err
}

// beside takes in what another mirror writes about a partition, unless a lane has that.
func (t *Topic) beside(e entry) bool {
	kept := t.of(e.key)
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.held[e.key] {
		return false
	}
	t.load(kept, e)
	kept.Loaded()
	return true
}

// Forget removes what is kept of a source topic that is gone, unless a lane has it.
func (t *Topic) Forget(ctx context.Context, topic string) error {
	if err := t.take(ctx); err != nil {
		return err
	}
	defer t.leave()
	var changes []plugins.Change
	var keys []plugins.Key
	t.mu.Lock()
	for k, kept := range t.kept {
		if k.Topic != topic || t.held[k] {
			continue
		}
		keys = append(keys, k)
		for _, name := range kept.Doubted() {
			changes = append(changes, plugins.Change{Key: k, TopicID: kept.TopicID(), Name: []byte(name)})
		}
		for name := range kept.Pairs() {
			changes = append(changes, plugins.Change{Key: k, TopicID: kept.TopicID(), Name: name})
		}
	}
	t.mu.Unlock()
	if len(changes) > 0 {
		if err := t.write(ctx, changes); err != nil {
			return t.explain("remove", err)
		}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, k := range keys {
		if t.held[k] { // it is back
			t.kept[k].DoubtAll()
		} else {
			delete(t.kept, k)
			delete(t.seen, k) // whatever is written of it from now on has a later stamp
		}
	}
	return nil
}
