package compare

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// Topic is one topic to compare.
type Topic struct {
	Source, Target string // its name on each side
	// Compacted compares the last record of each key, not each record; see
	// the type Compacted.
	Compacted bool
}

// Options say what to compare.
type Options struct {
	// Source and Target are clients of the two clusters. They are used for
	// requests only: their own consuming and producing is not disturbed.
	Source, Target *kgo.Client
	Topics         []Topic
	// ReadUncommitted reads the source's aborted and open transactions too,
	// for a mirror that copies them. The target is read committed always.
	ReadUncommitted bool
}

// Comparison reads two clusters and compares as it goes, until Finish or Stop.
type Comparison struct {
	partitions []*partition
	sides      [2]*side
	stop       context.CancelFunc
	work       sync.WaitGroup
}

// Start begins to compare the partitions that the source topics have now, from
// their beginning, and goes on with what is written meanwhile, until Finish,
// Stop or the end of ctx; one of the two must be called. The target topics may
// appear later.
func Start(ctx context.Context, o Options) (*Comparison, error) {
	var sources []string
	for _, t := range o.Topics {
		sources = append(sources, t.Source)
	}
	found, err := describe(ctx, o.Source, sources)
	if err != nil {
		return nil, fmt.Errorf("compare: source topics: %w", err)
	}
	c := &Comparison{}
	for _, t := range o.Topics {
		ps := found[t.Source].partitions
		if len(ps) == 0 {
			return nil, fmt.Errorf("compare: topic %s is not on the source", t.Source)
		}
		for number := range int32(len(ps)) {
			c.partitions = append(c.partitions, newPartition(t, number))
		}
	}
	ctx, c.stop = context.WithCancel(ctx)
	c.sides[sourceSide] = newSide(sourceSide, o.Source, c, o.ReadUncommitted)
	c.sides[targetSide] = newSide(targetSide, o.Target, c, false)
	c.sides[sourceSide].other, c.sides[targetSide].other = c.sides[targetSide], c.sides[sourceSide]
	for _, s := range c.sides {
		c.work.Go(func() { s.run(ctx) })
	}
	return c, nil
}

// Complete compares all that the two clusters hold now. Nothing should be
// writing meanwhile, or the sides are read up to different times.
func Complete(ctx context.Context, o Options) (Report, error) {
	c, err := Start(ctx, o)
	if err != nil {
		return nil, err
	}
	return c.Finish(ctx), nil
}

// CatchUp reads the source up to where it ends now and then waits until the
// target holds all of that. It returns false when ctx ends before. The source
// must not be written to any more.
func (c *Comparison) CatchUp(ctx context.Context) bool {
	c.sides[sourceSide].finish()
	tick := time.NewTicker(fetchWait / 4)
	defer tick.Stop()
	for !c.sides[sourceSide].allDone() || c.pending() > 0 {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return false
		}
	}
	return true
}

func (c *Comparison) pending() int {
	n := 0
	for _, p := range c.Progress() {
		n += p.Pending
	}
	return n
}

// Finish reads both sides up to where they end now (for committed data, their
// last stable offset), ends the comparison and reports. When ctx ends before
// that, the partitions that were not read to the end say so.
func (c *Comparison) Finish(ctx context.Context) Report {
	for _, s := range c.sides {
		s.finish()
	}
	read := make(chan struct{})
	go func() {
		c.work.Wait()
		close(read)
	}()
	select {
	case <-read:
	case <-ctx.Done():
	}
	c.stop()
	<-read
	return c.report()
}

// Stop ends the comparison where it is; after Finish it does nothing.
func (c *Comparison) Stop() {
	c.stop()
	c.work.Wait()
}

func (c *Comparison) report() Report {
	report := make(Report, 0, len(c.partitions))
	for _, p := range c.partitions {
		report = append(report, p.report())
	}
	return report
}

// Progress is how far the comparison of a topic is.
type Progress struct {
	Source, Target uint64 // records read on each side
	Bytes          uint64 // keys, values and headers read on the target
	Pending        int    // records (keys, if compacted) of the source that the target has yet to match
	Different      uint64
}

// Progress tells of the topics by their names on the source.
func (c *Comparison) Progress() map[string]Progress {
	all := map[string]Progress{}
	for _, p := range c.partitions {
		all[p.topic.Source] = p.addTo(all[p.topic.Source])
	}
	return all
}

// errNoTopic: the other side may make it yet.
var errNoTopic = errors.New("no such topic or partition")
