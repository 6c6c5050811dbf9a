// Package offsetsync is the plugin "offset-sync", which is on by default: it
// writes MirrorMaker 2's offset syncs. This package only carries the module; what
// it does is in guest, its source in Rust.
package offsetsync

import _ "embed" // the files below

// Name is the plugin's name in the config file.
const Name = "offset-sync"

// Wasm is the module, built by build.sh.
//
//go:embed offsetsync.wasm
var Wasm []byte

// Build says how the module was built: Debian's packages and their versions, and
// the digest of the source, one a line.
//
//go:embed offsetsync.build
var Build string
