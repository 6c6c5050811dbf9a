// Package demo shows the mirror at work on two Kafka clusters inside the
// process: it writes live traffic of many kinds to one, mirrors it to the
// other, compares both record by record while it runs, and says in the end
// whether every record arrived as it was written. A consumer group reads at the
// first, fails over, and goes on at the other, and the demo says what it lost and
// repeated. It needs no file and leaves nothing behind.
package demo

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"mirror/sidecar/compare"
	"mirror/sidecar/config"
	"mirror/sidecar/policy"
	"mirror/sidecar/status"
)

// The clusters' aliases.
const (
	from = "primary"
	to   = "backup"
)

// configuration is the demo's mirror.toml.
const configuration = `
[admin]
listen = ""

[clusters.primary]
bootstrap = ["embedded"]

[clusters.backup]
bootstrap = ["embedded"]

[[flows]]
from    = "primary"
to      = "backup"
refresh = "1s"

[flows.checkpoints]
interval    = "500ms"
sync_groups = true
`

// Mirror is what the demo shows; it is sidecar.Mirror except in tests of what
// the demo says about a mirror that is not right.
type Mirror interface {
	Run(ctx context.Context) error
	Status() status.Report
	Bootstrap(alias string) []string
}

// Options say how the demo runs.
type Options struct {
	// Open makes the mirror, whose embedded clusters answer from then on
	// until its Run has ended.
	Open func(cfg *config.Config, log *slog.Logger) (Mirror, error)
	For  time.Duration // how long traffic is written; 0: until ctx ends
	Rate int           // records a second, all topics together
	// CatchUp is how long the mirror may take for the rest when the traffic
	// has stopped, and for the group's offsets when that fails over.
	CatchUp time.Duration
	Out     io.Writer
	// Terminal says that Out is one: the table is refreshed in place then,
	// and has colours if Colour.
	Terminal, Colour bool
	Log              *slog.Logger
}

// ErrDifferent is returned by Run when it has told in its summary that the
// target does not hold what the source does.
var ErrDifferent = errors.New("the target differs from the source")

// Run runs the demo until its time is up or ctx ends, and writes the summary
// either way. It returns ErrDifferent if a record was lost, repeated,
// reordered or changed, for the target or for the group, or if that could not be found
// out.
func Run(ctx context.Context, o Options) error {
	cfg, err := config.Parse("demo", []byte(configuration), func(string) (string, bool) { return "", false })
	if err != nil {
		return err
	}
	mirror, err := o.Open(cfg, o.Log)
	if err != nil {
		return err
	}
	d := &demo{Options: o, mirror: mirror, meter: newMeter(),
		screen: screen{out: o.Out, live: o.Terminal}, style: style{on: o.Terminal && o.Colour},
		policy: policy.New(cfg.Flows[0].Naming, from, to)}
	return d.run(ctx)
}

type demo struct {
	Options
	mirror Mirror
	policy *policy.Policy
	meter  meter
	screen screen
	style  style

	comparison *compare.Comparison
	group      *group
	traffic    *traffic
	ahead      atomic.Pointer[map[string]int] // of who reads, by topic
	first      sample                         // when the traffic began
	peak       float64                        // memory
}

// run starts the parts one after the other and stops them in reverse.
func (d *demo) run(ctx context.Context) (err error) {
	d.group = newGroup(d.mirror, d.policy.Target, d.CatchUp)
	defer d.group.leave()
	m := start(ctx, d.mirror)
	defer func() { err = errors.Join(err, m.stop()) }()

	source, err := kgo.NewClient(kgo.SeedBrokers(d.mirror.Bootstrap(from)...))
	if err != nil {
		return err
	}
	defer source.Close()
	target, err := kgo.NewClient(kgo.SeedBrokers(d.mirror.Bootstrap(to)...))
	if err != nil {
		return err
	}
	defer target.Close()

	if err := createTopics(ctx, source); err != nil {
		return err
	}
	pairs := make([]compare.Topic, 0, len(topics))
	for _, t := range topics {
		pairs = append(pairs, compare.Topic{Source: t.name, Target: d.policy.Target(t.name), Compacted: t.compacted})
	}
	d.comparison, err = compare.Start(m.alive, compare.Options{Source: source, Target: target, Topics: pairs})
	if err != nil {
		return err
	}
	defer d.comparison.Stop()
	return d.show(ctx, m)
}

// running is the mirror while it runs.
type running struct {
	alive  context.Context // ends after Run
	cancel context.CancelFunc
	err    error // of Run, when alive has ended
}

// start runs the mirror until stop, whatever becomes of ctx: when that ends,
// there still is a rest to mirror.
func start(ctx context.Context, m Mirror) *running {
	ctx = context.WithoutCancel(ctx)
	running := &running{}
	alive, ended := context.WithCancel(ctx)
	running.alive = alive
	ctx, running.cancel = context.WithCancel(ctx)
	go func() {
		defer ended()
		running.err = m.Run(ctx)
	}()
	return running
}

// stop ends the mirror, waits, and returns its error.
func (r *running) stop() error {
	r.cancel()
	<-r.alive.Done()
	return r.err
}
