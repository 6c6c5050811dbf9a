// Package pipeline is a flow at work: batches come from the fetcher, are looked
// at in a lane, go to the producer, and once they are acknowledged the position
// moves and is saved.
//
//	fetch.Partition ──Fetched──► lane.prepare ──Push──► produce.Partition
//	                                                          │ Acknowledged
//	                     positions.Store ◄──save── lane.commit ◄─ position
//
// flow.go runs it all, apply.go changes its config meanwhile, refresh.go follows the topics, keep.go looks after the
// positions' topic; begin.go finds where a partition resumes, with gaps.go and
// targets.go for logs that do not fit its position, resume.go for what the target
// holds after it and refill.go for what it has lost before it; partition.go ties both ends of one, lane.go and
// prepare.go do the work in between, drain.go ends it. Plugins, if there are any,
// are told of what is acknowledged before a position is saved: generation.go loads
// them, plugged.go gives the lanes theirs, hooks.go and told.go say what they are
// told, sink.go writes what they emit, states.go keeps what they put, translate.go asks
// them where groups go on, which failover.go has the groups do.
package pipeline

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"log/slog"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"mirror/sidecar/cluster"
	"mirror/sidecar/config"
	"mirror/sidecar/failover"
	"mirror/sidecar/fetch"
	"mirror/sidecar/policy"
	"mirror/sidecar/positions"
	"mirror/sidecar/produce"
	"mirror/sidecar/status"
	"mirror/sidecar/topics"
	"mirror/sidecar/wire"
)

// Options of a Flow.
type Options struct {
	Config         config.Flow
	Source, Target *cluster.Cluster
	Log            *slog.Logger
}

// Flow copies the topics of one cluster to another.
type Flow struct {
	config         atomic.Pointer[config.Flow] // of now: see cfg and Apply
	log            *slog.Logger
	source, target *cluster.Cluster
	committed      bool
	frames         *wire.Pool
	sourceLeaders  *cluster.Leaders
	targetLeaders  *cluster.Leaders
	fetcher        *fetch.Fetcher
	producer       *produce.Producer
	lanes          []*lane
	manager        *topics.Manager
	sourceTrouble  trouble
	targetTrouble  trouble
	agenda         agenda        // partitions to begin with
	changed        chan struct{} // holds one token after an Apply
	keeper         *keeper
	running        atomic.Int64 // partitions there are
	sink           *sink        // for what plugins emit
	failover       *failover.Engine
	failoverStale  chan struct{} // holds one token after what failover depends on may have changed
	generations    atomic.Uint64 // of plugins, so far
	starting       sync.Mutex    // held while a config is prepared before the flow begins
	started        bool          // Run was called; starting guards it
	pluginsLoaded  chan struct{} // closed when the first are, or never will be
	opened         chan struct{} // closed when the positions are read, and topics looked up
	states         states        // of plugins
	latencies      latencies

	store *positions.Store        // once started
	fail  context.CancelCauseFunc // ends Run

	mu         sync.Mutex
	state      status.State
	reason     string
	partitions map[positions.Key]*partition
	loaded     map[positions.Key]positions.Position // of the last run, and of partitions that left
	left       map[positions.Key]bool               // partitions that were here, and may be again
	first      bool                                 // the flow has never run before
	problems   []status.Topic
	// positionsProblem is what is wrong with their topic, "": nothing.
	positionsProblem string
	stateProblem     string // why plugins' state cannot be read yet, "": it is; positions wait for that
	errors           map[string]uint64
	generation       *generation // of the plugins that run, or are about to; nil: none
	loading          *generation // the first one, until it has its state
}

// maxLanes is the number of lanes by default where there are many cores. More
// only cost memory: most batches need little work.
const maxLanes = 4

// New makes a flow. It does no I/O until Run.
func New(o Options) *Flow {
	f := &Flow{
		log:    o.Log.With("flow", o.Config.Name()),
		source: o.Source, target: o.Target,
		committed:     o.Config.Isolation == config.ReadCommitted,
		frames:        wire.NewPool(o.Config.Memory),
		sourceLeaders: cluster.NewLeaders(o.Source),
		targetLeaders: cluster.NewLeaders(o.Target),
		agenda:        newAgenda(),
		changed:       make(chan struct{}, 1),
		failoverStale: make(chan struct{}, 1),
		pluginsLoaded: make(chan struct{}),
		opened:        make(chan struct{}),
		state:         status.Starting,
		reason:        "connecting",
		partitions:    map[positions.Key]*partition{},
		left:          map[positions.Key]bool{},
		errors:        map[string]uint64{},
	}
	f.config.Store(&o.Config)
	names := policy.New(o.Config.Naming, o.Config.From, o.Config.To)
	f.manager = topics.New(topics.Options{
		Source: o.Source, Target: o.Target, Policy: names, Log: f.log,
	})
	f.fetcher = fetch.New(fetch.Options{
		Leaders: f.sourceLeaders, Dial: f.dialer(o.Source, f.frames), Frames: f.frames,
		Rack: o.Source.Rack(), Committed: f.committed,
		Failed: func(err error) { f.trouble(&f.sourceTrouble, status.ErrorSourceConnection, err) },
	})
	f.producer = produce.New(produce.Options{
		Leaders: f.targetLeaders, Dial: f.dialer(o.Target, nil), Frames: f.frames,
		MaxDecompressed: maxDecompressed,
		Failed:          func(err error) { f.trouble(&f.targetTrouble, status.ErrorTargetConnection, err) },
	})
	f.states = states{flow: f, open: map[stateName]*openState{}}
	f.keeper = newKeeper(f)
	f.sink = newSink(f)
	f.failover = f.newFailover()
	n := o.Config.Lanes
	if n == 0 {
		n = min(runtime.GOMAXPROCS(0), maxLanes)
	}
	for i := range n {
		f.lanes = append(f.lanes, newLane(f, i))
	}
	return f
}

// dialer connects to brokers of c; the answers are put in frames, if not nil.
func (f *Flow) dialer(c *cluster.Cluster, frames *wire.Pool) func(context.Context, string) (*wire.Conn, error) {
	o := wire.Options{Dial: c.Dial, SASL: c.SASL, ClientID: c.ClientID(), Frames: frames,
		Log: f.log.With("cluster", c.Alias())}
	return func(ctx context.Context, addr string) (*wire.Conn, error) {
		conn, err := wire.Dial(ctx, addr, o)
		if err != nil {
			return nil, c.Explain(err)
		}
		return conn, nil
	}
}

// laneOf is the lane that owns a partition: the same one at every start.
func (f *Flow) laneOf(k positions.Key) int {
	h := fnv.New32a()
	fmt.Fprintf(h, "%s-%d", k.Topic, k.Partition)
	return int(h.Sum32() % uint32(len(f.lanes)))
}

// Run copies until ctx ends, then drains and saves within the grace time. It
// retries for ever what waiting may mend, and says in Status what it waits for. An
// error is what it stopped for by itself.
func (f *Flow) Run(ctx context.Context) error {
	outer := ctx
	ctx, f.fail = context.WithCancelCause(ctx)
	failed := func() error {
		if err := context.Cause(ctx); err != context.Cause(outer) {
			return fmt.Errorf("flow %s: %w", f.cfg().Name(), err)
		}
		return nil
	}
	defer f.stopPlugins()
	loading, stopLoading := context.WithCancel(context.WithoutCancel(ctx)) // what was copied meanwhile is still told
	loaded := f.startPlugins(loading)
	defer loaded()
	defer stopLoading()
	defer f.fail(nil)
	if !f.start(ctx) {
		return failed()
	}
	defer f.store.Close()
	// The ends outlive ctx: what was fetched is still stored.
	fetching, stopFetching := context.WithCancel(context.WithoutCancel(ctx))
	working, stopWorking := context.WithCancel(context.WithoutCancel(ctx))
	defer stopFetching()
	defer stopWorking()
	committing, stopCommitting := context.WithCancel(working)
	defer stopCommitting()
	var tending, fetched, commits, work sync.WaitGroup
	tending.Go(func() { f.refreshLoop(ctx) })
	tending.Go(func() { f.beginLoop(ctx) })
	tending.Go(func() { f.keeper.run(ctx) })
	tending.Go(func() { f.failover.Run(ctx) })
	if f.cfg().Resume {
		tending.Go(func() { f.watch(ctx) })
	}
	fetched.Go(func() { f.fetcher.Run(fetching) })
	work.Go(func() { f.producer.Run(working) })
	for _, l := range f.lanes {
		work.Go(func() { l.prepare(working) })
		commits.Go(func() { l.commit(committing) })
	}

	<-ctx.Done()
	deadline := time.Now().Add(f.cfg().Grace)
	f.setState(status.Stopping, "draining")
	tending.Wait()
	stopFetching()
	fetched.Wait()
	takenOver := errors.Is(context.Cause(ctx), errTakenOver)
	if !takenOver {
		f.drain(deadline)
		f.awaitPlugins(deadline)
	}
	stopLoading()
	stopCommitting() // one that is stuck must not keep the last one from its try
	commits.Wait()
	if !takenOver { // the positions are the other one's otherwise
		f.saveAll(deadline)
	}
	stopWorking()
	work.Wait()
	for _, p := range f.all() {
		p.close()
	}
	return failed()
}

// start opens the positions and does the first round of topics. It tries until
// both succeed or ctx ends.
func (f *Flow) start(ctx context.Context) bool {
	for n := 0; ; n++ {
		err := f.open(ctx)
		if err == nil {
			close(f.opened)
			f.setState(status.Running, "")
			f.log.Info("copying", "topics", f.topicCount(), "lanes", len(f.lanes))
			return true
		}
		if f.store != nil {
			f.store.Close()
			f.store = nil
		}
		if ctx.Err() != nil {
			return false
		}
		if f.setState(status.Starting, err.Error()) {
			f.log.Error("cannot start yet, trying again", "err", err)
		}
		select {
		case <-ctx.Done():
			return false
		case <-time.After(startPause(n)):
		}
	}
}

// startPause is how long to wait after the n-th failure in a row, from 0 on, to read what
// a flow has to know before it saves anything.
func startPause(n int) time.Duration {
	return min(250*time.Millisecond<<min(n, 6), 10*time.Second)
}

// openTime is how long one try may take.
const openTime = time.Minute

func (f *Flow) open(ctx context.Context) (err error) {
	ctx, cancel := context.WithTimeout(ctx, openTime)
	defer cancel()
	f.store, err = positions.Open(ctx, positions.Options{
		Cluster: f.target, Source: f.cfg().From, Positions: f.cfg().Positions, Create: f.cfg().Create, Log: f.log,
	})
	if err != nil {
		return err
	}
	loaded, err := f.store.Load(ctx)
	if err != nil {
		return err
	}
	f.mu.Lock()
	f.loaded, f.first = loaded, len(loaded) == 0
	f.mu.Unlock()
	f.keeper.check(ctx)
	if err := f.refresh(ctx); err != nil {
		return err
	}
	f.mu.Lock()
	f.first = false // what comes later begins at its beginning
	f.mu.Unlock()
	return nil
}

// setState says whether that is new.
func (f *Flow) setState(s status.State, reason string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	changed := f.state != s || f.reason != reason
	f.state, f.reason = s, reason
	return changed
}

// partitionLimit is how many bytes one partition may hold: a quarter of all, half
// where there are only two, so that a single one can fill a long link.
func (f *Flow) partitionLimit() int {
	share := min(max(f.running.Load(), 2), 4)
	return int(max(f.cfg().Memory/share, 64<<10))
}

func (f *Flow) count(kind string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.errors[kind]++
}

func (f *Flow) all() []*partition {
	f.mu.Lock()
	defer f.mu.Unlock()
	ps := make([]*partition, 0, len(f.partitions))
	for _, p := range f.partitions {
		ps = append(ps, p)
	}
	return ps
}

func (f *Flow) topicCount() int {
	names := map[string]bool{}
	for _, p := range f.all() {
		names[p.key.Topic] = true
	}
	return len(names)
}
