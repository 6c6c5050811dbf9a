package offsetsync

import (
	"bytes"
	"context"
	"fmt"
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

// engine has the module compiled, and the imports that the plugin uses.
var engine = sync.OnceValues(func() (wazero.Runtime, wazero.CompiledModule) {
	ctx := context.Background()
	runtime := wazero.NewRuntimeWithConfig(ctx, wazero.NewRuntimeConfigInterpreter())
	i32 := api.ValueTypeI32
	host := runtime.NewHostModuleBuilder(abi.Module)
	host.NewFunctionBuilder().WithGoModuleFunction(api.GoModuleFunc(func(ctx context.Context, _ api.Module, stack []uint64) {
		g := ctx.Value(caller{}).(*guest)
		e, err := abi.ParseEmit(g.passed(stack[0], stack[1]))
		if err != nil {
			g.t.Fatal(err)
		}
		g.emits = append(g.emits, e)
		stack[0] = 0
	}), []api.ValueType{i32, i32}, []api.ValueType{i32}).Export("emit")
	host.NewFunctionBuilder().WithGoModuleFunction(api.GoModuleFunc(func(ctx context.Context, _ api.Module, stack []uint64) {
		g := ctx.Value(caller{}).(*guest)
		g.failed = string(g.passed(stack[1], stack[2]))
		stack[0] = 0
	}), []api.ValueType{i32, i32, i32}, []api.ValueType{i32}).Export("fail")
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
	return &guest{t: t, module: module}
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
	g.emits, g.failed = nil, ""
	out, err := g.module.ExportedFunction(hook.Export()).Call(ctx, room[0], uint64(len(frame)))
	if err != nil {
		g.t.Fatalf("%v: %v", hook, err)
	}
	if status := abi.Status(int32(out[0])); status != abi.OK {
		return nil, fmt.Errorf("%v: %s", status, g.failed)
	}
	return g.emits, nil
}
