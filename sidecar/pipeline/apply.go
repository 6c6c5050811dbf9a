package pipeline

import "mirror/sidecar/config"

// cfg is the config as it is now. Who looks at several keys that belong together
// asks once.
func (f *Flow) cfg() *config.Flow { return f.config.Load() }

// Apply changes the config of a flow, running or not: the keys that apply live
// (see config.Diff). The others must be as they were. What is copied goes on; the
// topics are looked up anew at once, so that those begin that are selected now,
// and what is stalled is tried again.
func (f *Flow) Apply(c config.Flow) {
	f.config.Store(&c)
	wake(f.changed)
	for _, l := range f.lanes {
		wake(l.changed)
	}
	f.agenda.hurry()
}

func wake(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
