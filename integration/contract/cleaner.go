package contract

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"mirror/sidecar/compare"
	"mirror/sidecar/status"
)

var cleanerScenarios = []Scenario{
	{Name: "compacted", Real: true, Run: compactedLogsKeepTheirHoles},
	{Name: "tombstones", Real: true, Run: deleteHorizonStaysAtTheSource},
	{Name: "compacted-after-kill", Real: true, Run: compactedBetweenKillAndRestart},
}

// cleaned are configs with which the log cleaner works at once.
var cleaned = []string{"cleanup.policy", "compact", "segment.ms", "500", "min.cleanable.dirty.ratio", "0.001",
	"min.compaction.lag.ms", "0", "max.compaction.lag.ms", "600", "delete.retention.ms", "86400000"}

// untilCleaned lets segments roll, one record a second, until done likes the
// first batches.
func (e *Env) untilCleaned(topic string, partition int32, done func([]header) bool) {
	e.Helper()
	roll := time.NewTicker(600 * time.Millisecond)
	defer roll.Stop()
	for n := 0; ; n++ {
		e.Put(e.Source, topic, &kgo.Record{Partition: partition, Key: fmt.Appendf(nil, "roll-%d", n%2), Value: []byte("x")})
		if done(e.batches(e.Source, topic, partition)) {
			return
		}
		select {
		case <-e.ctx.Done():
			e.Fatalf("the cleaner did not come by %s/%d: %v", topic, partition, e.batches(e.Source, topic, partition))
		case <-roll.C:
		}
	}
}

// The cleaner leaves batches with holes at the start, in the middle and at the
// end, and an empty one of a producer's last batch.
func compactedLogsKeepTheirHoles(e *Env) {
	topic := e.Topic("t")
	partitions := []kgo.CompressionCodec{kgo.NoCompression(), kgo.ZstdCompression()}
	padding := strings.Repeat(" and on", 50) // or it would not be worth compressing
	e.Create(e.Source, topic, int32(len(partitions)), cleaned...)
	for i, codec := range partitions {
		p := int32(i)
		put := func(client *kgo.Client, tag string, keys ...string) {
			var rs []*kgo.Record
			for _, k := range keys {
				rs = append(rs, &kgo.Record{Partition: p, Key: []byte(k), Value: []byte(k + "=" + tag + padding)})
			}
			e.PutWith(client, topic, rs...)
		}
		client := e.Source.Client(e, kgo.ProducerBatchCompression(codec))
		put(client, "one", "k0", "k1", "k2", "k3", "k4", "k5")
		put(client, "one", "m0", "m1", "m2", "m3")
		put(client, "one", "e0", "e1", "e2")
		put(e.Source.Client(e, kgo.ProducerBatchCompression(codec)), "lone", "z0", "z1")
		put(client, "two", "k0", "k3", "k5", "m2", "e2", "z0", "z1")
	}
	for p := range partitions {
		e.untilCleaned(topic, int32(p), func(bs []header) bool {
			return len(bs) > 3 && bs[0].count < 6 && bs[3].count == 0 && bs[3].lastDelta == 1
		})
	}
	e.wantCodec(topic, 1, 4)
	// To a target that keeps everything, so that nothing else removes records.
	m := e.Start(Flow{Tables: "[flows.create]\nconfigs = { \"cleanup.policy\" = \"delete\" }"})
	m.CaughtUp(topic)
	// The cleaner may go on at the source: compare the last value of each key.
	o := compare.Options{Source: e.Source.client, Target: e.Target.client,
		Topics: []compare.Topic{{Source: topic, Target: m.TargetName(topic), Compacted: true}}}
	r, err := compare.Complete(e.ctx, o)
	if err != nil {
		e.Fatal(err)
	}
	if !r.OK() {
		e.Errorf("the target differs:\n%s", r)
	}
	for p, rs := range e.Read(e.Target, m.TargetName(topic)) {
		// No key of the first batches comes twice: what was cleaned stayed away.
		var values []string
		for _, r := range rs[:min(15, len(rs))] {
			if string(r.Key[:2]) != "ro" {
				values = append(values, strings.TrimSuffix(string(r.Value), padding))
			}
		}
		want := []string{"k1=one", "k2=one", "k4=one", "m0=one", "m1=one", "m3=one", "e0=one", "e1=one",
			"k0=two", "k3=two", "k5=two", "m2=two", "e2=two", "z0=two", "z1=two"}
		if list(values) != list(want) {
			e.Errorf("partition %d of the target begins with %v, want %v", p, values, want)
		}
		for i, b := range e.batches(e.Target, m.TargetName(topic), int32(p)) {
			if b.count != b.lastDelta+1 {
				e.Errorf("partition %d of the target: batch %d has holes: %+v", p, i, b)
			}
		}
	}
}

// Between a kill and the restart the cleaner removes records that were stored on
// the target after the last saved position. From the first of them on the rest
// cannot be matched: it is there twice, which is said; nothing is missing.
func compactedBetweenKillAndRestart(e *Env) {
	topic := e.Topic("t")
	e.Create(e.Source, topic, 1, cleaned...)
	flow := Flow{Keys: `commit_interval = "10m"`, Tables: "[flows.create]\nconfigs = { \"cleanup.policy\" = \"delete\" }"}
	p := e.Launch(flow)
	kept, thinned := Numbered(0, "kept", 5), Numbered(0, "thinned", 10)
	e.Put(e.Source, topic, kept...)
	e.Put(e.Source, topic, thinned...)
	p.CaughtUp(topic)
	p.Kill()
	for _, i := range []int{0, 3, 9} {
		e.Put(e.Source, topic, &kgo.Record{Key: thinned[i].Key, Value: []byte("once more")})
	}
	e.untilCleaned(topic, 0, func(bs []header) bool { return len(bs) > 1 && bs[0].count == 5 && bs[1].count == 7 })

	p = e.Launch(flow)
	p.CaughtUp(topic)
	target := e.Read(e.Target, p.TargetName(topic))[0]
	for i, want := range slices.Concat(kept, thinned) {
		if string(target[i].Value) != string(want.Value) {
			e.Fatalf("record %d of the target is %s, want %s: it was stored before the kill", i, target[i].Value, want.Value)
		}
	}
	// The cleaner may go on at the source: what it has now is there, in order.
	again := target[len(kept)+len(thinned):]
	for _, r := range e.Read(e.Source, topic)[0][len(kept):] {
		i := slices.IndexFunc(again, func(t *kgo.Record) bool { return compare.Diff(Comparable(r), Comparable(t)) == "" })
		if i < 0 {
			e.Fatalf("%s=%s, source offset %d, is not there again, or not in its place", r.Key, r.Value, r.Offset)
		}
		again = again[i+1:]
	}
	if n := p.Status().Errors[status.ErrorResume]; n != 1 {
		e.Errorf("%d tails that cannot be matched were counted, want 1", n)
	}
	if words := "records after this offset may be there twice"; !strings.Contains(p.Log(), words) {
		e.Errorf("the log does not say %q", words)
	}
}

const deleteHorizon = 0x40 // a batch attribute: the base timestamp is a delete horizon (KIP-534)

// The cleaner notes in a batch when its tombstones may go. Copied to the target,
// that note would have them removed too early there.
func deleteHorizonStaysAtTheSource(e *Env) {
	topic := e.Topic("t")
	partitions := []kgo.CompressionCodec{kgo.NoCompression(), kgo.Lz4Compression()}
	e.Create(e.Source, topic, int32(len(partitions)), cleaned...)
	old := time.Now().Add(-5 * time.Hour).Truncate(time.Millisecond)
	for i, codec := range partitions {
		rs := []*kgo.Record{{Key: []byte("a")}, {Key: []byte("b"), Value: bytes.Repeat([]byte("v"), 1000)}, {Key: []byte("c")}}
		for n, r := range rs {
			r.Partition, r.Timestamp = int32(i), old.Add(time.Duration(n)*time.Second)
		}
		e.PutWith(e.Source.Client(e, kgo.ProducerBatchCompression(codec)), topic, rs...)
	}
	for p := range partitions {
		e.untilCleaned(topic, int32(p), func(bs []header) bool { return bs[0].attributes&deleteHorizon != 0 })
	}
	e.wantCodec(topic, 1, 3)
	// The target's own cleaner stays away.
	m := e.Start(Flow{Tables: "[flows.create]\nconfigs = { \"cleanup.policy\" = \"delete\" }"})
	m.CaughtUp(topic)
	source, target := e.Read(e.Source, topic), e.Read(e.Target, m.TargetName(topic))
	for p := range partitions {
		for i, b := range e.batches(e.Target, m.TargetName(topic), int32(p)) {
			if b.attributes&deleteHorizon != 0 {
				e.Errorf("partition %d: batch %d of the target has a delete horizon", p, i)
			}
		}
		for i := range 3 {
			if d := compare.Diff(Comparable(source[p][i]), Comparable(target[p][i])); d != "" || !source[p][i].Timestamp.Equal(old.Add(time.Duration(i)*time.Second)) {
				e.Errorf("partition %d: record %d, at %v: %s", p, i, source[p][i].Timestamp, d)
			}
		}
	}
}

// Comparable is a record as the comparison takes it.
func Comparable(r *kgo.Record) compare.Record {
	return compare.Record{Offset: r.Offset, Timestamp: r.Timestamp.UnixMilli(), Key: r.Key, Value: r.Value, Headers: r.Headers}
}
