package failover

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"mirror/sidecar/config"
	"mirror/sidecar/groups"
	"mirror/sidecar/offsets"
)

const (
	// chunkGroups and chunkOffsets bound what is asked for at a time, and so what a round
	// holds in memory: some 4 MB.
	chunkGroups  = 100
	chunkOffsets = 8000
	// loadTime and writeTime bound reading the topic, and one write to it.
	loadTime  = 2 * time.Minute
	writeTime = 30 * time.Second
)

// round does what is to be done about all groups, a chunk at a time. An error ends
// it: what it has done until then stays, and the next one goes on from there. What is
// wrong with some groups only shows in the report.
func (e *Engine) round(ctx context.Context, c *config.Flow) error {
	began := time.Now()
	m := e.mirrored()
	if len(m.all) == 0 {
		e.upToDate(began)
		return nil
	}
	if m.target.Names[e.topic.Name()] {
		return fmt.Errorf("a topic is mirrored into %q, where checkpoints are kept: exclude it", e.topic.Name())
	}
	if err := e.load(ctx, c); err != nil {
		return err
	}
	if err := e.lookAfterTopic(ctx, c); err != nil {
		return err
	}
	e.mu.Lock()
	e.marks.renew(m.all)
	e.mu.Unlock()
	listed, listErr := e.source.List(ctx)
	if listed == nil {
		return listErr
	}
	var there map[string]groups.Group
	var thereErr error
	if c.Checkpoints.SyncGroups.On && len(listed) > 0 {
		there, thereErr = e.target.List(ctx)
	}
	names := e.names(c, listed, listErr == nil)
	e.source.Sort(names) // so that a chunk is one request
	t := newTally()
	for done := 0; done < len(names); {
		n := e.chunk(names[done:], len(m.all))
		views, err := e.look(ctx, names[done:done+n], m)
		if err == nil {
			err = e.write(ctx, views)
		}
		if err != nil {
			return err
		}
		if c.Checkpoints.SyncGroups.On {
			e.lookThere(ctx, views, m, there, false)
			e.notice(views)
			e.sync(ctx, views)
		}
		t.add(views, c.Checkpoints.SyncGroups.On)
		e.keep(views, listed, listErr == nil)
		if done += n; done < len(names) {
			if err := e.pace(ctx, c, began, done, len(names)); err != nil {
				return err
			}
		}
	}
	e.mu.Lock()
	t.report.updated = e.reported.updated
	e.reported = t.report
	e.mu.Unlock()
	if listErr == nil {
		e.upToDate(began)
	}
	e.source.Forget(func(name string) bool { return e.knows(name) })
	e.target.Forget(func(name string) bool { return e.knows(name) })
	e.soft(errors.Join(listErr, thereErr, t.trouble))
	return ctx.Err()
}

// upToDate keeps when all checkpoints were.
func (e *Engine) upToDate(at time.Time) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.reported.updated = at
}

// names are the groups to look at: those listed that are selected, and those that
// are remembered and not listed, to see whether they are gone. whole: the list is.
func (e *Engine) names(c *config.Flow, listed map[string]groups.Group, whole bool) (names []string) {
	selected := filter(c)
	for name, g := range listed {
		if name != "" && !g.Share() && selected.Selects(name) {
			names = append(names, name)
		}
	}
	if whole {
		e.mu.Lock()
		for name := range e.marks.groups {
			if _, there := listed[name]; !there {
				names = append(names, name)
			}
		}
		e.mu.Unlock()
	}
	slices.Sort(names)
	return names
}

// chunk is how many of the names to ask for at a time, by how many offsets they had, or
// others have; before any was read, by how many they may have of what is mirrored.
func (e *Engine) chunk(names []string, mirrored int) (n int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	usual := min(mirrored, chunkOffsets/10)
	if e.marks != nil && e.marks.usual > 0 {
		usual = e.marks.usual
	}
	for sum := 0; n < len(names) && n < chunkGroups; n++ {
		size := usual
		if g := e.marks.group(names[n]); g != nil && g.size > 0 {
			size = g.size
		}
		if sum += size; n > 0 && sum > chunkOffsets {
			break
		}
	}
	return n
}

// errStale ends a round that was begun with another config.
var errStale = errors.New("the config has changed")

// pace waits so that the chunks of a round are spread over most of its interval. What is
// switched off, or otherwise, is so for the chunks that are left.
func (e *Engine) pace(ctx context.Context, c *config.Flow, began time.Time, done, all int) error {
	share := time.Duration(float64(c.Checkpoints.Interval) * 0.8 * float64(done) / float64(all))
	wait := time.NewTimer(time.Until(began.Add(share)))
	defer wait.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-e.o.Changed:
			if e.stale(c) {
				return errStale
			}
		case <-wait.C:
			return nil
		}
	}
}

// keep remembers how many offsets groups have, and forgets those that are gone.
func (e *Engine) keep(views []*view, listed map[string]groups.Group, whole bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	sum := 0
	for _, v := range views {
		sum += v.size
	}
	e.marks.usual = max(sum/len(views), 1)
	for _, v := range views {
		_, there := listed[v.name]
		g := e.marks.group(v.name)
		if g == nil || v.err != nil {
			continue
		}
		if !there && whole && len(v.offsets) == 0 {
			if g.seen {
				e.counts.deleted++
				e.o.Log.Info("group is gone from the source, its checkpoints and its group on the target stay", "group", v.name)
			}
			delete(e.marks.groups, v.name)
			continue
		}
		g.seen, g.size = true, v.size
		e.marks.drop(g)
	}
}

func (e *Engine) knows(name string) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.marks.group(name) != nil
}

// soft shows what is wrong with some groups, and says it when it begins and ends.
func (e *Engine) soft(err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	was := e.ailing
	e.ailing = ""
	if err != nil {
		e.ailing = err.Error()
	}
	switch {
	case e.ailing != "" && was == "":
		e.o.Count()
		e.o.Log.Warn("some consumer groups cannot be followed, trying again", "err", err)
	case e.ailing == "" && was != "":
		e.o.Log.Info("all consumer groups are followed again")
	}
}

// load reads what is in the topic, at the start and when other groups are selected
// than before: what was written must not be written again, or gone behind.
func (e *Engine) load(ctx context.Context, c *config.Flow) error {
	chosen := chosen(c)
	e.mu.Lock()
	ready := e.marks != nil && e.loadedFor == chosen
	e.mu.Unlock()
	if ready {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, loadTime)
	defer cancel()
	id, _, err := e.topic.ID(ctx)
	if err != nil {
		return err
	}
	loaded, selected := newMarks(), filter(c)
	err = e.topic.Read(ctx, func(k offsets.Checkpoint, at time.Time) {
		if selected.Selects(k.Group) {
			loaded.written(k, at)
		}
	})
	if err != nil {
		return err
	}
	e.topicID, e.topicSeen = id, time.Now()
	e.mu.Lock()
	defer e.mu.Unlock()
	e.marks, e.loadedFor = loaded, chosen
	return nil
}

// chosen tells whether other groups are selected.
func chosen(c *config.Flow) string {
	var b strings.Builder
	for _, re := range c.Groups {
		fmt.Fprintf(&b, "+%s\n", re)
	}
	for _, re := range c.ExcludeGroups {
		fmt.Fprintf(&b, "-%s\n", re)
	}
	return b.String()
}

// lookAfterTopic looks each refresh whether the topic is the one that it was: what is
// remembered to be in it has to be written again to another.
func (e *Engine) lookAfterTopic(ctx context.Context, c *config.Flow) error {
	e.mu.Lock()
	n := e.marks.count()
	e.mu.Unlock()
	if n == 0 || time.Since(e.topicSeen) < c.Refresh {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, writeTime)
	defer cancel()
	id, exists, err := e.topic.ID(ctx)
	if err != nil {
		return err
	}
	was := e.topicID
	e.topicID, e.topicSeen = id, time.Now()
	if exists && (was == id || was == [16]byte{}) {
		return nil
	}
	e.o.Count()
	e.o.Log.Error("the topic of checkpoints was deleted or made again, and the checkpoints with it: writing those of all groups again", "topic", e.topic.Name())
	e.mu.Lock()
	defer e.mu.Unlock()
	e.marks.void()
	return nil
}
