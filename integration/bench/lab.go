package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"time"
)

// lab is where all runs happen.
type lab struct {
	options
	source, target *broker
	mirror         string // the program
	dir            string
	runs           int // so far: each has an alias of its own
	progress       io.Writer
}

// measureAll runs everything. With an error the report has what was done before.
func measureAll(ctx context.Context, o options, progress io.Writer) (Report, error) {
	report := Report{Started: time.Now().UTC(), Image: o.image, CPUs: runtime.NumCPU(), Go: runtime.Version(), Size: int64(o.size)}
	dir, err := os.MkdirTemp("", "mirror-bench")
	if err != nil {
		return report, err
	}
	defer os.RemoveAll(dir)
	l := &lab{options: o, dir: dir, mirror: filepath.Join(dir, "mirror"), progress: progress}
	start := func(name string) (*broker, error) { return startBroker(ctx, o.image, name) }
	if o.fake {
		start = func(string) (*broker, error) { return startFake() }
		report.Image = fakeImage
	} else if err := sweep(); err != nil {
		return report, err
	}
	l.say("building the mirror, starting two brokers")
	build := exec.CommandContext(ctx, "go", "build", "-trimpath", "-o", l.mirror, "mirror")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return report, fmt.Errorf("build the mirror: %w; %s", err, out)
	}
	for _, b := range []struct {
		name string
		at   **broker
	}{{"source", &l.source}, {"target", &l.target}} {
		*b.at, err = start(b.name)
		defer (*b.at).close()
		if err != nil {
			return report, err
		}
	}
	for _, c := range o.cases {
		result, err := l.measureCase(ctx, c)
		result.Pairs = result.compare()
		report.Cases = append(report.Cases, result)
		if err != nil {
			return report, fmt.Errorf("case %s: %w", c.Name, err)
		}
	}
	return report, nil
}

func (l *lab) say(format string, args ...any) { fmt.Fprintf(l.progress, format+"\n", args...) }

// measureCase makes the data of a case and has each subject copy it, all of them
// in turn, as often as asked, and every other time in the opposite order.
func (l *lab) measureCase(ctx context.Context, c benchCase) (Case, error) {
	l.say("%s: making the data", c.Name)
	data, err := l.fill(ctx, c, int64(l.size))
	result := Case{benchCase: c, dataset: data}
	if err != nil {
		return result, err
	}
	// The brokers' code gets warm on what does not count: large batches and small.
	for _, s := range []subject{
		{name: "warming up with the loop", start: startLoop, apart: true},
		{name: "warming up with the mirror", start: startMirror, apart: true},
	} {
		if r := l.measure(ctx, c, data, s, 0); r.Error != "" {
			return result, fmt.Errorf("%s: %s", s.name, r.Error)
		}
	}
	for n := range l.options.runs {
		round := slices.Clone(l.subjects)
		if n%2 == 1 {
			slices.Reverse(round)
		}
		for _, s := range round {
			r := l.measure(ctx, c, data, s, n+1)
			if ctx.Err() != nil {
				return result, ctx.Err()
			}
			result.Runs = append(result.Runs, r)
		}
	}
	return result, errors.Join(l.source.clear(ctx, ""), l.target.clear(ctx, ""))
}

// measure is one run of one subject.
func (l *lab) measure(ctx context.Context, c benchCase, data dataset, s subject, n int) Run {
	l.runs++
	j := job{benchCase: c, dataset: data, image: l.image, mirror: l.mirror, absent: l.absent, dir: l.dir, target: l.target,
		from: l.source.address(c.Far == "source"), to: l.target.address(c.Far == "target"),
		alias: fmt.Sprintf("run%02d", l.runs), light: fmt.Sprintf("light%02d", l.runs)}
	r := Run{Subject: s.name, Run: n, figures: noFigures()}
	err := l.measureJob(ctx, j, s, &r)
	if err != nil {
		r.Error = err.Error()
	}
	if ctx.Err() == nil { // else it says nothing new
		l.say("%s: %s: %s", c.Name, s.name, r)
	}
	return r
}

func (l *lab) measureJob(ctx context.Context, j job, s subject, r *Run) error {
	if err := errors.Join(l.source.clear(ctx, j.Name), l.target.clear(ctx, "")); err != nil {
		return err
	}
	if err := l.source.create(ctx, j.light, 1); err != nil {
		return err
	}
	if err := j.prepare(ctx); err != nil {
		return err
	}
	if err := l.settle(ctx); err != nil {
		return err
	}
	start := time.Now()
	x, err := s.start(j)
	if err != nil {
		return fmt.Errorf("start: %w", err)
	}
	defer x.stop()
	t, err := follow(ctx, start, x.total, l.limit, func(ctx context.Context) (sample, error) { return l.look(ctx, x) })
	switch {
	case errors.Is(err, errLimit) && t.first.done > 0:
		r.Note = fmt.Sprintf("cut after %v at %.0f %%", l.limit, 100*float64(t.end.done)/float64(x.total))
	case err != nil:
		return fmt.Errorf("%w; %d of %d arrived; it wrote: %s", err, t.end.done, x.total, x.log())
	}
	r.figures = t.figures(x.total, x.payload)
	if r.Note == "" && !r.CPU.known() {
		r.Note = "too quick to be measured: use a larger -size"
	}
	if t.end.done == x.total && s.check != nil {
		if err := l.settled(ctx, x, t, r); err != nil {
			return err
		}
		if err := s.check(ctx, j); err != nil {
			return err
		}
	}
	if s.apart || l.fake {
		r.SourceCPU, r.TargetCPU = noFigure, noFigure
	}
	if t.end.done == x.total && !s.apart && l.options.light > 0 {
		late, err := l.light(ctx, j, int(l.options.light.Seconds()*lightRate))
		if err != nil {
			return err
		}
		r.P50, r.P99 = quantile(late, 0.5), quantile(late, 0.99)
	}
	peak, err := peakMemory(x.pid)
	if err != nil {
		return err
	}
	r.Memory = Figure(float64(peak) / 1e6)
	return nil
}
