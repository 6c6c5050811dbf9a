package pipeline

import (
	"context"
	"fmt"

	"mirror/abi"
	"mirror/plugins"
	"mirror/sidecar/config"
	"mirror/sidecar/failover"
	"mirror/sidecar/status"
)

// newFailover makes what has consumer groups go on at the target. It asks the flow for
// all that it needs to know, and runs beside copying.
func (f *Flow) newFailover() *failover.Engine {
	return failover.New(failover.Options{
		Source: f.source, Target: f.target, Config: f.cfg, On: f.follows, Changed: f.failoverStale,
		Partitions: f.followed, Translate: f.translate, Syncs: f.sink.syncs.Read,
		Count: func() { f.count(status.ErrorGroups) }, Log: f.log,
	})
}

// follows says whether groups are followed now, and if not why.
func (f *Flow) follows() (on bool, reason string) {
	f.mu.Lock()
	state, loading := f.state, f.generation == nil && len(f.cfg().Plugins) > 0
	f.mu.Unlock()
	switch {
	case !f.cfg().Checkpoints.Enabled.On:
		return false, "switched off"
	case !f.translates():
		return false, "no plugin translates groups' offsets"
	case state != status.Running:
		return false, "the flow is " + string(state)
	case loading:
		return false, "the plugins are being loaded"
	}
	return true, ""
}

// followed are the partitions that groups may have offsets of.
func (f *Flow) followed() []failover.Partition {
	ps := f.all()
	out := make([]failover.Partition, 0, len(ps))
	for _, p := range ps {
		p.mu.Lock()
		one := failover.Partition{
			Key: p.plugged(), Target: p.target, SourceID: p.sourceID, TargetID: p.targetID,
			Position: p.position.Offset, TargetEnd: -1, SourceEnd: p.end,
		}
		if p.began {
			one.TargetEnd = p.position.TargetOffset + 1
		}
		p.mu.Unlock()
		out = append(out, one)
	}
	return out
}

// checkTranslates refuses checkpoints that the file asks for where no plugin
// translates: which hooks one has is not known before it is loaded.
func checkTranslates(c *config.Flow, loaded []plugins.Module) error {
	at := c.Checkpoints.Asked()
	if at == "" || anyTranslates(loaded) {
		return nil
	}
	return fmt.Errorf("%s: cannot be: none of the plugins exports %s, so groups' offsets are not translated; add one that does, or remove this line", at, abi.OnGroups.Export())
}

// Explain says where a group would go on at the target; see failover.Engine.
func (f *Flow) Explain(ctx context.Context, group, topic string) (status.GroupTranslation, error) {
	return f.failover.Explain(ctx, group, topic)
}

// Lag says what groups would lose or repeat; see failover.Engine.
func (f *Flow) Lag(ctx context.Context, each func(status.GroupLag)) error {
	return f.failover.Lag(ctx, each)
}

// Name is the flow's, "from->to".
func (f *Flow) Name() string { return f.cfg().Name() }
