//go:build wasip1

// Package guest is for plugins in Go: it exports what the contract mirror_v1 asks
// for and hands each frame to the function that was set for it. A plugin is
//
//	package main
//
//	import "…/abi/guest"
//
//	func init() {
//		guest.OnCommit(func(c *guest.Commits) error {
//			for e := range c.All() {
//				if err := c.EmitOffsetSync(e, e.SrcLast(), e.DstLast()); err != nil {
//					return err
//				}
//			}
//			return nil
//		})
//	}
//
//	func main() {}
//
// and is built with
//
//	GOOS=wasip1 GOARCH=wasm go build -buildmode=c-shared -ldflags='-s -w' -o plugin.wasm .
//
// The package imports nothing outside of the standard library: copy it where the
// module cannot be had. ../SPEC.md is the contract. (The hook on_groups is not in it:
// a plugin that exports it needs a permission, and this package exports all it has.)
//
// Rules for plugins: no goroutine may outlive the call that began it, and none may
// wait for anything. Entries and byte slices from a frame are valid until the hook
// returns; strings may be kept. fmt, encoding/json and reflect make a plugin twice as
// large, and its start twice as slow.
package guest

import (
	"runtime"
	"unsafe"
)

//go:wasmimport mirror_v1 log
func hostLog(level int32, p unsafe.Pointer, n uint32) int32

//go:wasmimport mirror_v1 fail
func hostFail(code int32, p unsafe.Pointer, n uint32) int32

//go:wasmimport mirror_v1 metric_define
func hostMetricDefine(kind int32, p unsafe.Pointer, n uint32) int32

//go:wasmimport mirror_v1 metric
func hostMetric(id, op int32, v int64) int32

// Status is what a hook returns if it is not nil: the host treats it as SPEC.md,
// section 7, says. Any other error counts as Fatal, with its text.
type Status int32

// Statuses.
const (
	Fatal       Status = -1
	Retry       Status = -2 // call again with the same frame, later
	Reject      Status = -3
	BadInput    Status = -4
	Unsupported Status = -5
	NoMemory    Status = -6
	StateFull   Status = -7
	NotFound    Status = -8
	Limit       Status = -102
)

func (s Status) Error() string {
	switch s {
	case Fatal:
		return "fatal"
	case Retry:
		return "retry"
	case Reject:
		return "reject"
	case BadInput:
		return "bad input"
	case Unsupported:
		return "unsupported"
	case NoMemory:
		return "no memory"
	case StateFull:
		return "state full"
	case NotFound:
		return "not found"
	case Limit:
		return "limit"
	}
	return "status " + itoa(int64(s))
}

func itoa(n int64) string {
	var b [20]byte
	at, u := len(b), uint64(n)
	if n < 0 {
		u = -u
	}
	for {
		at--
		b[at] = byte('0' + u%10)
		if u /= 10; u == 0 {
			break
		}
	}
	if n < 0 {
		at--
		b[at] = '-'
	}
	return string(b[at:])
}

var hooks struct {
	init, save, restore, close func(*Frame) error
	partitions, tick           func(*Partitions) error
	commit                     func(*Commits) error
}

// OnInit sets what happens when an instance begins, once its config is there.
func OnInit(f func(*Frame) error) { hooks.init = f }

// OnPartitions sets what happens when partitions come, go and change.
func OnPartitions(f func(*Partitions) error) { hooks.partitions = f }

// OnCommit sets what happens when ranges of source offsets are safe on the target.
func OnCommit(f func(*Commits) error) { hooks.commit = f }

// OnTick sets what happens at the interval that the config asks for.
func OnTick(f func(*Partitions) error) { hooks.tick = f }

// OnSave sets what happens before the plugin is replaced: EmitSave hands a cache on.
func OnSave(f func(*Frame) error) { hooks.save = f }

// OnRestore sets what happens with what the plugin before this one has saved: Blob.
func OnRestore(f func(*Frame) error) { hooks.restore = f }

// OnClose sets what happens at the end.
func OnClose(f func(*Frame) error) { hooks.close = f }

//go:wasmexport mirror_abi_1
func version() int32 { return 1 }

var arena []uint64

//go:wasmexport mirror_alloc
func alloc(n uint32) unsafe.Pointer {
	if w := int(n/8) + 1; len(arena) < w {
		arena = make([]uint64, w)
	}
	return unsafe.Pointer(unsafe.SliceData(arena))
}

//go:wasmexport mirror_init
func onInit(p unsafe.Pointer, n uint32) int32 {
	f := frame(p, n)
	readConfig(f.extra(tagFlat))
	return run(func() error { return plain(hooks.init, f) })
}

//go:wasmexport mirror_on_partitions
func onPartitions(p unsafe.Pointer, n uint32) int32 {
	return run(func() error { return listed(hooks.partitions, frame(p, n)) })
}

//go:wasmexport mirror_on_commit
func onCommit(p unsafe.Pointer, n uint32) int32 {
	return run(func() error {
		if hooks.commit == nil {
			return nil
		}
		return hooks.commit(&Commits{frame(p, n)})
	})
}

//go:wasmexport mirror_tick
func tick(p unsafe.Pointer, n uint32) int32 {
	return run(func() error { return listed(hooks.tick, frame(p, n)) })
}

//go:wasmexport mirror_save
func save(p unsafe.Pointer, n uint32) int32 {
	return run(func() error { return plain(hooks.save, frame(p, n)) })
}

//go:wasmexport mirror_restore
func restore(p unsafe.Pointer, n uint32) int32 {
	return run(func() error { return plain(hooks.restore, frame(p, n)) })
}

//go:wasmexport mirror_close
func end(p unsafe.Pointer, n uint32) int32 {
	return run(func() error { return plain(hooks.close, frame(p, n)) })
}

func plain(f func(*Frame) error, b Frame) error {
	if f == nil {
		return nil
	}
	return f(&b)
}

func listed(f func(*Partitions) error, b Frame) error {
	if f == nil {
		return nil
	}
	return f(&Partitions{b})
}

// run calls a hook and makes a status of what comes of it. Each call ends with
// Gosched, or the runtime's collector never gets to work and memory grows without end.
func run(hook func() error) (status int32) {
	defer runtime.Gosched()
	defer func() {
		if x := recover(); x != nil {
			status = int32(Fatal)
			fail(status, "panic: "+text(x))
		}
	}()
	switch err := hook().(type) {
	case nil:
		return 0
	case Status:
		return int32(err)
	default:
		fail(int32(Fatal), err.Error())
		return int32(Fatal)
	}
}

func text(x any) string {
	switch x := x.(type) {
	case error:
		return x.Error()
	case string:
		return x
	}
	return "something"
}

func fail(code int32, s string) { hostFail(code, unsafe.Pointer(unsafe.StringData(s)), uint32(len(s))) }

// Fail says why the hook is about to return a Status.
func Fail(s Status, why string) Status {
	fail(int32(s), why)
	return s
}

// Level of a log line.
type Level int32

// Levels.
const (
	Debug Level = 0
	Info  Level = 1
	Warn  Level = 2
	Error Level = 3
)

// Log writes a line to the mirror's log.
func Log(l Level, s string) { hostLog(int32(l), unsafe.Pointer(unsafe.StringData(s)), uint32(len(s))) }

// Metric is a series that the plugin has defined.
type Metric int32

// NewCounter defines a counter, which the mirror sums over all instances; labels are
// keys and values in turn. An error is a Status.
func NewCounter(name string, labels ...string) (Metric, error) { return define(0, name, labels) }

// NewGauge defines a gauge, which the mirror shows for each lane.
func NewGauge(name string, labels ...string) (Metric, error) { return define(1, name, labels) }

func define(kind int32, name string, labels []string) (Metric, error) {
	b := []byte(name)
	for _, l := range labels {
		b = append(append(b, 0), l...)
	}
	id := hostMetricDefine(kind, unsafe.Pointer(unsafe.SliceData(b)), uint32(len(b)))
	return Metric(id), result(min(id, 0))
}

// Add adds to it.
func (m Metric) Add(n int64) { hostMetric(int32(m), 0, n) }

// Set sets it, if it is a gauge.
func (m Metric) Set(n int64) { hostMetric(int32(m), 1, n) }

func result(r int32) error {
	if r < 0 {
		return Status(r)
	}
	return nil
}

var config []struct{ key, value string }

// readConfig takes the flattened config apart: key NUL value NUL, again and again.
func readConfig(b []byte) {
	var parts []string
	for from, i := 0, 0; i < len(b); i++ {
		if b[i] == 0 {
			parts = append(parts, string(b[from:i]))
			from = i + 1
		}
	}
	for i := 0; i+1 < len(parts); i += 2 {
		config = append(config, struct{ key, value string }{parts[i], parts[i+1]})
	}
}

// Config is a value of the plugin's config: keys of inner tables and indexes of arrays
// are joined by dots.
func Config(key string) (value string, ok bool) {
	for _, c := range config {
		if c.key == key {
			return c.value, true
		}
	}
	return "", false
}
