//go:build !race

package offsetsync

import "github.com/tetratelabs/wazero"

func runtimeConfig() wazero.RuntimeConfig { return wazero.NewRuntimeConfig() }

// interpreted says that guests are, which is a hundred times slower.
const interpreted = false
