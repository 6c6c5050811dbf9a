package plugins

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"

	"mirror/abi"
	"mirror/plugins/wasm"
)

// provide makes the modules that a guest imports from.
func (p *program) provide(ctx context.Context) error {
	b := p.runtime.NewHostModuleBuilder(abi.Module)
	for name, f := range map[string]func(*instance, []uint64) abi.Status{
		"emit": (*instance).emit, "log": (*instance).log, "fail": (*instance).fail,
		"state_get": (*instance).stateGet, "state_put": (*instance).statePut, "state_next": (*instance).stateNext,
		"metric_define": (*instance).defineMetric, "metric": (*instance).metric,
	} {
		t := imports[name]
		b.NewFunctionBuilder().WithGoModuleFunction(api.GoModuleFunc(func(ctx context.Context, _ api.Module, stack []uint64) {
			stack[0] = api.EncodeI32(int32(f(instanceOf(ctx), stack)))
		}), []api.ValueType(t.Params), []api.ValueType(t.Results)).Export(name)
	}
	if _, err := b.Instantiate(ctx); err != nil {
		return err
	}
	if _, err := p.runtime.NewHostModuleBuilder(wasm.MeterModule).NewFunctionBuilder().
		WithGoModuleFunction(api.GoModuleFunc(func(ctx context.Context, _ api.Module, _ []uint64) { instanceOf(ctx).refill() }), nil, nil).
		Export(wasm.MeterFunc).Instantiate(ctx); err != nil {
		return err
	}
	_, err := wasi_snapshot_preview1.NewBuilder(p.runtime).Instantiate(ctx)
	return err
}

type instanceKey struct{}

// instanceOf is the instance whose guest has called: every call of one passes it.
func instanceOf(ctx context.Context) *instance { return ctx.Value(instanceKey{}).(*instance) }

// Why the host ends a call. The status goes with it.
var (
	errDeadline = errors.New("it took too long")
	errDepth    = errors.New("its calls are nested too deeply")
)

// slice is how much a guest may do between two looks at the clock, in wasm's units:
// about a byte of code each.
const slice = 1_000_000

// refill is called when a slice is used up, or when calls are nested too deeply.
func (i *instance) refill() {
	if uint32(i.stack.Get()) > stackBound {
		panic(errDepth)
	}
	i.look()
	i.fuel.Set(slice)
}

// view is a piece of the guest's memory, to be used before the guest goes on.
func (i *instance) view(ptr, n uint64) ([]byte, bool) {
	return i.memory.Read(uint32(ptr), uint32(n))
}

func (i *instance) emit(a []uint64) abi.Status {
	b, ok := i.view(a[0], a[1])
	if !ok {
		return i.refuse(abi.BadInput, fmt.Errorf("emit of %d bytes at %#x: outside of memory", uint32(a[1]), uint32(a[0])))
	}
	return i.stage(b)
}

// stage takes an emit of the call under way, if it may be.
func (i *instance) stage(b []byte) abi.Status {
	c := i.call
	if c == nil {
		return abi.Unsupported
	}
	if c.bytes += len(b) + abi.EmitCost; c.bytes > abi.MaxEmits {
		return i.refuse(abi.Limit, fmt.Errorf("it emits more than %d bytes in one call", abi.MaxEmits))
	}
	// The memory is the guest's, and it goes on before this is produced. Offset
	// syncs and translations are numbers, and leave nothing of it behind.
	if k := abi.KindOf(b); k != abi.EmitOffsetSync && k != abi.EmitTranslation {
		b = bytes.Clone(b)
	}
	e, err := abi.ParseEmit(b)
	if err != nil {
		return i.refuse(abi.BadInput, err)
	}
	out := Emit{Emit: e}
	if status, err := i.allowed(e); err != nil {
		return i.refuse(status, err)
	}
	if e.Entry != abi.NoEntry {
		out.About = c.about[e.Entry].key
	}
	if c.answered != nil {
		c.answered[e.Entry] = true
	}
	c.staged = append(c.staged, out)
	return abi.OK
}

// allowed says whether the hook may emit that, about that, and whether the config
// lets the plugin.
func (i *instance) allowed(e abi.Emit) (abi.Status, error) {
	c, may := i.call, i.p.spec.Emit
	fits, about := false, true
	switch c.hook {
	case abi.OnInit:
		fits, about = e.Kind == abi.EmitSchema && len(c.staged) == 0, false
	case abi.OnSave:
		fits, about = e.Kind == abi.EmitSave && len(c.staged) == 0, false
	case abi.OnPartitions, abi.OnCommit, abi.OnTick:
		fits = e.Kind == abi.EmitOffsetSync || e.Kind == abi.EmitRecord
	case abi.OnGroups:
		fits = e.Kind == abi.EmitTranslation
	}
	none := e.Entry == abi.NoEntry && (!about || e.Kind == abi.EmitRecord)
	switch {
	case !fits:
		return abi.BadInput, fmt.Errorf("%v emits a %v, which it cannot, or not once more", c.hook, e.Kind)
	case !none && (!about || uint64(e.Entry) >= uint64(len(c.about))):
		return abi.BadInput, fmt.Errorf("it emits a %v about entry %d of %d", e.Kind, e.Entry, len(c.about))
	case c.answered != nil && c.answered[e.Entry]:
		return abi.BadInput, fmt.Errorf("it emits a second translation for entry %d", e.Entry)
	case e.Kind == abi.EmitOffsetSync && !may.OffsetSyncs:
		return abi.Reject, errors.New("it emits an offset sync, which the config does not allow: set emit.offset_syncs")
	case e.Kind == abi.EmitRecord && !i.p.topics[e.Record.Topic]:
		return abi.Reject, fmt.Errorf("it emits a record for topic %.100q, which the config does not allow: add it to emit.topics", e.Record.Topic)
	}
	return abi.OK, nil
}

// refuse fails the call under way: what a plugin wants written must not get lost
// because it does not look at what emit returns.
func (i *instance) refuse(s abi.Status, err error) abi.Status {
	if i.call == nil {
		return abi.Unsupported
	}
	if i.call.refused == nil {
		i.call.refused = &refusal{s, err}
	}
	return s
}

func (i *instance) log(a []uint64) abi.Status {
	b, ok := i.view(a[1], a[2])
	if level := uint32(a[0]); !ok || level >= uint32(len(levels)) {
		return abi.BadInput
	}
	i.p.lines.write(i.lane, int(a[0]), text(b))
	return abi.OK
}

func (i *instance) fail(a []uint64) abi.Status {
	b, ok := i.view(a[1], a[2])
	if !ok {
		return abi.BadInput
	}
	i.said = printable(text(b))
	if code := api.DecodeI32(a[0]); code != 0 && !abi.Status(code).Known() {
		i.said = fmt.Sprintf("%s (%d)", i.said, code)
	}
	return abi.OK
}

// text copies as much of b as is ever shown.
func text(b []byte) string { return string(b[:min(len(b), abi.MaxText)]) }

func (i *instance) defineMetric(a []uint64) abi.Status {
	const most = abi.MaxMetricName + abi.MaxMetricPairs*(abi.MaxMetricName+abi.MaxMetricValue+2)
	b, ok := i.view(a[1], a[2])
	if !ok || len(b) > most {
		return abi.BadInput
	}
	id, status, why := i.p.board.define(api.DecodeI32(a[0]), string(b))
	if status != abi.OK {
		i.p.lines.write(i.lane, abi.LogWarn, why)
		return status
	}
	return abi.Status(id)
}

func (i *instance) metric(a []uint64) abi.Status {
	return i.p.board.change(i.lane, api.DecodeI32(a[0]), api.DecodeI32(a[1]), int64(a[2]))
}
