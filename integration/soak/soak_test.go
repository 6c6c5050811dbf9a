package soak

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"go.uber.org/goleak"
	"golang.org/x/sync/errgroup"

	"mirror/integration/contract"
	"mirror/integration/kafkatest"
	"mirror/sidecar/compare"
	"mirror/sidecar/status"
)

var duration = flag.Duration("for", time.Minute, "how long the load lasts")

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m,
		// Testcontainers keeps its HTTP connections to Docker.
		goleak.IgnoreAnyFunction("net/http.(*persistConn).readLoop"),
		goleak.IgnoreAnyFunction("net/http.(*persistConn).writeLoop"),
		goleak.Cleanup(func(code int) {
			contract.Clean()
			os.Exit(code)
		}))
}

// TestSoak runs a mirror under load. It fails when what the process holds grows,
// when a record is missing, changed, moved or repeated on the target, and when
// the mirror does not end as it should.
func TestSoak(t *testing.T) {
	config := map[string]string{
		"log.retention.check.interval.ms": "5000",
		"log.segment.delete.delay.ms":     "1000",
		"log.cleaner.backoff.ms":          "1000",
	}
	clusters := kafkatest.StartAll(t, kafkatest.Network(t),
		kafkatest.Options{Name: "source", Config: config}, kafkatest.Options{Name: "target", Config: config})
	pair := contract.Pair{Source: contract.NewCluster(t, clusters[0].Bootstrap(), ""), Target: contract.NewCluster(t, clusters[1].Bootstrap(), ""), Real: true}
	s := &soak{links: []*kafkatest.Proxy{clusters[0].Nodes[0].Proxy, clusters[1].Nodes[0].Proxy}}
	contract.Play(t, func(testing.TB) contract.Pair { return pair },
		[]contract.Scenario{{Name: "soak", Real: true, Alone: true, Limit: *duration + 5*time.Minute, Run: s.run}})
}

type soak struct {
	*contract.Env
	links      []*kafkatest.Proxy
	mirror     *contract.Process
	comparison *compare.Comparison
	written    map[string]*atomic.Uint64 // by stream
	aborted    map[string]*atomic.Uint64
	failures   atomic.Uint64
	report     report
}

func (s *soak) run(e *contract.Env) {
	s.Env = e
	var topics []compare.Topic
	s.written, s.aborted = map[string]*atomic.Uint64{}, map[string]*atomic.Uint64{}
	for _, x := range streams {
		e.Create(e.Source, e.Topic(x.name), x.partitions, x.configs()...)
		topics = append(topics, compare.Topic{Source: e.Topic(x.name), Target: "src." + e.Topic(x.name), Compacted: x.compacted})
		s.written[x.name], s.aborted[x.name] = &atomic.Uint64{}, &atomic.Uint64{}
	}
	s.mirror = e.Launch()
	var err error
	s.comparison, err = compare.Start(e.Context(), compare.Options{Source: e.Source.Client(e), Target: e.Target.Client(e), Topics: topics})
	if err != nil {
		e.Fatal(err)
	}
	defer s.comparison.Stop()
	// However it ends, there is a report.
	defer func() {
		if err := s.report.print(os.Stdout); err != nil {
			e.Error(err)
		}
	}()
	s.underLoad(time.Now())
	s.finish()
	s.judge()
}

// underLoad has everything happen at once until the time is over.
func (s *soak) underLoad(started time.Time) {
	alive, cancel := context.WithTimeout(s.Context(), *duration+2*time.Minute)
	defer cancel()
	ctx, cancel := context.WithTimeout(alive, *duration)
	defer cancel()
	work, ctx := errgroup.WithContext(ctx)
	for i, x := range streams {
		for n := range x.codecs {
			topic := s.Topic(x.name)
			w := &writer{stream: x, topic: topic, number: n, connect: s.connect, written: s.written[x.name], aborted: s.aborted[x.name], failures: &s.failures,
				read: func() uint64 { return s.comparison.Progress()[topic].Target }, random: rand.New(rand.NewPCG(uint64(i), uint64(n)))}
			work.Go(func() error { return w.run(ctx, alive) })
		}
	}
	work.Go(func() error { return s.watch(ctx, started) })
	defer func() {
		cancel()
		if err := work.Wait(); err != nil {
			s.fail("under load: %v", err)
		}
		s.report.Writers = s.failures.Load()
		s.report.Seconds = time.Since(started).Seconds()
	}()
	// What follows may end the test, which only its own goroutine may do.
	every := time.NewTicker(max(5*time.Second, min(30*time.Second, *duration/8)))
	defer every.Stop()
	for n := 0; ctx.Err() == nil; n++ {
		select {
		case <-every.C:
		case <-ctx.Done():
			continue
		}
		if n%2 == 0 {
			s.churn(n / 2)
		} else {
			s.cut(s.links[n/2%2])
		}
	}
}

// connect makes a client of the source.
func (s *soak) connect(opts ...kgo.Opt) (*kgo.Client, error) {
	return kgo.NewClient(append([]kgo.Opt{kgo.SeedBrokers(s.Source.Bootstrap...)}, opts...)...)
}

// watch samples the mirror.
func (s *soak) watch(ctx context.Context, started time.Time) error {
	every := max(time.Second, min(10*time.Second, *duration/60))
	t := time.NewTicker(every)
	defer t.Stop()
	for {
		select {
		case <-t.C:
		case <-ctx.Done():
			return nil
		}
		x, err := look(s.mirror, started)
		if err != nil {
			return fmt.Errorf("look at the mirror: %w", err)
		}
		s.report.Samples = append(s.report.Samples, x)
		s.Logf("%4.0f s: rss %.1f MiB, heap %.1f MiB, %d goroutines, %d files, %d records, lag %d, %d errors", x.Seconds,
			float64(x.RSS)/mib, float64(x.Heap)/mib, x.Goroutines, x.Files, x.Records, x.Lag, x.Errors)
	}
}

// churn makes a topic, waits until the mirror has copied it, and deletes it on
// both sides. Names come again.
func (s *soak) churn(n int) {
	topic := s.Topic(fmt.Sprintf("short-lived-%d", n%5))
	s.Create(s.Source, topic, 3)
	client, err := s.connect(kgo.RecordPartitioner(kgo.ManualPartitioner())) // one that knows of no topic of that name
	if err != nil {
		s.Fatal(err)
	}
	defer client.Close()
	for p := range int32(3) {
		s.PutWith(client, topic, contract.Numbered(p, fmt.Sprint(n), 50)...)
	}
	s.mirror.CaughtUp(topic)
	s.mirror.WantSame(topic)
	s.Delete(s.Source, topic)
	s.mirror.Wait("the mirror to leave "+topic, func() string {
		if _, ok := s.mirror.Partition(topic, 0); ok {
			return "it is there"
		}
		return ""
	})
	s.Delete(s.Target, s.mirror.TargetName(topic))
	s.report.Churned++
}

// cut cuts all connections of a link for a moment.
func (s *soak) cut(link *kafkatest.Proxy) {
	link.Cut()
	<-time.After(200 * time.Millisecond)
	link.Restore()
	s.report.Cuts++
}

// finish ends the comparison, then the mirror.
func (s *soak) finish() {
	ctx, cancel := context.WithTimeout(s.Context(), 2*time.Minute)
	defer cancel()
	if !s.comparison.CatchUp(ctx) {
		s.fail("the target does not get all that the source has")
	}
	result := s.comparison.Finish(ctx)
	if !result.OK() {
		s.fail("the target differs:\n%s", result)
	}
	s.report.Compared = result.Equal()
	// Others come from links that are cut and topics that go.
	for _, kind := range []string{status.ErrorCorrupt, status.ErrorRefused, status.ErrorResume} {
		if n := s.mirror.Status().Errors[kind]; n != 0 {
			s.fail("%d errors of kind %s", n, kind)
		}
	}
	s.mirror.Signal(syscall.SIGTERM)
	s.mirror.WantExit(0)
}

// judge looks at the trends, and that the load was one.
func (s *soak) judge() {
	for _, r := range resources {
		x, err := r.trend(s.report.Samples)
		if err != nil {
			s.fail("%v", err)
			continue
		}
		s.report.Trends = append(s.report.Trends, x)
		if !x.Flat {
			s.fail("%s: %.1f in the second fifth of the time, %.1f in the last: more than %.1f", x.Resource, x.Early, x.Late, x.Most)
		}
	}
	for _, x := range streams {
		if least := uint64(float64(x.rate) * s.report.Seconds / 2); s.written[x.name].Load() < least {
			s.fail("%s: %d records written, want %d at least: the load was none", x.name, s.written[x.name].Load(), least)
		}
	}
	if s.report.Churned == 0 || s.report.Cuts == 0 {
		s.fail("%d topics came and went, %d cuts: too short a time", s.report.Churned, s.report.Cuts)
	}
}

func (s *soak) fail(format string, args ...any) {
	err := fmt.Sprintf(format, args...)
	s.report.Failures = append(s.report.Failures, err)
	s.Error(errors.New(err))
}
