package status

import (
	"time"

	"mirror/sidecar/config"
)

// Config is the config file, and what has come of it since the start.
type Config struct {
	File string `json:"file"`
	// Generation is of what is in force: 1 at the start, one more with each reload
	// that changed something.
	Generation uint64 `json:"generation"`
	// Loaded is when the file was last read and found good.
	Loaded time.Time `json:"loaded"`
	// NeedsRestart is what was different in that file and waits for a restart.
	NeedsRestart []config.Change `json:"needs_restart"`
	// Reloads counts by result (see ReloadResults).
	Reloads map[string]uint64 `json:"reloads"`
	// Last is the last reload; null before the first.
	Last *Reload `json:"last_reload"`
}

// Reload is one reading of the file while the mirror runs, and what it did.
type Reload struct {
	At         time.Time `json:"at"`
	Trigger    string    `json:"trigger"`    // one of those below
	Result     string    `json:"result"`     // one of those below
	Generation uint64    `json:"generation"` // of what is in force after it
	// Applied has changed in the running mirror, without a pause. NeedsRestart
	// has not: the file and what runs differ there until a restart.
	Applied      []config.Change `json:"applied"`
	NeedsRestart []config.Change `json:"needs_restart"`
	// Problems are all that is wrong with the file where it was refused, one line
	// each; nothing has changed then.
	Problems []string `json:"problems"`
}

// Triggers of a reload.
const (
	TriggerSignal  = "signal"  // SIGHUP
	TriggerFile    = "file"    // it changed
	TriggerRequest = "request" // to the admin server
)

// Results of a reload.
const (
	ReloadApplied = "applied" // all of the file that needs no restart is in force, also where that was so before
	ReloadRefused = "refused" // nothing has changed
)

// ReloadResults lists all results.
var ReloadResults = []string{ReloadApplied, ReloadRefused}
