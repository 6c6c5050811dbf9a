package config

import (
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"time"
)

// OffsetSyncPlugin is the name of the built-in plugin, which is loaded unless the
// file has a table of this name that says otherwise.
const OffsetSyncPlugin = "offset-sync"

// Where offset syncs are kept.
const (
	OnTarget = "target"
	OnSource = "source" // MirrorMaker's default: the source account needs the right to write then
)

// OffsetSyncs is where a flow's offset syncs are kept.
type OffsetSyncs struct {
	Location string // OnTarget or OnSource
}

// Failure policies of a plugin.
const (
	FailureHalt  = "halt"  // the partition stops until somebody acts
	FailureRetry = "retry" // with pauses that grow, then halt
	FailureSkip  = "skip"  // the records go on without it
)

// Plugin is a commit hook of a flow: a WASM module that is told what has been
// stored.
type Plugin struct {
	Name    string
	Where   string         `json:"-"` // file:line of its table; "": it has none
	Path    string         // a .wasm or .wasm.gz; "": the one that is built in
	SHA256  string         // of the file's bytes, in hex; "": not pinned
	Emit    Emit           // what it may emit
	Tick    time.Duration  // how often it is told the time, 0: never
	Failure string         // a failure policy
	Limits  Limits         // of one instance
	Config  map[string]any // handed to it
}

// BuiltIn says that the plugin is part of this program.
func (p Plugin) BuiltIn() bool { return p.Path == "" }

// Same says whether it is the same plugin, wherever in the file its table is.
func (p Plugin) Same(other Plugin) bool {
	p.Where = other.Where
	return reflect.DeepEqual(p, other)
}

// Emit is what a plugin may emit.
type Emit struct {
	Topics      []string // records for these topics of the target
	Create      bool     // those that do not exist are made
	OffsetSyncs bool     // offset syncs
	Groups      bool     // translations of groups' offsets
}

// Limits of a plugin's instance, of which each lane has one.
type Limits struct {
	Memory int64         // bytes
	Call   time.Duration // one call of a hook
	State  int64         // bytes of a partition's state
}

var (
	pluginName = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,62}[a-z0-9])?$`)
	digest     = regexp.MustCompile(`^[0-9A-Fa-f]{64}$`)
)

// What the host allows: a page, which WASM counts memory in, to 1 GiB; calls of a
// minute; and so much state.
const (
	leastMemory = 64 << 10
	mostMemory  = 1 << 30
	mostCall    = time.Minute
	leastState  = 4 << 10
	mostState   = 64 << 20
)

// builtIn is the offset-sync plugin's table where the file has none.
func builtIn() Plugin {
	return Plugin{
		Name: OffsetSyncPlugin, Emit: Emit{Topics: []string{}, OffsetSyncs: true, Groups: true}, Failure: FailureHalt,
		Limits: Limits{Memory: 64 << 20, Call: 250 * time.Millisecond, State: 4 << 20},
		Config: builtInConfig(),
	}
}

func builtInConfig() map[string]any {
	return map[string]any{"lag_max": int64(100), "mm2_syncs": true, "translate": true}
}

// readPlugins reads a flow's plugins; those that are switched off are checked and
// left out.
func readPlugins(flow *table) (enabled []Plugin) {
	var names []string
	on := true // the built-in, or what takes its place
	for _, t := range flow.tables("plugins") {
		p, use := readPlugin(t)
		if p.Name != "" && slices.Contains(names, p.Name) {
			t.problem("name", "is there twice")
		}
		names = append(names, p.Name)
		if p.Name == OffsetSyncPlugin {
			on = use
		}
		if use {
			enabled = append(enabled, p)
		}
	}
	if on && !slices.Contains(names, OffsetSyncPlugin) {
		enabled = append([]Plugin{builtIn()}, enabled...)
	}
	return enabled
}

func readPlugin(t *table) (p Plugin, enabled bool) {
	t.require("name")
	p = builtIn()
	p.Name, p.Path, p.Where = t.text("name", ""), t.file("path"), fmt.Sprintf("%s:%d", t.r.file, t.r.lines.of(t.path))
	if p.Name != "" && !pluginName.MatchString(p.Name) {
		t.problem("name", "must be up to 64 of a-z, 0-9 and - between them: it becomes part of topics' and metrics' names")
		p.Name = ""
	}
	offsetSync := p.Name == OffsetSyncPlugin
	if !offsetSync && p.Path == "" && p.Name != "" {
		t.problem("path", "is required: the built-in plugin is %q", OffsetSyncPlugin)
	}
	enabled = t.boolean("enabled", true)
	p.SHA256 = strings.ToLower(t.text("sha256", ""))
	switch {
	case p.SHA256 == "":
	case !digest.MatchString(p.SHA256):
		t.problem("sha256", "must be 64 hexadecimal digits, as sha256sum prints them")
	case p.BuiltIn():
		t.problem("sha256", "pins a file: the built-in plugin has no path")
	}
	p.Emit = readEmit(t.table("emit"), offsetSync)
	p.Tick = t.durationOrNever("tick", 0, 100*time.Millisecond)
	p.Failure = t.choice("failure", FailureHalt, FailureHalt, FailureRetry, FailureSkip)
	limits := t.table("limits")
	p.Limits = Limits{
		Memory: limits.size("memory", p.Limits.Memory, leastMemory),
		Call:   limits.duration("call", p.Limits.Call, time.Millisecond),
		State:  limits.size("state", p.Limits.State, leastState),
	}
	if p.Limits.Memory > mostMemory {
		limits.problem("memory", "must be at most 1GiB")
	}
	if p.Limits.Call > mostCall {
		limits.problem("call", "must be at most 1m")
	}
	if p.Limits.State > mostState {
		limits.problem("state", "must be at most 64MiB")
	}
	p.Config = t.free("config")
	if offsetSync && p.BuiltIn() {
		config := builtInConfig()
		for k, v := range p.Config {
			config[k] = v
		}
		p.Config = config
	}
	return p, enabled
}

func readEmit(t *table, offsetSync bool) Emit {
	e := Emit{
		Topics:      append([]string{}, t.texts("topics")...),
		Create:      t.boolean("create", false),
		OffsetSyncs: t.boolean("offset_syncs", offsetSync),
		Groups:      t.boolean("groups", offsetSync),
	}
	for i, name := range e.Topics {
		if name != "" && !validTopic(name) {
			t.r.problem(element(t.key("topics"), i), "is no topic name: 249 letters, digits, . _ - at most")
		}
	}
	if e.Create && len(e.Topics) == 0 {
		t.problem("create", "makes the topics it may emit to, and there are none")
	}
	return e
}

// readOffsetSyncs reads where offset syncs go. Without anything that writes them
// its options are refused, as KIP-1031 has it: who sets one expects syncs.
func readOffsetSyncs(t *table, plugins []Plugin) OffsetSyncs {
	o := OffsetSyncs{Location: t.choice("location", OnTarget, OnTarget, OnSource)}
	if slices.ContainsFunc(plugins, func(p Plugin) bool { return p.Emit.OffsetSyncs }) {
		return o
	}
	for name := range t.values {
		if slices.Contains(t.known, name) {
			t.problem(name, "has no effect: the plugin %q is switched off and no other may emit offset syncs; switch it on or remove this line", OffsetSyncPlugin)
		}
	}
	return o
}

func validTopic(name string) bool {
	return topicName.MatchString(name) && len(name) <= 249 && name != "." && name != ".."
}

// plugins is a list of plugins as the file could have it, with every key.
func (s sources) plugins(ps []Plugin) string {
	texts := make([]string, len(ps))
	for i := range ps {
		p := &ps[i]
		texts[i] = fmt.Sprintf("{ name = %s, path = %s, sha256 = %s, emit = { topics = %s, create = %t, offset_syncs = %t, groups = %t }, tick = %s, failure = %s, limits = { memory = %s, call = %s, state = %s }, config = %s }",
			s.quote(p.Name), s.quote(p.Path), s.quote(p.SHA256), s.list(p.Emit.Topics), p.Emit.Create, p.Emit.OffsetSyncs, p.Emit.Groups,
			quote(duration(p.Tick)), quote(p.Failure), quote(byteSize(p.Limits.Memory).String()), quote(duration(p.Limits.Call)), quote(byteSize(p.Limits.State).String()), s.any(p.Config))
	}
	return "[" + strings.Join(texts, ", ") + "]"
}

// any is a value of a table that is somebody else's.
func (s sources) any(v any) string {
	switch v := v.(type) {
	case string:
		return s.quote(v)
	case map[string]any:
		var pairs []string
		for _, name := range slices.Sorted(maps.Keys(v)) {
			pairs = append(pairs, join("", name)+" = "+s.any(v[name]))
		}
		if len(pairs) == 0 {
			return "{}"
		}
		return "{ " + strings.Join(pairs, ", ") + " }"
	case []any:
		texts := make([]string, len(v))
		for i, e := range v {
			texts[i] = s.any(e)
		}
		return "[" + strings.Join(texts, ", ") + "]"
	case time.Time:
		return v.Format(time.RFC3339Nano)
	}
	return fmt.Sprint(v)
}
