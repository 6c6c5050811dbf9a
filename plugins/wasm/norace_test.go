//go:build !race

package wasm

import "github.com/tetratelabs/wazero"

func config() wazero.RuntimeConfig { return wazero.NewRuntimeConfigCompiler() }
