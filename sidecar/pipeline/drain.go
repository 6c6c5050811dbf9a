package pipeline

import (
	"context"
	"errors"
	"slices"
	"time"

	"mirror/sidecar/status"
)

// drainPoll is the time between two looks at what is still on its way.
const drainPoll = 5 * time.Millisecond

// partOf leaves a part of the time for the positions.
func partOf(deadline time.Time) time.Time { return time.Now().Add(time.Until(deadline) * 3 / 4) }

// drain waits until all that was fetched is acknowledged.
func (f *Flow) drain(deadline time.Time) {
	until := partOf(deadline)
	tick := time.NewTicker(drainPoll)
	defer tick.Stop()
	for !f.idle() {
		if time.Now().After(until) {
			f.log.Warn("stopping before all that was fetched is on the target; it is fetched again at the next start", "grace", f.cfg().Grace)
			return
		}
		<-tick.C
	}
}

// awaitPlugins waits for the first plugins, if there are positions to be saved that
// wait for them.
func (f *Flow) awaitPlugins(deadline time.Time) {
	if !slices.ContainsFunc(f.all(), (*partition).unsavedYet) {
		return
	}
	late := time.NewTimer(time.Until(partOf(deadline)))
	defer late.Stop()
	select {
	case <-f.pluginsLoaded:
	case <-late.C:
		f.log.Warn("stopping before the plugins are loaded; what was copied is looked for on the target at the next start", "grace", f.cfg().Grace)
	}
}

// unsavedYet says that the position has moved since it was saved.
func (p *partition) unsavedYet() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.dirty && p.known
}

func (f *Flow) idle() bool {
	for _, l := range f.lanes {
		if !l.idle() {
			return false
		}
	}
	for _, p := range f.all() {
		if !p.dst.Idle() {
			return false
		}
	}
	return true
}

// saveAll saves the positions one last time, if need be to a topic that has to be
// made again.
func (f *Flow) saveAll(deadline time.Time) {
	ctx, cancel := context.WithDeadline(context.Background(), deadline)
	defer cancel()
	err := f.saveLanes(ctx)
	if err != nil {
		f.keeper.check(ctx)
		err = f.saveLanes(ctx)
	}
	if err != nil {
		f.count(status.ErrorPositions)
		f.log.Error("the last positions are not saved: records after the saved ones are copied again at the next start", "err", err)
	}
}

func (f *Flow) saveLanes(ctx context.Context) error {
	var errs []error
	for _, l := range f.lanes {
		errs = append(errs, l.save(ctx))
	}
	return errors.Join(errs...)
}
