//go:build race

package offsetsync

import "github.com/tetratelabs/wazero"

// runtimeConfig: the race detector cannot follow compiled guests.
func runtimeConfig() wazero.RuntimeConfig { return wazero.NewRuntimeConfigInterpreter() }

// interpreted says that guests are, which is a hundred times slower.
const interpreted = true
