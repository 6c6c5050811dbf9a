package config

// Writes says whether the checks across flows hold that the flow can write to a
// topic of this name.
func (f Flow) Writes(name string) bool { return checkedFlow{Flow: f}.targets().contains(name) }
