//go:build !race

package plugins

// tooDeep is what recursion ends with.
const tooDeep = "its calls are nested too deeply"

// interpreted says that guests are, which is a hundred times slower.
const interpreted = false
