//go:build !race

package plugins

// tooDeep is what recursion ends with.
const tooDeep = "its calls are nested too deeply"
