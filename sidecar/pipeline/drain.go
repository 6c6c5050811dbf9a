package pipeline

import (
	"context"
	"errors"
	"time"

	"mirror/sidecar/status"
)

// drainPoll is the time between two looks at what is still on its way.
const drainPoll = 5 * time.Millisecond

// drain waits until all that was fetched is acknowledged. It leaves a part of
// the time for the positions.
func (f *Flow) drain(deadline time.Time) {
	until := time.Now().Add(time.Until(deadline) * 3 / 4)
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
