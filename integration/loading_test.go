package integration

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"

	"mirror/abi"
	"mirror/integration/contract"
	"mirror/plugins"
	"mirror/plugins/offsetsync"
	"mirror/sidecar/cluster"
	"mirror/sidecar/config"
	"mirror/sidecar/state"
)

// kept says what the state of the built-in plugin is kept of: so many partitions with so
// many transactions, of one to twenty records and a marker each. (Those of one size
// would be told apart by nothing, and compress to nothing.)
type kept struct {
	Bootstrap                []string
	Topic                    string // of the state
	Partitions, Transactions int64
}

// loaded is what a process says that has read it.
type loaded struct {
	// Read is how long that took, Told how long until the plugin has been told of all
	// partitions, and so has looked at what is kept of each.
	Read, Told time.Duration
	// Before is the peak of the process's memory when it began, Peak in the end; in KiB.
	Before, Peak int64
	// Kept is how many bytes of keys and values there are, with what each costs beside.
	Kept int64
}

const (
	runsVariable    = "MIRROR_TEST_RUNS"    // how many runs to keep and load
	loadingVariable = "MIRROR_TEST_LOADING" // what TestLoadingProcess loads
)

// loading measures what a start reads where much is kept, in a process of its own, and
// checks that it is all there. In the usual tests it is little; for the figures in
// DESIGN.md: MIRROR_TEST_RUNS=10000000.
func (k *kafka) loading(e *contract.Env) {
	runs := int64(50_000)
	if n, err := strconv.ParseInt(os.Getenv(runsVariable), 10, 64); err == nil {
		runs = n
	}
	of := kept{k.target.Bootstrap(), state.TopicName(e.Topic("a"), offsetsync.Name, "."), max(runs/10_000, 10), 0}
	of.Transactions = runs / of.Partitions
	began := time.Now()
	of.fill(e)
	e.Logf("%d runs over %d partitions kept in %v", of.Partitions*of.Transactions, of.Partitions, time.Since(began).Round(time.Millisecond))
	admin := kadm.NewClient(k.target.Client(e))
	ends, err := admin.ListEndOffsets(e.Context(), of.Topic)
	if err == nil {
		err = ends.Error()
	}
	if err != nil {
		e.Fatal(err)
	}
	logs, err := admin.DescribeAllLogDirs(e.Context(), nil)
	if err != nil {
		e.Fatal(err)
	}
	records, bytes := int64(0), int64(0)
	ends.Each(func(o kadm.ListedOffset) { records += o.Offset })
	for _, on := range logs {
		on.EachPartition(func(p kadm.DescribedLogDirPartition) {
			if p.Topic == of.Topic {
				bytes += p.Size
			}
		})
	}
	got := of.load(e)
	mb := func(bytes int64) float64 { return float64(bytes) / 1e6 }
	e.Logf("%d records, of %.1f MB: read in %v, the plugin is told by %v; %.1f MB kept; memory %.1f MB before, %.1f MB at its peak",
		records, mb(bytes), got.Read.Round(time.Millisecond), got.Told.Round(time.Millisecond), mb(got.Kept), mb(got.Before<<10), mb(got.Peak<<10))
	if least := 2 * of.Partitions * of.Transactions; got.Kept < least || got.Kept > 2*least {
		e.Errorf("%d bytes are kept, want %d at least and not twice that", got.Kept, least)
	}
	if most := 32<<20 + 8*got.Kept; (got.Peak-got.Before)<<10 > most {
		e.Errorf("memory has grown from %d KiB to %d KiB, by more than %d bytes", got.Before, got.Peak, most)
	}
}

// transaction is where one begins, at the source and on the target.
type transaction struct{ source, target, records int64 }

// history are the transactions of a partition.
func (of kept) history(n int64) iter.Seq[transaction] {
	return func(yield func(transaction) bool) {
		sizes := rand.New(rand.NewPCG(uint64(n), 1))
		var t transaction
		for range of.Transactions {
			if t.records = 1 + sizes.Int64N(20); !yield(t) {
				return
			}
			t.source, t.target = t.source+t.records+1, t.target+t.records
		}
	}
}

// fill has the plugin keep it all, each partition with a flush after each thousand
// transactions.
func (of kept) fill(t testing.TB) {
	l := of.open(t)
	for n := range of.Partitions {
		k, told := key(n), 0
		l.assign(k, -1, 0)
		for t := range of.history(n) {
			last := t.source + t.records - 1
			l.Acknowledged(k,
				plugins.Range{First: t.source, Last: last, TargetFirst: t.target, TargetLast: t.target + t.records - 1, Records: uint32(t.records), MaxTimestamp: -1, LeaderEpoch: -1},
				plugins.Range{First: last + 1, Last: last + 1, TargetFirst: -1, TargetLast: -1, MaxTimestamp: -1, LeaderEpoch: -1})
			if told++; told%1000 == 0 {
				l.round(true)
			}
		}
		l.round(true)
	}
}

// load has another process load it.
func (of kept) load(t testing.TB) (got loaded) {
	t.Helper()
	what, err := json.Marshal(of)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run", "^TestLoadingProcess$", "-test.v")
	cmd.Env = append(os.Environ(), loadingVariable+"="+string(what))
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("the process that loads: %v\n%s", err, out)
	}
	_, text, _ := strings.Cut(string(out), loadingVariable+" ")
	if err := json.NewDecoder(strings.NewReader(text)).Decode(&got); err != nil {
		t.Fatalf("the process that loads: %v\n%s", err, out)
	}
	return got
}

// TestLoadingProcess is the process that loading starts.
func TestLoadingProcess(t *testing.T) {
	text := os.Getenv(loadingVariable)
	if text == "" {
		t.Skip("another test starts it")
	}
	var of kept
	if err := json.Unmarshal([]byte(text), &of); err != nil {
		t.Fatal(err)
	}
	var asked []plugins.GroupOffset // groups here and there
	var want []int64
	ends := make([]transaction, of.Partitions) // what would come next
	for n := range of.Partitions {
		next := int64(0)
		for t := range of.history(n) {
			if t.target >= next {
				asked = append(asked, plugins.GroupOffset{Key: key(n), Group: "g", Offset: t.source + t.records/2, LeaderEpoch: -1, LogStart: -1})
				want = append(want, t.target+t.records/2)
				next = t.target + 10*of.Transactions/8
			}
			ends[n] = transaction{source: t.source + t.records + 1, target: t.target + t.records}
		}
	}
	did := loaded{Before: peak(t)}
	began := time.Now()
	l := of.open(t)
	did.Read = l.read
	for n, end := range ends {
		l.assign(key(int64(n)), end.source-1, end.target)
	}
	l.round(false)
	did.Told, did.Peak, did.Kept = time.Since(began), peak(t), l.Status()[0].StateBytes
	l.wantExact(asked, want)
	out, err := json.Marshal(did)
	if err != nil {
		t.Fatal(err)
	}
	fmt.Println(loadingVariable, string(out))
}

// peak is the most memory that this process has had, see proc(5).
func peak(t testing.TB) (kilobytes int64) {
	t.Helper()
	b, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(b), "VmHWM:")
	if _, err := fmt.Sscanf(rest, "%d kB", &kilobytes); err != nil {
		t.Fatalf("no VmHWM in %s: %v", b, err)
	}
	return kilobytes
}

// keeper is a lane of the built-in plugin, which keeps its state on a cluster.
type keeper struct {
	*plugins.Lane
	t    testing.TB
	read time.Duration // how long it took to read what there was
}

// key is the partition of a number.
func key(n int64) plugins.Key {
	return plugins.Key{Topic: fmt.Sprintf("orders.transactions-%d", n%50), Partition: int32(n / 50)}
}

// open reads what is kept, and has the plugin go on with it.
func (of kept) open(t testing.TB) *keeper {
	t.Helper()
	fail := func(err error) {
		if err != nil {
			t.Helper()
			t.Fatal(err)
		}
	}
	log := slog.New(slog.DiscardHandler)
	c, err := cluster.Open(config.Cluster{Alias: "B", Bootstrap: of.Bootstrap, ClientID: "test"}, log)
	fail(err)
	t.Cleanup(c.Close)
	binary, err := plugins.Embedded(offsetsync.Name, offsetsync.Wasm)
	fail(err)
	spec := plugins.Spec{Name: offsetsync.Name, Binary: binary, Config: map[string]any{"mm2_syncs": false}, Emit: plugins.Allow{OffsetSyncs: true, Groups: true}}
	spec.Limits.Call = 20 * time.Second // the machine may be busy
	g, err := plugins.Load(t.Context(), plugins.Options{Flow: "A->B", From: "A", To: "B", Number: 1, Log: log}, []plugins.Spec{spec})
	fail(err)
	t.Cleanup(g.Close)
	set, err := g.Instantiate(t.Context(), 0) // which says what its schema is
	fail(err)
	began := time.Now()
	s, err := state.Open(t.Context(), state.Options{Cluster: c, Name: of.Topic, Schema: g.Schemas()[spec.Name], Create: config.Create{ReplicationFactor: 1}, Log: log})
	fail(err)
	k := &keeper{t: t, read: time.Since(began)}
	t.Cleanup(s.Close)
	g.Keep(spec.Name, s)
	k.Lane = plugins.NewLane(set, nowhere{})
	t.Cleanup(func() { k.Close(context.Background()) })
	return k
}

// nowhere is a sink that nothing is emitted to.
type nowhere struct{}

func (nowhere) Produce(_ context.Context, plugin string, emits []plugins.Emit) error {
	if len(emits) > 0 {
		return fmt.Errorf("plugin %s emits %d things", plugin, len(emits))
	}
	return nil
}

func (k *keeper) assign(key plugins.Key, position, end int64) {
	k.Notify(plugins.Event{Key: key, Kind: abi.Assigned, TargetTopic: "A." + key.Topic, LogStart: 0, Position: position, TargetEnd: end, TopicID: [16]byte{1}})
}

func (k *keeper) round(flush bool) {
	k.t.Helper()
	if err := k.Round(k.t.Context(), flush); err != nil {
		k.t.Fatal(err)
	}
	if is := k.Status()[0]; is.State != plugins.Running {
		k.t.Fatalf("%s: %s", is.State, is.Reason)
	}
}

// wantExact checks that groups anywhere are translated exactly, also the furthest behind.
func (k *keeper) wantExact(asked []plugins.GroupOffset, want []int64) {
	k.t.Helper()
	got, err := k.Groups(k.t.Context(), asked)
	if err != nil {
		k.t.Fatal(err)
	}
	for i, a := range asked {
		if got[i].Outcome != abi.Exact || got[i].Offset != want[i] {
			k.t.Fatalf("%v: offset %d becomes %+v, want %d", a.Key, a.Offset, got[i], want[i])
		}
	}
}
