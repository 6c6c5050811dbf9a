package demo

import (
	"slices"
	"time"

	"mirror/sidecar/compare"
	"mirror/sidecar/status"
)

// sample is everything the table shows, at one moment.
type sample struct {
	at       time.Time
	report   status.Report
	progress map[string]compare.Progress // by source topic
	usage    usage
	group    moved
}

// row is one line of the table.
type row struct {
	topic      string
	partitions int
	records    float64 // a second
	bytes      float64 // a second, compressed
	lag        int64   // source offsets
	state      status.State
}

// States of topics that have no partitions to show.
const (
	waiting status.State = "waiting" // the mirror does not know it yet
	blocked status.State = "blocked" // the mirror says that it cannot copy it
)

// worse orders states: a topic shows the worst of its partitions, the total
// the worst of the topics.
func worse(a, b status.State) status.State {
	order := []status.State{"", status.Running, status.Stopping, status.Starting, waiting, status.Stalled, blocked}
	if slices.Index(order, a) > slices.Index(order, b) {
		return a
	}
	return b
}

// rows has one row a topic, in the order of topics, with rates since before.
func rows(before, now sample) []row {
	elapsed := now.at.Sub(before.at).Seconds()
	old, current := byTopic(before.report), byTopic(now.report)
	refused := map[string]bool{}
	for _, f := range now.report.Flows {
		for _, t := range f.Topics {
			refused[t.Source] = true
		}
	}
	var all []row
	for _, t := range topics {
		sum := current[t.name]
		r := row{topic: t.name, partitions: sum.partitions, lag: sum.lag, state: sum.state}
		switch {
		case refused[t.name]:
			r.state = blocked
		case sum.partitions == 0:
			r.state = waiting
		}
		if elapsed > 0 {
			r.records = float64(sum.records-old[t.name].records) / elapsed
			r.bytes = float64(sum.bytes-old[t.name].bytes) / elapsed
		}
		all = append(all, r)
	}
	return all
}

// sum is what the partitions of a topic come to.
type sum struct {
	partitions     int
	records, bytes uint64
	lag            int64
	state          status.State
	batches        map[string]uint64 // by path
}

func byTopic(r status.Report) map[string]sum {
	sums := map[string]sum{}
	for _, f := range r.Flows {
		for _, p := range f.Partitions {
			s := sums[p.Topic]
			s.partitions++
			s.records += p.Records
			s.bytes += p.Bytes
			s.lag += p.Lag
			s.state = worse(s.state, p.State)
			if s.batches == nil {
				s.batches = map[string]uint64{}
			}
			for path, n := range p.Batches {
				s.batches[path] += n
			}
			sums[p.Topic] = s
		}
	}
	return sums
}

// total adds rows up.
func total(all []row) row {
	t := row{topic: "total"}
	for _, r := range all {
		t.partitions += r.partitions
		t.records += r.records
		t.bytes += r.bytes
		t.lag += r.lag
		t.state = worse(t.state, r.state)
	}
	return t
}

// compared counts the records read on the target, and the differences found.
func (s sample) compared() (records, different uint64) {
	for _, p := range s.progress {
		records += p.Target
		different += p.Different
	}
	return records, different
}

// cpu is the use of processors between two samples, 1 for one of them.
func cpu(before, now sample) float64 {
	elapsed := now.at.Sub(before.at).Seconds()
	if elapsed <= 0 {
		return 0
	}
	return (now.usage.cpuSeconds - before.usage.cpuSeconds) / elapsed
}
