//go:build race

package plugins

import "github.com/tetratelabs/wazero"

// runtimeConfig: the race detector cannot follow compiled guests.
func runtimeConfig() wazero.RuntimeConfig { return wazero.NewRuntimeConfigInterpreter() }
