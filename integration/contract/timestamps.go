package contract

import (
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"mirror/sidecar/compare"
	"mirror/sidecar/status"
)

var timestampScenarios = []Scenario{
	{Name: "append-time-at-source", Real: true, Run: appendTimesOfTheSourceBecomeTheRecords},
	{Name: "append-time-at-target", Real: true, Run: targetStampsItsOwnTimes},
}

// A consumer of the source sees the time at which a batch was appended; the same
// time arrives at a target that keeps what producers say.
func appendTimesOfTheSourceBecomeTheRecords(e *Env) {
	topic := e.Topic("t")
	e.Create(e.Source, topic, int32(len(codecs)), "message.timestamp.type", "LogAppendTime")
	old := time.Now().Add(-48 * time.Hour)
	for i, c := range codecs {
		client := e.Source.Client(e, kgo.ProducerBatchCompression(c.codec))
		rs := append(Numbered(int32(i), c.name, 50), smallOddRecords(int32(i))...)
		for n, r := range rs {
			r.Timestamp = old.Add(time.Duration(n) * time.Second)
		}
		e.PutWith(client, topic, rs...)
		e.wantCodec(topic, int32(i), i)
	}
	m := e.Start()
	m.CaughtUp(topic)
	if got := e.Config(e.Target, m.TargetName(topic), "message.timestamp.type"); got != "CreateTime" {
		e.Fatalf("the target's message.timestamp.type is %q; MirrorMaker does not copy it", got)
	}
	m.WantSame(topic)
	for p, rs := range e.Read(e.Target, m.TargetName(topic)) {
		if !rs[0].Timestamp.After(old.Add(time.Hour)) {
			e.Errorf("partition %d has the producer's time %v, not the broker's", p, rs[0].Timestamp)
		}
	}
}

func targetStampsItsOwnTimes(e *Env) {
	for _, kind := range []string{"CreateTime", "LogAppendTime"} {
		e.Create(e.Source, e.Topic(kind), int32(len(codecs)), "message.timestamp.type", kind)
		for i, c := range codecs {
			client := e.Source.Client(e, kgo.ProducerBatchCompression(c.codec))
			rs := append(Numbered(int32(i), c.name, 50), smallOddRecords(int32(i))...)
			for _, r := range rs {
				r.Timestamp = time.Now().Add(-time.Hour)
			}
			e.PutWith(client, e.Topic(kind), rs...)
		}
	}
	started := time.Now().Truncate(time.Millisecond)
	m := e.Start(Flow{Tables: "[flows.create]\nconfigs = { \"message.timestamp.type\" = \"LogAppendTime\" }"})
	for _, kind := range []string{"CreateTime", "LogAppendTime"} {
		topic := e.Topic(kind)
		m.CaughtUp(topic)
		source, target := e.Read(e.Source, topic), e.Read(e.Target, m.TargetName(topic))
		for p := range source {
			if len(source[p]) != len(target[p]) {
				e.Errorf("%s/%d: %d records of %d arrived", topic, p, len(target[p]), len(source[p]))
				continue
			}
			for i, r := range target[p] {
				if r.Timestamp.Before(started) {
					e.Errorf("%s/%d: record %d has the time %v, from before the mirror", topic, p, i, r.Timestamp)
				}
				r.Timestamp = source[p][i].Timestamp
				if d := compare.Diff(Comparable(source[p][i]), Comparable(r)); d != "" {
					e.Errorf("%s/%d: record %d: %s", topic, p, i, d)
				}
			}
			if s, _ := m.Partition(topic, int32(p)); s.Batches[status.PathReencoded] != 0 && p == 0 {
				e.Errorf("%s/%d was opened without need: %v", topic, p, s.Batches)
			}
		}
	}
}
