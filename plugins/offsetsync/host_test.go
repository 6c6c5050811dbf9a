package offsetsync

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	"mirror/abi"
)

// tester is a *testing.T or a *rapid.T.
type tester interface {
	Helper()
	Cleanup(func())
	Fatal(...any)
	Fatalf(string, ...any)
}

// guest is an instance of the plugin.
type guest struct {
	t      tester
	module api.Module
	frame  abi.Encoder
	emits  []abi.Emit
	failed string // what the guest said
	parts  *parts // the state of partitions
	about  []partition
	given  int64 // what its counter has counted
}

// passed is what an import was passed: bytes of the guest's memory.
func (g *guest) passed(ptr, size uint64) []byte {
	b, ok := g.module.Memory().Read(uint32(ptr), uint32(size))
	if !ok {
		g.t.Fatalf("the guest passes %d bytes at %d, outside of its memory", size, ptr)
	}
	return bytes.Clone(b)
}

// caller is the key of the context's *guest, for imports.
type caller struct{}

// imported makes a function that the guest imports: parameters and results of all are
// i32, but for the last parameter of metric.
func imported(host wazero.HostModuleBuilder, name string, params int, f func(g *guest, a []uint64) abi.Status) {
	types := slices.Repeat([]api.ValueType{api.ValueTypeI32}, params)
	if name == "metric" {
		types[2] = api.ValueTypeI64
	}
	host.NewFunctionBuilder().WithGoModuleFunction(api.GoModuleFunc(func(ctx context.Context, _ api.Module, stack []uint64) {
		for i, t := range types {
			if t == api.ValueTypeI32 {
				stack[i] = uint64(uint32(stack[i]))
			}
		}
		stack[0] = api.EncodeI32(int32(f(ctx.Value(caller{}).(*guest), stack)))
	}), types, []api.ValueType{api.ValueTypeI32}).Export(name)
}

// engine has the module compiled, and the imports that the plugin uses.
var engine = sync.OnceValues(func() (wazero.Runtime, wazero.CompiledModule) {
	ctx := context.Background()
	runtime := wazero.NewRuntimeWithConfig(ctx, runtimeConfig())
	host := runtime.NewHostModuleBuilder(abi.Module)
	imported(host, "emit", 2, func(g *guest, a []uint64) abi.Status {
		e, err := abi.ParseEmit(g.passed(a[0], a[1]))
		if err != nil {
			g.t.Fatal(err)
		}
		g.emits = append(g.emits, e)
		return abi.OK
	})
	imported(host, "fail", 3, func(g *guest, a []uint64) abi.Status {
		g.failed = string(g.passed(a[1], a[2]))
		return abi.OK
	})
	imported(host, "state_get", 5, (*guest).stateGet)
	imported(host, "state_put", 5, (*guest).statePut)
	imported(host, "state_next", 5, (*guest).stateNext)
	imported(host, "metric_define", 3, func(g *guest, a []uint64) abi.Status {
		if name := string(g.passed(a[1], a[2])); a[0] != 0 || name != "runs_given_up" {
			g.t.Fatalf("metric %q of type %d", name, a[0])
		}
		return 7
	})
	imported(host, "metric", 3, func(g *guest, a []uint64) abi.Status {
		if a[0] != 7 || a[1] != 0 || int64(a[2]) <= 0 {
			g.t.Fatalf("metric %d, operation %d, %d", a[0], a[1], int64(a[2]))
		}
		g.given += int64(a[2])
		return abi.OK
	})
	if _, err := host.Instantiate(ctx); err != nil {
		panic(err)
	}
	compiled, err := runtime.CompileModule(ctx, Wasm)
	if err != nil {
		panic(err)
	}
	return runtime, compiled
})

// start makes an instance and does not call init.
func start(t tester) *guest {
	t.Helper()
	runtime, compiled := engine()
	ctx := context.Background()
	module, err := runtime.InstantiateModule(ctx, compiled, wazero.NewModuleConfig().WithName(""))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { module.Close(ctx) })
	return &guest{t: t, module: module, parts: newParts()}
}

// call calls a hook with the frame that was begun.
func (g *guest) call(hook abi.Hook) ([]abi.Emit, error) {
	g.t.Helper()
	frame, err := g.frame.Finish()
	if err != nil {
		g.t.Fatal(err)
	}
	return g.raw(hook, frame)
}

// raw calls a hook with a frame as it is.
func (g *guest) raw(hook abi.Hook, frame []byte) ([]abi.Emit, error) {
	g.t.Helper()
	ctx := context.WithValue(context.Background(), caller{}, g)
	room, err := g.module.ExportedFunction(abi.ExportAlloc).Call(ctx, uint64(len(frame)))
	if err != nil || room[0] == 0 || !g.module.Memory().Write(uint32(room[0]), frame) {
		g.t.Fatalf("no room for a frame of %d bytes: %v", len(frame), err)
	}
	g.emits, g.failed, g.about = nil, "", entries(frame)
	out, err := g.module.ExportedFunction(hook.Export()).Call(ctx, room[0], uint64(len(frame)))
	if err != nil {
		g.t.Fatalf("%v: %v", hook, err)
	}
	if status := abi.Status(int32(out[0])); status != abi.OK {
		return nil, fmt.Errorf("%v: %s", status, g.failed)
	}
	if f, err := abi.ParseFrame(frame); err == nil && f.Flags()&abi.Flush != 0 {
		g.parts.flush(g.about)
	}
	return g.emits, nil
}
