package contract

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"mirror/sidecar/compare"
)

// Read reads the topic to its end, as a consumer that reads committed does, and
// returns the records by partition.
func (e *Env) Read(c *Cluster, topic string) [][]*kgo.Record {
	e.Helper()
	starts, ends := e.offsets(c.admin.ListStartOffsets, topic), e.offsets(c.admin.ListCommittedOffsets, topic)
	all := make([][]*kgo.Record, len(ends))
	from, open := map[int32]kgo.Offset{}, 0
	for p, end := range ends {
		if starts[p] < end {
			from[int32(p)] = kgo.NewOffset().At(starts[p])
			open++
		}
	}
	if open == 0 {
		return all
	}
	client := c.Client(e, kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{topic: from}),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.KeepControlRecords(), kgo.FetchMaxBytes(64<<20), kgo.BrokerMaxReadBytes(200<<20))
	defer client.Close()
	for open > 0 {
		fetches := client.PollFetches(e.ctx)
		if err := fetches.Err(); err != nil {
			e.Fatalf("read %s: %v", topic, err)
		}
		fetches.EachRecord(func(r *kgo.Record) {
			if r.Offset >= ends[r.Partition] {
				return
			}
			if r.Offset == ends[r.Partition]-1 {
				open--
			}
			if !r.Attrs.IsControl() {
				all[r.Partition] = append(all[r.Partition], r)
			}
		})
	}
	return all
}

// offsets lists one offset of each partition of the topic, once all have a leader
// that says it.
func (e *Env) offsets(list func(context.Context, ...string) (kadm.ListedOffsets, error), topic string) []int64 {
	e.Helper()
	var l kadm.ListedOffsets
	e.Eventually("the offsets of "+topic, func() string {
		var err error
		if l, err = list(e.ctx, topic); err == nil {
			err = l.Error()
		}
		if err != nil {
			return err.Error()
		}
		return ""
	})
	all := make([]int64, len(l[topic]))
	for p, o := range l[topic] {
		all[p] = o.Offset
	}
	return all
}

// Ends has the high watermark of each partition of the topic.
func (e *Env) Ends(c *Cluster, topic string) []int64 {
	e.Helper()
	return e.offsets(c.admin.ListEndOffsets, topic)
}

// Starts has the first offset of each partition of the topic.
func (e *Env) Starts(c *Cluster, topic string) []int64 {
	e.Helper()
	return e.offsets(c.admin.ListStartOffsets, topic)
}

// WantValues reads the topic and compares each partition's values, in order.
func (e *Env) WantValues(c *Cluster, topic string, want ...[]string) {
	e.Helper()
	got := e.Read(c, topic)
	if len(got) != len(want) {
		e.Errorf("%s has %d partitions, want %d", topic, len(got), len(want))
		return
	}
	for p := range want {
		var values []string
		for _, r := range got[p] {
			values = append(values, string(r.Value))
		}
		if !slices.Equal(values, want[p]) {
			e.Errorf("%s, partition %d has %s, want %s", topic, p, list(values), list(want[p]))
		}
	}
}

// list shows a long list by its ends.
func list(values []string) string {
	const most = 12
	if n := len(values); n > most {
		values = slices.Concat(values[:most/2], []string{fmt.Sprintf("… (%d) …", n-most)}, values[n-most/2:])
	}
	return "[" + strings.Join(values, " ") + "]"
}

// WantSame compares the flow's source topics with their targets, record by
// record: numbers, order, keys, values, headers, timestamps.
func (f *Flow) WantSame(topics ...string) {
	f.e.Helper()
	r := f.compare(topics)
	if !r.OK() {
		f.e.Errorf("the target differs:\n%s", r)
	}
	f.e.Logf("%d records are the same on both sides", r.Equal())
}

// WantNothingMissing compares a flow's source topic, whose records are all
// different, with its target, where records may be there twice: each partition
// has every record, and after each comes the next one or an earlier one again.
// As positions were saved meanwhile, far from all is repeated.
func (f *Flow) WantNothingMissing(topic string) {
	f.e.Helper()
	all, repeated := 0, 0
	source, target := f.e.Read(f.Source, topic), f.e.Read(f.Target, f.TargetName(topic))
	for p := range source {
		place := map[string]int{}
		for i, r := range source[p] {
			place[string(r.Value)] = i
		}
		next, seen := 0, 0 // what comes next if nothing is repeated; how far the target got
		for _, r := range target[p] {
			i, ok := place[string(r.Value)]
			if !ok || i > next {
				f.e.Errorf("%s/%d: the target has record %d (known: %v) at offset %d, want %d or an earlier one", topic, p, i, ok, r.Offset, next)
				break
			}
			if d := compare.Diff(Comparable(source[p][i]), Comparable(r)); d != "" {
				f.e.Errorf("%s/%d: record %d: %s", topic, p, i, d)
			}
			next, seen = i+1, max(seen, i+1)
		}
		if seen != len(source[p]) {
			f.e.Errorf("%s/%d: the target has the first %d of %d records", topic, p, seen, len(source[p]))
		}
		all += len(source[p])
		repeated += len(target[p]) - seen
	}
	if repeated >= all {
		f.e.Errorf("%s: %d records are repeated of %d: were no positions used?", topic, repeated, all)
	}
	f.e.Logf("%s: %d records of %d repeated", topic, repeated, all)
}

func (f *Flow) compare(topics []string) compare.Report {
	f.e.Helper()
	o := compare.Options{Source: f.Source.client, Target: f.Target.client, ReadUncommitted: f.Uncommitted}
	for _, t := range topics {
		o.Topics = append(o.Topics, compare.Topic{Source: t, Target: f.TargetName(t)})
	}
	r, err := compare.Complete(f.e.ctx, o)
	if err != nil {
		f.e.Fatal(err)
	}
	if f.e.ctx.Err() != nil {
		f.e.Fatalf("no time to compare:\n%s", r)
	}
	return r
}
