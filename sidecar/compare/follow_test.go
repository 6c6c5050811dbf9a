package compare

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"mirror/sidecar/embedded"
)

// clusters starts two clusters with the topic "orders", 2 partitions, on the
// source, and "copy" on the target.
func clusters(t *testing.T) (source, target *kgo.Client) {
	t.Helper()
	var clients [2]*kgo.Client
	for i, topic := range []string{"orders", "copy"} {
		cluster, err := embedded.Start(topic)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(cluster.Close)
		clients[i] = newClient(t, cluster)
		if _, err := kadm.NewClient(clients[i]).CreateTopic(t.Context(), 2, 1, nil, topic); err != nil {
			t.Fatal(err)
		}
	}
	return clients[0], clients[1]
}

func newClient(t *testing.T, cluster *embedded.Cluster, opts ...kgo.Opt) *kgo.Client {
	t.Helper()
	client, err := kgo.NewClient(append(opts, kgo.SeedBrokers(cluster.Bootstrap()...),
		kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.ProducerBatchCompression(kgo.NoCompression()))...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	return client
}

func write(t *testing.T, client *kgo.Client, rs ...*kgo.Record) {
	t.Helper()
	if err := client.ProduceSync(t.Context(), rs...).FirstErr(); err != nil {
		t.Fatal(err)
	}
}

// numbered makes n records with null, empty and other keys and values.
func numbered(topic string, n int) []*kgo.Record {
	var rs []*kgo.Record
	for i := range n {
		r := &kgo.Record{Topic: topic, Partition: int32(i % 2), Timestamp: time.UnixMilli(int64(1_700_000_000_000 + i)),
			Key: fmt.Append(nil, i), Value: fmt.Append(nil, "value ", i), Headers: []kgo.RecordHeader{{Key: "h", Value: nil}}}
		switch i % 5 {
		case 1:
			r.Key, r.Value = nil, []byte{}
		case 2:
			r.Key, r.Value = []byte{}, nil
		}
		rs = append(rs, r)
	}
	return rs
}

var pair = []Topic{{Source: "orders", Target: "copy"}}

func complete(t *testing.T, source, target *kgo.Client) Report {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	report, err := Complete(ctx, Options{Source: source, Target: target, Topics: pair})
	if err != nil {
		t.Fatal(err)
	}
	return report
}

func TestCompleteFindsEqual(t *testing.T) {
	source, target := clusters(t)
	write(t, source, numbered("orders", 5000)...)
	write(t, target, numbered("copy", 5000)...)
	report := complete(t, source, target)
	if !report.OK() || report.Equal() != 5000 || len(report) != 2 {
		t.Errorf("%d equal in %d partitions\n%v", report.Equal(), len(report), report)
	}
}

func TestCompleteFindsDifferences(t *testing.T) {
	for name, c := range map[string]struct {
		change func(rs []*kgo.Record) []*kgo.Record
		kind   Kind
		want   string
	}{
		"lost":     {func(rs []*kgo.Record) []*kgo.Record { return append(rs[:200:200], rs[201:]...) }, Missing, "missing, source offset 100"},
		"repeated": {func(rs []*kgo.Record) []*kgo.Record { return append(rs[:201:201], rs[200:]...) }, Repeated, "repeated, target offset 101"},
		"reordered": {func(rs []*kgo.Record) []*kgo.Record {
			rs[200], rs[202] = rs[202], rs[200]
			return rs
		}, Reordered, "reordered, source offset 101, target offset 100"},
		"null for empty": {func(rs []*kgo.Record) []*kgo.Record {
			rs[206].Value = nil // 206 % 5 == 1
			return rs
		}, Changed, `changed, source offset 103, target offset 103: value "" became null`},
	} {
		t.Run(name, func(t *testing.T) {
			source, target := clusters(t)
			write(t, source, numbered("orders", 500)...)
			write(t, target, c.change(numbered("copy", 500))...)
			report := complete(t, source, target)
			if report.OK() || report[0].Kinds[c.kind] == 0 || !strings.Contains(report.String(), c.want) {
				t.Errorf("want %q in\n%v", c.want, report)
			}
			if !report[1].OK() {
				t.Errorf("the other partition differs:\n%v", report)
			}
		})
	}
}

// The source's aborted records must not be on the target, and a comparison
// reads past them and past the control batches at the end.
func TestAbortedRecordsAreNotCompared(t *testing.T) {
	sourceCluster, err := embedded.Start("source")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(sourceCluster.Close)
	source := newClient(t, sourceCluster, kgo.TransactionalID("writer"))
	if _, err := kadm.NewClient(source).CreateTopic(t.Context(), 2, 1, nil, "orders"); err != nil {
		t.Fatal(err)
	}
	_, target := clusters(t)
	records := numbered("orders", 100)
	for i := 0; i < 100; i += 10 {
		if err := source.BeginTransaction(); err != nil {
			t.Fatal(err)
		}
		write(t, source, records[i:i+10]...)
		if err := source.EndTransaction(t.Context(), kgo.TransactionEndTry(i%20 == 0)); err != nil {
			t.Fatal(err)
		}
	}
	copies := numbered("copy", 100)
	for i := 0; i < 100; i += 20 {
		write(t, target, copies[i:i+10]...)
	}
	if report := complete(t, source, target); !report.OK() || report.Equal() != 50 {
		t.Errorf("%d equal\n%v", report.Equal(), report)
	}
	write(t, target, copies[10]) // one that was aborted
	if report := complete(t, source, target); report.OK() || report[0].Kinds[Unexpected] != 1 {
		t.Errorf("an aborted record on the target was not found\n%v", report)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	all, err := Complete(ctx, Options{Source: source, Target: target, Topics: pair, ReadUncommitted: true})
	if err != nil {
		t.Fatal(err)
	}
	if got := all[0].SourceRecords + all[1].SourceRecords; got != 100 {
		t.Errorf("read %d records uncommitted, want 100", got)
	}
}

// A comparison that follows sees what is written after it started, waits for a
// topic that is not there yet, and never holds more than its windows.
func TestFollow(t *testing.T) {
	source, target := clusters(t)
	topics := []Topic{{Source: "orders", Target: "later"}}
	c, err := Start(t.Context(), Options{Source: source, Target: target, Topics: topics})
	if err != nil {
		t.Fatal(err)
	}
	write(t, source, numbered("orders", 10_000)...)
	waitFor(t, "the source to be a window ahead", func() bool { return c.Progress()["orders"].Pending >= 2*windowRecords })
	if _, err := kadm.NewClient(target).CreateTopic(t.Context(), 2, 1, nil, "later"); err != nil {
		t.Fatal(err)
	}
	write(t, target, numbered("later", 10_000)...)
	waitFor(t, "all to match", func() bool {
		p := c.Progress()["orders"]
		return p.Source == 10_000 && p.Target == 10_000 && p.Pending == 0 && p.Different == 0
	})
	if report := c.Finish(t.Context()); !report.OK() || report.Equal() != 10_000 {
		t.Errorf("%d equal\n%v", report.Equal(), report)
	}
}

func TestCatchUp(t *testing.T) {
	source, target := clusters(t)
	write(t, source, numbered("orders", 1000)...)
	write(t, target, numbered("copy", 900)...)
	c, err := Start(t.Context(), Options{Source: source, Target: target, Topics: pair})
	if err != nil {
		t.Fatal(err)
	}
	short, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if c.CatchUp(short) {
		t.Error("caught up although 100 records are missing")
	}
	caught := make(chan bool, 1)
	go func() { caught <- c.CatchUp(t.Context()) }()
	write(t, target, numbered("copy", 1000)[900:]...)
	if !<-caught {
		t.Error("not caught up")
	}
	if report := c.Finish(t.Context()); !report.OK() || report.Equal() != 1000 {
		t.Errorf("%d equal\n%v", report.Equal(), report)
	}
}

func TestFinishSaysWhatItCouldNotRead(t *testing.T) {
	source, target := clusters(t)
	write(t, source, numbered("orders", 10)...)
	c, err := Start(t.Context(), Options{Source: source, Target: target, Topics: []Topic{{Source: "orders", Target: "never"}}})
	if err != nil {
		t.Fatal(err)
	}
	report := c.Finish(t.Context())
	if report.OK() || report[0].Kinds[Missing] != 5 ||
		report[0].Incomplete != "the target was read up to offset 0: no such topic or partition" {
		t.Errorf("%+v", report[0])
	}

	c, err = Start(t.Context(), Options{Source: source, Target: target, Topics: pair})
	if err != nil {
		t.Fatal(err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if report := c.Finish(ended); report.OK() {
		t.Error("called complete although there was no time to read")
	}
}

func TestStartNeedsTheSourceTopic(t *testing.T) {
	source, target := clusters(t)
	_, err := Start(t.Context(), Options{Source: source, Target: target, Topics: []Topic{{Source: "absent", Target: "copy"}}})
	if err == nil || err.Error() != "compare: topic absent is not on the source" {
		t.Error(err)
	}
}

// remove deletes the records of partition 0 before an offset, as retention does.
func remove(t *testing.T, client *kgo.Client, topic string, before int64) {
	t.Helper()
	offsets := kadm.Offsets{}
	offsets.AddOffset(topic, 0, before, -1)
	deleted, err := kadm.NewClient(client).DeleteRecords(t.Context(), offsets)
	if err == nil {
		err = deleted.Error()
	}
	if err != nil {
		t.Fatal(err)
	}
}

func TestRetentionWhileComparing(t *testing.T) {
	source, target := clusters(t)
	for range 3000 { // more than the window and one answer
		source.Produce(t.Context(), &kgo.Record{Topic: "orders", Value: make([]byte, 2<<10)}, nil)
	}
	if err := source.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	c, err := Start(t.Context(), Options{Source: source, Target: target, Topics: pair})
	if err != nil {
		t.Fatal(err)
	}
	waitFor(t, "the source to be a window ahead", func() bool { return c.Progress()["orders"].Pending >= windowBytes/(4<<10) })
	remove(t, source, "orders", 2900)
	report := c.Finish(t.Context())
	if report[0].OK() || report[0].Kinds[Gone] == 0 || report[0].Different != 3000 ||
		!strings.Contains(report.String(), "orders/0: 0 records equal, 3000 different") {
		t.Errorf("%v\n%v", report[0].Kinds, report)
	}
}

// What is gone on both sides before a comparison starts is no difference.
func TestRetentionBeforeComparing(t *testing.T) {
	source, target := clusters(t)
	write(t, source, numbered("orders", 1000)...)
	write(t, target, numbered("copy", 1000)...)
	remove(t, source, "orders", 400)
	remove(t, target, "copy", 400)
	if report := complete(t, source, target); !report.OK() || report.Equal() != 600 {
		t.Errorf("%d equal\n%v", report.Equal(), report)
	}
}

func waitFor(t *testing.T, what string, ok func() bool) {
	t.Helper()
	deadline := time.After(20 * time.Second)
	for tick := time.Tick(10 * time.Millisecond); !ok(); {
		select {
		case <-tick:
		case <-deadline:
			t.Fatalf("waited in vain for %s", what)
		}
	}
}
