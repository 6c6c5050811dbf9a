package main

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// sample is how far a run is, and what it has used until then.
type sample struct {
	at                      time.Time
	done                    int64
	subject, source, target time.Duration // CPU
}

// trace has the samples of a run that count.
type trace struct {
	start time.Time // of the subject
	first sample    // the first with any record
	mark  sample    // the first with a fifth of them, before which nothing counts
	end   sample    // the first with all, or the last
}

const sampleEvery = 10 * time.Millisecond

var errLimit = errors.New("time limit")

// follow samples a run until all has arrived. With errLimit the trace shows how
// far it came; without even a fifth, all since the first record counts.
func follow(ctx context.Context, start time.Time, total int64, limit time.Duration, look func(context.Context) (sample, error)) (trace, error) {
	t := trace{start: start}
	tick := time.NewTicker(sampleEvery)
	defer tick.Stop()
	for {
		s, err := look(ctx)
		if err != nil {
			return t, err
		}
		t.end = s
		if t.first.done == 0 {
			t.first = s
		}
		if t.mark.done == 0 && s.done >= total/5 {
			t.mark = s
		}
		late := s.at.Sub(start) >= limit
		if late && t.mark.done == 0 {
			t.mark = t.first
		}
		switch {
		case s.done == total:
			return t, nil
		case s.done > total:
			return t, fmt.Errorf("%d have arrived, of %d", s.done, total)
		case late:
			return t, errLimit
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return t, ctx.Err()
		}
	}
}

// figures are what a trace says, for a total of so much payload.
func (t trace) figures(total, payload int64) figures {
	gb := float64(payload) * float64(t.end.done-t.mark.done) / float64(total) / 1e9
	f := noFigures()
	if t.first.done > 0 {
		f.First = Figure(t.first.at.Sub(t.start).Seconds())
		f.FirstCPU = Figure(t.first.subject.Seconds())
	}
	if gb > 0 {
		per := func(from, to time.Duration) Figure { return Figure((to - from).Seconds() / gb) }
		f.CPU = per(t.mark.subject, t.end.subject)
		f.SourceCPU = per(t.mark.source, t.end.source)
		f.TargetCPU = per(t.mark.target, t.end.target)
		f.Throughput = Figure(gb * 1e3 / t.end.at.Sub(t.mark.at).Seconds())
	}
	return f
}

// settleTime is as long as it takes the mirror to save positions, and have plugins
// flush, after the last record.
const settleTime = 1500 * time.Millisecond

// settled notes what a run that is complete has used a while later: who puts work off
// would else seem to save it.
func (l *lab) settled(ctx context.Context, x *running, t trace, r *Run) error {
	select {
	case <-time.After(settleTime):
	case <-ctx.Done():
		return ctx.Err()
	}
	used, err := cpuTime(x.pid)
	if err == nil && r.CPU.known() {
		r.Settled = Figure(float64(r.CPU) * float64(used-t.mark.subject) / float64(t.end.subject-t.mark.subject))
	}
	return err
}

// look takes a sample of a run.
func (l *lab) look(ctx context.Context, r *running) (s sample, err error) {
	if s.done, err = r.done(ctx); err != nil {
		return s, err
	}
	s.at = time.Now()
	for _, x := range []struct {
		pid int
		cpu *time.Duration
	}{{r.pid, &s.subject}, {l.source.pid, &s.source}, {l.target.pid, &s.target}} {
		if *x.cpu, err = cpuTime(x.pid); err != nil {
			return s, err
		}
	}
	return s, nil
}

// settle waits, not for ever, until the brokers have done with what was before.
func (l *lab) settle(ctx context.Context) error {
	const (
		window = time.Second
		idle   = window / 10
	)
	var before time.Duration
	for range 30 {
		a, errA := cpuTime(l.source.pid)
		b, errB := cpuTime(l.target.pid)
		if err := errors.Join(errA, errB); err != nil {
			return err
		}
		if before > 0 && a+b-before < idle {
			return nil
		}
		before = a + b
		select {
		case <-time.After(window):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// await tries until it works or the context ends.
func await(ctx context.Context, every time.Duration, try func() error) error {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		err := try()
		if err == nil {
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return err
		}
	}
}
