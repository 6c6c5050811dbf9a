// Package plugins runs the plugins of a flow: WASM guests that are told, lane by
// lane, which source offsets are safe on the target as which target offsets.
// abi/SPEC.md is the contract with them; this is its host, on wazero.
//
// A Generation is a set of plugins with their config, read, checked and compiled. A
// Set is one instance of each of them, for one lane. A Lane is what lives as long as
// the pipeline's lane: it keeps what has been acknowledged and not been told, for each
// plugin by itself, tells it in rounds, has produced what the plugins emit, and knows
// how far positions may be saved. A reload loads the next Generation, makes a Set for
// each lane, and swaps them in.
//
// The package knows no Kafka client: who drives it implements Sink.
//
// What a guest may do to the process is bounded. It is looked at before it is compiled
// (Inspect), and the compiled copy counts its work and depth (package wasm), so that a
// call ends at its deadline and no goroutine waits long for a garbage collection that
// a guest holds up. Its memory, its tables, what it emits, logs and measures have limits.
package plugins
