//go:build race

package wasm

import "github.com/tetratelabs/wazero"

// The race detector cannot follow compiled guests.
func config() wazero.RuntimeConfig { return wazero.NewRuntimeConfigInterpreter() }
