package demo

import (
	"context"
	"errors"
	"time"
)

const (
	// lookEvery is how often the traffic learns how far it is ahead.
	lookEvery = 50 * time.Millisecond
	// The table on a terminal, and a line elsewhere.
	frameEvery = time.Second
	lineEvery  = 2 * time.Second
	// finishTime bounds reading what is left when there is nothing to wait for.
	finishTime = 10 * time.Second
)

// errMirrorEnded is told together with the mirror's own error, if it has one.
var errMirrorEnded = errors.New("the mirror ended by itself")

// show lets traffic flow until its time is up or ctx ends, then waits for the
// mirror and tells the outcome.
func (d *demo) show(ctx context.Context, m *running) error {
	d.first = d.look()
	writing, stop := ctx, context.CancelFunc(func() {})
	if d.For > 0 {
		writing, stop = context.WithTimeout(ctx, d.For)
	}
	defer stop()
	home, leave := context.WithTimeout(writing, d.atHome())
	defer leave()
	alive, drop := context.WithCancel(m.alive)
	d.group.start(alive, home)
	defer d.group.finish()
	defer drop()
	d.traffic = newTraffic(m.alive, d.mirror.Bootstrap(from), d.Rate, d.aheadOf)
	if err := d.during(writing, m, "", d.traffic.run); err != nil {
		return err
	}
	o := outcome{writing: time.Since(d.first.at), patience: d.CatchUp}
	err := d.during(m.alive, m, "the traffic has stopped, the rest is under way", func(ctx context.Context) error {
		patient, cancel := context.WithTimeout(ctx, d.CatchUp)
		defer cancel()
		o.caughtUp = d.comparison.CatchUp(patient)
		final, cancel := context.WithTimeout(ctx, finishTime)
		defer cancel()
		o.report = d.comparison.Finish(final)
		d.group.finish()
		return nil
	})
	if err != nil {
		return err
	}
	o.last, o.group = d.look(), d.group.look()
	o.ran = o.last.at.Sub(d.first.at)
	o.cpuSeconds = o.last.usage.cpuSeconds - d.first.usage.cpuSeconds
	o.peakMemory = d.peak
	for _, w := range d.traffic.written {
		o.commits += w.commits.Load()
		o.abortions += w.abortions.Load()
		o.aborted += w.aborted.Load()
	}
	d.screen.print("\n" + summary(d.style, o))
	if !o.ok() {
		return ErrDifferent
	}
	return nil
}

// atHome is how long the group reads at the source.
func (d *demo) atHome() time.Duration {
	if d.For > 0 {
		return min(d.For/2, mostAtHome)
	}
	return mostAtHome
}

// during shows the table while work is done. When the mirror ends meanwhile,
// that ends the work.
func (d *demo) during(ctx context.Context, m *running, note string, work func(context.Context) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- work(ctx) }()
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	every := lineEvery
	if d.Terminal {
		every = frameEvery
	}
	before := d.look()
	for {
		select {
		case err := <-done:
			return err
		case <-m.alive.Done():
			cancel()
			<-done
			return errMirrorEnded
		case at := <-tick.C:
			d.lookAhead()
			if at.Sub(before.at) >= every {
				now := d.look()
				d.frame(before, now, note)
				before = now
			}
		}
	}
}

// look takes a sample.
func (d *demo) look() sample {
	s := sample{at: time.Now(), report: d.mirror.Status(), progress: d.comparison.Progress(), usage: d.meter.read(), group: d.group.look()}
	d.peak = max(d.peak, s.usage.memory)
	return s
}

func (d *demo) frame(before, now sample, note string) {
	ran := now.at.Sub(d.first.at)
	if d.Terminal {
		d.screen.show(frame(d.style, before, now, ran, note))
	} else {
		d.screen.show(progressLine(before, now, ran, note))
	}
}

// lookAhead notes how many records each topic is ahead of the comparison, or of the
// group.
func (d *demo) lookAhead() {
	ahead := map[string]int{}
	progress := d.comparison.Progress()
	for _, t := range topics {
		// A compacted topic is small however far behind anybody is, and its
		// cleaner makes counting pointless.
		if !t.compacted {
			p, written := progress[t.name], d.traffic.written[t.name].records.Load()
			ahead[t.name] = max(int(written)-int(p.Source)+p.Pending, d.group.behind(t.name, written))
		}
	}
	d.ahead.Store(&ahead)
}

func (d *demo) aheadOf(topic string) int {
	if ahead := d.ahead.Load(); ahead != nil {
		return (*ahead)[topic]
	}
	return 0
}
