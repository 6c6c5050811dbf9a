//go:build wasip1

package guest

import "unsafe"

//go:wasmimport mirror_v1 state_get
func hostStateGet(entry uint32, key unsafe.Pointer, n uint32, buf unsafe.Pointer, limit uint32) int32

//go:wasmimport mirror_v1 state_put
func hostStatePut(entry uint32, key unsafe.Pointer, n uint32, value unsafe.Pointer, size int32) int32

//go:wasmimport mirror_v1 state_next
func hostStateNext(entry uint32, key unsafe.Pointer, n uint32, buf unsafe.Pointer, limit uint32) int32

// EmitSchema says how the plugin writes its state, in 1 to 64 printable characters
// without spaces: in OnInit only, once. Without it there is no state; state that was
// written under another schema is not seen.
func (f Frame) EmitSchema(schema string) error {
	begin(5, Nothing.about())
	out = append(out, schema...)
	return emit()
}

// Get is the value of a key in the state of the entry's partition, nil where there is
// none; one of no bytes is not nil. An error is a Status.
func (e entry) Get(key string) ([]byte, error) {
	return sized(func(buf unsafe.Pointer, limit uint32) int32 {
		return hostStateGet(e.index, unsafe.Pointer(unsafe.StringData(key)), uint32(len(key)), buf, limit)
	})
}

// Next is the first key after key in the order of bytes, and with "" the first of all;
// "" where there is none. An error is a Status.
func (e entry) Next(key string) (string, error) {
	b, err := sized(func(buf unsafe.Pointer, limit uint32) int32 {
		return hostStateNext(e.index, unsafe.Pointer(unsafe.StringData(key)), uint32(len(key)), buf, limit)
	})
	return string(b), err
}

// Put sets the value of a key in the state of the entry's partition. What is put is
// seen at once, kept with the next Flush, and undone with a call that fails. An error is a
// Status: with StateFull nothing has changed, and the hook may go on.
func (e entry) Put(key string, value []byte) error {
	return result(hostStatePut(e.index, unsafe.Pointer(unsafe.StringData(key)), uint32(len(key)), unsafe.Pointer(unsafe.SliceData(value)), int32(len(value))))
}

// Delete removes a key from the state of the entry's partition, if it is there.
func (e entry) Delete(key string) error {
	return result(hostStatePut(e.index, unsafe.Pointer(unsafe.StringData(key)), uint32(len(key)), nil, -1))
}

// sized asks with little room first, and with enough then.
func sized(ask func(buf unsafe.Pointer, limit uint32) int32) ([]byte, error) {
	b := make([]byte, 64)
	for {
		n := ask(unsafe.Pointer(unsafe.SliceData(b)), uint32(len(b)))
		switch {
		case Status(n) == NotFound:
			return nil, nil
		case n < 0:
			return nil, Status(n)
		case int(n) <= len(b):
			return b[:n], nil
		}
		b = make([]byte, n)
	}
}
