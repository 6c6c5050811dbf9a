package config

// check looks at the flows together.
func (r *reader) check(c *Config, tables []*table) {
	seen := map[string]int{}
	for i, f := range c.Flows {
		if f.From == "" || f.To == "" {
			continue
		}
		if first, ok := seen[f.Name()]; ok {
			tables[i].problem("to", "flows[%d] goes from %s to %s already: one flow can hold all topics", first, f.From, f.To)
			continue
		}
		seen[f.Name()] = i
	}
}
