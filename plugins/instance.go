package plugins

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	"mirror/abi"
	"mirror/plugins/wasm"
)

// instance is a running guest. One goroutine uses it at a time. After an error of
// any of its methods it must be dropped, except where they say so.
type instance struct {
	p      *program
	lane   int
	module api.Module
	memory api.Memory
	alloc  api.Function
	hooks  [abi.OnClose + 1]api.Function
	fuel   api.MutableGlobal // of a metered one
	stack  api.Global
	frames abi.Encoder
	words  [2]uint64 // parameters and results of calls

	ctx     context.Context // for calls of the guest; has the instance in it
	cancel  func()
	caller  context.Context // of the call under way
	limit   time.Duration   // of the stretch of calls under way
	used    time.Duration   // of that, as far as it counts
	looked  time.Time       // when the clock was looked at last
	call    *call
	staged  []Emit // of the last call, for its room
	said    string // by fail
	refused uint64 // puts for which there was no room, since it was asked
	clock   clock
}

// call is a hook under way.
type call struct {
	hook     abi.Hook
	about    []*queue // what the frame's entries are about
	answered []bool   // of on_groups: which entries have their translation
	staged   []Emit
	bytes    int
	undo     []undo // of what it put
	refused  *refusal
}

type refusal struct {
	status abi.Status
	err    error
}

// errNoRoom: mirror_alloc gave no room for the frame. The instance is as it was.
var errNoRoom = errors.New("no room for the frame")

func noRoom(h abi.Hook) *Failure {
	return &Failure{Hook: h, Status: abi.NoMemory, Text: "mirror_alloc has no room for the smallest frame"}
}

// start makes an instance and calls init. Errors are a *Failure or ctx's.
func (p *program) start(ctx context.Context, lane int) (*instance, error) {
	i, err := p.instantiate(ctx, lane)
	if err != nil {
		return nil, err
	}
	if err := i.greet(); err != nil {
		i.drop()
		return nil, err
	}
	return i, nil
}

// instantiate makes an instance that nothing has been called of. Errors are a *Failure
// or ctx's.
func (p *program) instantiate(ctx context.Context, lane int) (*instance, error) {
	i := &instance{p: p, lane: lane, cancel: func() {}}
	i.clock.began = time.Now()
	i.within(ctx, initTime)
	config := wazero.NewModuleConfig().WithName("").WithStartFunctions().
		WithStdout(&console{i: i, level: abi.LogInfo}).WithStderr(&console{i: i, level: abi.LogWarn}).
		WithWalltime(i.clock.wall, 1000).WithNanotime(i.clock.nano, 1000).WithNanosleep(i.sleep).WithRandSource(newNoise(i))
	var err error
	if i.module, err = p.runtime.InstantiateModule(i.ctx, p.compiled, config); err != nil {
		i.cancel()
		return nil, i.failed(0, err)
	}
	i.memory = i.module.ExportedMemory(abi.ExportMemory)
	i.alloc = i.module.ExportedFunction(abi.ExportAlloc)
	for _, h := range p.Hooks {
		i.hooks[h] = i.module.ExportedFunction(h.Export())
	}
	if p.metered {
		i.fuel = i.module.ExportedGlobal(wasm.FuelGlobal).(api.MutableGlobal)
		i.stack = i.module.ExportedGlobal(wasm.StackGlobal)
	}
	return i, nil
}

// version asks which minor version of the contract the guest was built for, and refuses
// one that there is not.
func (i *instance) version() (int, error) {
	if f := i.module.ExportedFunction(abi.ExportInitialize); f != nil {
		if err := i.invoke(f); err != nil {
			return 0, i.failed(0, err)
		}
	}
	if err := i.invoke(i.module.ExportedFunction(abi.ExportVersion)); err != nil {
		return 0, i.failed(0, err)
	}
	v := api.DecodeI32(i.words[0])
	if v < 1 || v > abi.Minor {
		return 0, &Failure{Status: abi.Unsupported, Text: fmt.Sprintf("it was built for minor version %d, there are 1 to %d: use a plugin for this version of the mirror", v, abi.Minor)}
	}
	return int(v), nil
}

// greet calls what comes before the other hooks.
func (i *instance) greet() error {
	if _, err := i.version(); err != nil {
		return err
	}
	if i.hooks[abi.OnInit] == nil {
		return i.p.declared("")
	}
	emits, err := i.pass(abi.OnInit, 0, 0, nil, func(e *abi.Encoder) { i.p.about.extras(e) })
	if errors.Is(err, errNoRoom) {
		return noRoom(abi.OnInit)
	}
	if err != nil {
		return err
	}
	schema := ""
	if len(emits) > 0 {
		schema = string(emits[0].Data)
	}
	return i.p.declared(schema)
}

// tell calls a hook with a frame: fill adds its entries, which are about these queues, and
// extras beside those that every frame has. The result is what the guest emitted, valid
// until the next call. The error is ctx's, errNoRoom, or a *Failure; with abi.Retry in it the instance is fine.
// A hook that the guest does not have is told nothing.
func (i *instance) tell(ctx context.Context, h abi.Hook, flags uint16, attempt int, about []*queue, fill func(*abi.Encoder)) ([]Emit, error) {
	if i.hooks[h] == nil {
		return nil, nil
	}
	i.within(ctx, i.p.spec.Limits.Call)
	return i.pass(h, flags, attempt, about, fill)
}

// within begins a stretch of calls that have to end in time.
func (i *instance) within(ctx context.Context, limit time.Duration) {
	now := time.Now()
	i.caller, i.limit, i.used, i.looked = ctx, limit, 0, now
	i.clock.start(now)
	switch {
	case !i.p.metered: // wazero watches the context
		i.cancel()
		i.ctx, i.cancel = context.WithDeadline(context.WithValue(ctx, instanceKey{}, i), now.Add(limit))
	case i.ctx == nil:
		i.ctx = context.WithValue(context.Background(), instanceKey{}, i)
	}
}

// pass writes a frame into the guest and calls the hook.
func (i *instance) pass(h abi.Hook, flags uint16, attempt int, about []*queue, fill func(*abi.Encoder)) ([]Emit, error) {
	e := &i.frames
	e.Begin(h, flags)
	if fill != nil {
		fill(e)
	}
	e.ExtraUint(abi.TagNow, uint64(i.clock.wallTime.UnixMilli()))
	e.ExtraUint(abi.TagAttempt, uint64(attempt))
	e.ExtraUint(abi.TagLane, uint64(i.lane))
	e.ExtraUint(abi.TagGeneration, i.p.about.generation)
	frame, err := e.Finish()
	if err != nil {
		return nil, &Failure{Hook: h, Status: abi.Limit, Text: err.Error()}
	}
	i.said = ""
	if err := i.invoke(i.alloc, uint64(len(frame))); err != nil {
		return nil, i.failed(h, err)
	}
	ptr := uint32(i.words[0])
	if ptr == 0 {
		return nil, errNoRoom
	}
	if ptr%8 != 0 || !i.memory.Write(ptr, frame) {
		return nil, &Failure{Hook: h, Status: abi.BadInput, Text: fmt.Sprintf("mirror_alloc(%d) gave %#x, which is not divisible by 8 or not all in memory", len(frame), ptr)}
	}
	// What was staged before has been written by now, or will never be.
	c := &call{hook: h, about: about, staged: i.staged[:0]}
	if h == abi.OnGroups {
		c.answered = make([]bool, len(about))
	}
	i.call = c
	err = i.invoke(i.hooks[h], uint64(ptr), uint64(len(frame)))
	i.call, i.staged = nil, c.staged
	if err != nil || c.refused != nil || i.words[0] != 0 {
		for _, u := range slices.Backward(c.undo) {
			u.back()
		}
	}
	switch status := api.DecodeI32(i.words[0]); {
	case err != nil:
		return nil, i.failed(h, err)
	case c.refused != nil:
		return nil, &Failure{Hook: h, Status: c.refused.status, Text: c.refused.err.Error()}
	case status != 0:
		return nil, i.returned(h, status)
	}
	return c.staged, nil
}

// invoke calls a function of the guest; its result is in words.
func (i *instance) invoke(f api.Function, args ...uint64) error {
	copy(i.words[:], args)
	if i.fuel != nil {
		i.fuel.Set(slice)
	}
	return f.CallWithStack(i.ctx, i.words[:])
}

// drop ends the instance without telling it.
func (i *instance) drop() {
	i.cancel()
	i.module.Close(context.Background())
}

// size is how much memory the guest has, in bytes.
func (i *instance) size() uint32 { return i.memory.Size() }
