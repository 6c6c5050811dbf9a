package plugins

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"

	"mirror/abi"
	"mirror/plugins/wasm"
)

// openCache gives the cache of compiled code in dir, which is native code and so is
// only used if nobody else can write there. nil and why: there is none.
func openCache(dir string) (wazero.CompilationCache, error) {
	if dir == "" {
		return nil, nil
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	s, err := os.Stat(dir)
	if err != nil {
		return nil, err
	}
	if s.Mode().Perm()&0o077 != 0 {
		return nil, fmt.Errorf("%s is open to others (mode %04o): make it 0700", dir, s.Mode().Perm())
	}
	// wazero says nothing when it cannot write there.
	f, err := os.CreateTemp(dir, "probe")
	if err != nil {
		return nil, err
	}
	f.Close()
	if err := os.Remove(f.Name()); err != nil {
		return nil, err
	}
	return wazero.NewCompilationCacheWithDir(dir)
}

// errValid ends a compilation once the module has been found to be valid.
var errValid = errors.New("valid")

// stopper is asked for a listener for each function, which wazero does between
// looking whether a module is valid and compiling it.
type stopper struct{}

func (stopper) NewFunctionListener(api.FunctionDefinition) experimental.FunctionListener {
	panic(errValid)
}

// validate says whether a module is valid as it is. Metering can make an invalid one
// valid, so the original has to be looked at; compiling it too would cost as much
// again, in time and memory.
func validate(ctx context.Context, module []byte, memoryPages uint32) (err error) {
	r := wazero.NewRuntimeWithConfig(ctx, wazero.NewRuntimeConfigInterpreter().WithMemoryLimitPages(memoryPages).WithDebugInfoEnabled(false))
	defer r.Close(ctx)
	defer func() {
		switch x := recover(); x {
		case nil:
		case errValid:
			err = nil
		default:
			panic(x)
		}
	}()
	_, err = r.CompileModule(experimental.WithFunctionListenerFactory(ctx, stopper{}), module)
	return err
}

// program is a compiled plugin. Each has a wazero runtime of its own, for its limits
// are the runtime's; they share the cache.
type program struct {
	Module
	spec     Spec
	topics   map[string]bool // that it may write to
	about    about
	lines    *lines
	board    *board
	runtime  wazero.Runtime
	compiled wazero.CompiledModule
	metered  bool  // else wazero itself looks at the clock, at each turn of each loop
	store    Store // of its state; nil: it has none

	mu     sync.Mutex
	schema *string // what init said, nil: no instance has begun yet; "": nothing
}

// declared notes the schema that an instance emitted: all have the same.
func (p *program) declared(schema string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.schema == nil:
		p.schema = &schema
		if schema != "" {
			p.store = NewMemoryStore()
		}
	case *p.schema != schema:
		return &Failure{Hook: abi.OnInit, Status: abi.BadInput, Text: fmt.Sprintf("it emits the schema %q, and another instance emitted %q: it must not depend on the lane", schema, *p.schema)}
	}
	return nil
}

// about is what init tells a guest.
type about struct {
	plugin, flow, from, to string
	generation             uint64
	object, flat           []byte // its config
}

// smallExtras is more than the extras of every frame take, in bytes.
const smallExtras = 1024

func (a about) extras(e *abi.Encoder) {
	e.Extra(abi.TagFlow, []byte(a.flow))
	e.Extra(abi.TagConfig, a.object)
	e.Extra(abi.TagFlat, a.flat)
	e.Extra(abi.TagPlugin, []byte(a.plugin))
	e.ExtraUint(abi.TagHost, abi.Minor)
	e.Extra(abi.TagFrom, []byte(a.from))
	e.Extra(abi.TagTo, []byte(a.to))
}

// meter is wasm.Meter; a test has it fail.
var meter = wasm.Meter

// compile makes native code of a module that Inspect has passed.
func (p *program) compile(ctx context.Context, cache wazero.CompilationCache) error {
	pages := uint32(p.spec.Limits.Memory / page)
	if p.MemoryPages > int(pages) {
		return fmt.Errorf("it begins with %d KiB of memory, limits.memory is %d KiB", p.MemoryPages*page>>10, p.spec.Limits.Memory>>10)
	}
	bare, err := wasm.Strip(p.wasm)
	if err != nil {
		return err
	}
	if err := validate(ctx, bare, pages); err != nil {
		return fmt.Errorf("the module is not valid: %w", err)
	}
	code, err := meter(p.wasm, wasm.Bounds{Stack: stackBound, TableSize: maxTable, Memory: pages})
	if p.metered = err == nil; !p.metered {
		p.lines.log.Warn("the plugin's work cannot be metered: its loops run several times slower, and its recursion takes up to 400 MB", "err", err)
		code = bare
	}
	config := runtimeConfig().WithMemoryLimitPages(pages).WithDebugInfoEnabled(false).WithCloseOnContextDone(!p.metered)
	if cache != nil {
		config = config.WithCompilationCache(cache)
	}
	p.runtime = wazero.NewRuntimeWithConfig(ctx, config)
	if err := p.provide(ctx); err != nil {
		return err
	}
	p.compiled, err = p.runtime.CompileModule(ctx, code)
	return err
}
