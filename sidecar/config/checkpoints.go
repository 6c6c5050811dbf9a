package config

import (
	"fmt"
	"slices"
	"time"
)

// Checkpoints is how a flow's consumer groups go on at the target.
type Checkpoints struct {
	// Enabled is whether checkpoints are written; on where the file does not say, if a
	// plugin translates.
	Enabled    Switch
	Interval   time.Duration // how often groups are read
	SyncGroups Switch        // translated offsets are committed to groups on the target
}

// Switch is a boolean that knows whether the file has it.
type Switch struct {
	On    bool
	place string // file:line: key; "" where the file does not have it
}

// Asked is where the file asks for it to be on, as file:line: key; "": it does not.
func (s Switch) Asked() string {
	if !s.On {
		return ""
	}
	return s.place
}

// Asked is where the file asks for checkpoints, as file:line: key; "": they are only
// on where that is possible.
func (c Checkpoints) Asked() string {
	if at := c.Enabled.Asked(); at != "" {
		return at
	}
	return c.SyncGroups.Asked()
}

// CheckpointsTopic is the name of the flow's topic of checkpoints on the target (Kafka
// 4.3.1, DefaultReplicationPolicy.checkpointsTopic; the identity policy's is no other).
// The separator is that of the flow's names (KIP-949).
func (f Flow) CheckpointsTopic() string {
	return f.From + f.Naming.Separator + "checkpoints" + f.Naming.Separator + "internal"
}

// readCheckpoints reads the table. Asked for without anything that translates they are
// refused, as KIP-1031 has it.
func readCheckpoints(t *table, plugins []Plugin) Checkpoints {
	c := Checkpoints{
		Enabled:    t.toggle("enabled", true),
		Interval:   t.duration("interval", 5*time.Second, leastPeriod),
		SyncGroups: t.toggle("sync_groups", false),
	}
	if !c.Enabled.On && c.SyncGroups.On {
		t.problem("sync_groups", "needs checkpoints: switch them on, or this off")
	}
	if slices.ContainsFunc(plugins, func(p Plugin) bool { return p.Emit.Groups }) {
		return c
	}
	for _, k := range []struct {
		name string
		Switch
	}{{"enabled", c.Enabled}, {"sync_groups", c.SyncGroups}} {
		if k.Asked() != "" {
			t.problem(k.name, "cannot be: no plugin may translate groups' offsets; switch the plugin %q on, set emit.groups of another, or remove this line", OffsetSyncPlugin)
		}
	}
	return c
}

// toggle reads a boolean.
func (t *table) toggle(name string, otherwise bool) Switch {
	s := Switch{On: t.boolean(name, otherwise)}
	if _, ok := t.values[name]; ok {
		key := t.key(name)
		s.place = fmt.Sprintf("%s:%d: %s", t.r.file, t.r.lines.of(key), key)
	}
	return s
}
