package config

import "slices"

// checkFlows looks at the flows together, without those whose clusters have been
// found wrong.
func (r *reader) checkFlows(c *Config, tables []*table) {
	var flows []checkedFlow
	paths := map[string]string{} // by flow name
	for i, f := range c.Flows {
		if f.From == "" || f.To == "" || f.From == f.To {
			continue
		}
		if first, ok := paths[f.Name()]; ok {
			tables[i].problem("to", "%s goes from %s to %s already: one flow can hold all topics", first, f.From, f.To)
			continue
		}
		paths[f.Name()] = tables[i].path
		flows = append(flows, checkedFlow{f, tables[i]})
	}
	for _, f := range flows {
		from, to := c.Clusters[f.From], c.Clusters[f.To]
		for _, addr := range to.Bootstrap {
			if addr != EmbeddedBootstrap && addr != "" && slices.Contains(from.Bootstrap, addr) {
				f.problem("to", "is the same cluster as %s: both have the address %s", f.From, addr)
				break
			}
		}
	}
	checkRings(flows)
	checkCollisions(flows)
	checkPositionTopics(flows)
	checkEmitTopics(flows)
}

// checkedFlow is a flow and where in the file it is.
type checkedFlow struct {
	Flow
	*table
}

// prefix is what the flow puts before most topics.
func (f checkedFlow) prefix() string {
	if f.Naming.Policy == IdentityPolicy {
		return ""
	}
	return f.From + f.Naming.Separator
}
