//go:build !race

package plugins

import "github.com/tetratelabs/wazero"

// runtimeConfig compiles where wazero can, else interprets.
func runtimeConfig() wazero.RuntimeConfig { return wazero.NewRuntimeConfig() }
