package plugins

import (
	"encoding/json"
	"errors"
	"fmt"
	"sort"
	"strconv"
	"strings"
	"time"
)

// Spec is a plugin as the config wants it.
type Spec struct {
	Name    string
	Where   string // its table in the config file, as "file:line"; empty: it has none
	Binary  Binary
	Config  map[string]any // as TOML gives it: tables, arrays, strings, bools, int64, float64, times
	Emit    Allow
	Tick    time.Duration // how often the hook tick is called; 0: never
	Failure Policy
	Limits  Limits
}

// Allow is what a plugin may emit. The zero value is nothing.
type Allow struct {
	Topics      []string // that it may write records to
	OffsetSyncs bool
	Groups      bool // translations of groups' offsets
}

// Policy is what becomes of a partition that a plugin fails at.
type Policy int

// The policies.
const (
	Halt  Policy = iota // it is not copied any further until a reload
	Retry               // tried again at growing intervals, then halted
	Skip                // the data goes on without the plugin
)

func (p Policy) String() string { return [...]string{"halt", "retry", "skip"}[p] }

// Limits are what an instance may use. Zero means the default.
type Limits struct {
	Memory int64         // bytes
	Call   time.Duration // of a hook
	State  int64         // bytes of a partition's state
}

// The defaults, and what cannot be set.
const (
	DefaultMemory = 64 << 20
	DefaultCall   = 250 * time.Millisecond
	DefaultState  = 4 << 20

	minState     = 4 << 10
	maxState     = 64 << 20
	page         = 64 << 10
	maxMemory    = 1 << 30
	maxCallTime  = time.Minute
	stackBound   = 8 << 20
	linesASecond = 100
	maxSeries    = 100
)

// initTime is how long an instance may take to begin.
var initTime = 5 * time.Second

func (l Limits) withDefaults() Limits {
	if l.Memory == 0 {
		l.Memory = DefaultMemory
	}
	if l.Call == 0 {
		l.Call = DefaultCall
	}
	if l.State == 0 {
		l.State = DefaultState
	}
	return l
}

func (l Limits) check() error {
	if l.Memory < page || l.Memory > maxMemory {
		return fmt.Errorf("limits.memory is %d bytes: it must be %d to %d", l.Memory, page, maxMemory)
	}
	if l.Call < time.Millisecond || l.Call > maxCallTime {
		return fmt.Errorf("limits.call is %v: it must be 1ms to %v", l.Call, maxCallTime)
	}
	if l.State < minState || l.State > maxState {
		return fmt.Errorf("limits.state is %d bytes: it must be %d to %d", l.State, minState, maxState)
	}
	return nil
}

// encodeConfig makes the two forms that a guest is given: a JSON object, and the
// flattened one of SPEC.md, section 3.
func encodeConfig(c map[string]any) (object, flat []byte, err error) {
	if c == nil {
		c = map[string]any{}
	}
	if object, err = json.Marshal(c); err != nil {
		return nil, nil, fmt.Errorf("config: %w", err)
	}
	values := map[string]string{}
	if err := flatten(values, "", c); err != nil {
		return nil, nil, fmt.Errorf("config: %w", err)
	}
	keys := make([]string, 0, len(values))
	for k := range values {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	for _, k := range keys {
		if strings.ContainsRune(k+values[k], 0) {
			return nil, nil, fmt.Errorf("config: %q has a NUL in it", k)
		}
		flat = append(append(append(append(flat, k...), 0), values[k]...), 0)
	}
	return object, flat, nil
}

func flatten(into map[string]string, at string, v any) error {
	inside := func(key string) string {
		if at == "" {
			return key
		}
		return at + "." + key
	}
	text := ""
	switch v := v.(type) {
	case map[string]any:
		for k, x := range v {
			if err := flatten(into, inside(k), x); err != nil {
				return err
			}
		}
		return nil
	case []any:
		for i, x := range v {
			if err := flatten(into, inside(strconv.Itoa(i)), x); err != nil {
				return err
			}
		}
		return nil
	case []map[string]any:
		for i, x := range v {
			if err := flatten(into, inside(strconv.Itoa(i)), x); err != nil {
				return err
			}
		}
		return nil
	case string:
		text = v
	case bool:
		text = strconv.FormatBool(v)
	case int64:
		text = strconv.FormatInt(v, 10)
	case float64:
		text = strconv.FormatFloat(v, 'g', -1, 64)
	case time.Time:
		text = v.Format(time.RFC3339Nano)
	default:
		return fmt.Errorf("%s: a plugin cannot be given a %T", at, v)
	}
	if _, ok := into[at]; ok {
		return fmt.Errorf("%s is there twice once tables are flattened: rename one", at)
	}
	into[at] = text
	return nil
}

// place is where the plugin is from, for errors.
func (s Spec) place() string {
	if s.Where == "" {
		return s.Binary.Path
	}
	return s.Where + ", " + s.Binary.Path
}

var errNoName = errors.New("a plugin without a name")

func (s Spec) check() error {
	if s.Name == "" {
		return errNoName
	}
	if s.Tick < 0 {
		return fmt.Errorf("tick is %v", s.Tick)
	}
	return s.Limits.check()
}
