//go:build wasip1

package guest

import "unsafe"

//go:wasmimport mirror_v1 emit
func hostEmit(p unsafe.Pointer, n uint32) int32

var out []byte

func begin(kind uint16, about uint32) {
	out = le.AppendUint16(out[:0], kind)
	out = le.AppendUint16(out, 0)
	out = le.AppendUint32(out, about)
}

func emit() error {
	return result(hostEmit(unsafe.Pointer(unsafe.SliceData(out)), uint32(len(out))))
}

// EmitOffsetSync says that a source offset is a target offset. An error is a Status;
// the call has failed then, whatever the hook returns.
func (f Frame) EmitOffsetSync(about About, upstream, downstream int64) error {
	begin(1, about.about())
	out = le.AppendUint64(out, uint64(upstream))
	out = le.AppendUint64(out, uint64(downstream))
	return emit()
}

// Record is one to be written.
type Record struct {
	Topic     string
	Partition int32 // -1: by the key, or any
	Timestamp int64 // ms; -1: now
	Key       []byte
	Value     []byte // nil is null; so is Key
	Headers   []Header
}

// Header is one of a record's.
type Header struct {
	Key   string
	Value []byte // nil is null
}

// EmitRecord has a record written to a topic that the config allows.
func (f Frame) EmitRecord(about About, r Record) error {
	begin(2, about.about())
	out = le.AppendUint32(out, uint32(r.Partition))
	out = le.AppendUint16(out, uint16(len(r.Topic)))
	out = le.AppendUint16(out, uint16(len(r.Headers)))
	out = le.AppendUint64(out, uint64(r.Timestamp))
	out = le.AppendUint32(out, nullable(r.Key))
	out = le.AppendUint32(out, nullable(r.Value))
	out = append(append(append(out, r.Topic...), r.Key...), r.Value...)
	for _, h := range r.Headers {
		out = le.AppendUint16(out, uint16(len(h.Key)))
		out = le.AppendUint16(out, 0)
		out = le.AppendUint32(out, nullable(h.Value))
		out = append(append(out, h.Key...), h.Value...)
	}
	return emit()
}

func nullable(b []byte) uint32 {
	if b == nil {
		return 1<<32 - 1
	}
	return uint32(len(b))
}

// EmitSave hands a cache to the instance that replaces this one; in OnSave only, once.
func (f Frame) EmitSave(b []byte) error {
	begin(4, Nothing.about())
	out = append(out, b...)
	return emit()
}
