package pipeline

import (
	"context"
	"errors"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"

	"mirror/sidecar/positions"
	"mirror/sidecar/status"
)

// keeper looks after the topic of the positions: somebody may delete it, or change
// what is kept of it, while the flow runs.
type keeper struct {
	flow *Flow
	look chan struct{} // asks for a look at once
	due  bool          // all positions have to be saved again: the topic is another one
}

func newKeeper(f *Flow) *keeper { return &keeper{flow: f, look: make(chan struct{}, 1)} }

// failed has the topic looked at, when that a save failed for it.
func (k *keeper) failed(err error) {
	if !errors.Is(err, kerr.UnknownTopicOrPartition) && !errors.Is(err, kerr.UnknownTopicID) {
		return
	}
	select {
	case k.look <- struct{}{}:
	default:
	}
}

// run looks each refresh, until ctx ends.
func (k *keeper) run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(k.flow.cfg().Refresh):
		case <-k.look:
		}
		k.check(ctx)
	}
}

// check looks once. What is wrong is said once, counted, and shows until it is in
// order; the flow goes on meanwhile: whoever finds a partition without a position
// does as on_lost_positions says.
func (k *keeper) check(ctx context.Context) {
	f := k.flow
	looking, cancel := context.WithTimeout(ctx, saveTime)
	defer cancel()
	renewed, err := f.store.Check(looking)
	if renewed {
		f.count(status.ErrorPositions)
		f.log.Error("the positions topic was deleted or made again, and the saved positions with it: saving all again", "topic", f.cfg().Positions.Topic)
	}
	k.due = k.due || renewed
	if k.due {
		saved := k.saveAgain(looking)
		k.due = saved != nil
		err = errors.Join(saved, err)
	}
	if ctx.Err() != nil || !telling(err) {
		return
	}
	switch changed := f.setPositionsProblem(err); {
	case !changed:
	case err != nil:
		f.count(status.ErrorPositions)
		f.log.Error("the positions topic is not in order", "err", err)
	default:
		f.log.Info("the positions topic is in order again")
	}
}

// telling is false for an error of a target that is out of reach, which shows
// elsewhere, or that passes.
func telling(err error) bool {
	var answer *kerr.Error
	return err == nil || errors.Is(err, positions.ErrCleanupPolicy) || errors.As(err, &answer) && !answer.Retriable
}

// saveAgain writes to a topic that was made again what was in it: the positions
// and claims of all partitions, unless another mirror was there first.
func (k *keeper) saveAgain(ctx context.Context) error {
	f := k.flow
	claimed, err := f.store.Claimed(ctx)
	if err != nil {
		return err
	}
	var ours []positions.Key
	for _, p := range f.all() {
		p.mu.Lock()
		if p.began {
			ours = append(ours, p.key)
		}
		p.mu.Unlock()
	}
	for _, key := range ours {
		if f.cfg().Resume && claimed[key] {
			f.taken(key)
			return nil
		}
	}
	if err := f.store.Claim(ctx, ours); err != nil {
		return err
	}
	idle := map[positions.Key]positions.Position{} // of topics that are not mirrored now
	f.mu.Lock()
	for key, at := range f.loaded {
		if f.partitions[key] == nil {
			idle[key] = at
		}
	}
	f.mu.Unlock()
	if err := f.store.Save(ctx, idle); err != nil {
		return err
	}
	for _, p := range f.all() {
		p.unsaved()
	}
	return nil
}

// setPositionsProblem says whether that is new.
func (f *Flow) setPositionsProblem(err error) (changed bool) {
	text := ""
	if err != nil {
		text = err.Error()
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	changed = f.positionsProblem != text
	f.positionsProblem = text
	return changed
}
