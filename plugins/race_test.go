//go:build race

package plugins

// tooDeep is what recursion ends with: the interpreter's own bound is lower than ours.
const tooDeep = "stack overflow"

// interpreted says that guests are, which is a hundred times slower.
const interpreted = true
