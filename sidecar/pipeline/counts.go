package pipeline

import (
	"sync/atomic"
	"time"

	"mirror/sidecar/status"
)

// counts are what took which path, and why. There are a handful of paths, so a
// list is searched faster than a map.
type counts []status.Count

// add counts once more what took the path for the reason.
func (c *counts) add(path, reason string, batches, records, bytes int) {
	n := c.of(path, reason)
	n.Batches += uint64(batches)
	n.Records += uint64(records)
	n.Bytes += uint64(bytes)
}

func (c *counts) of(path, reason string) *status.Count {
	for i := range *c {
		if n := &(*c)[i]; n.Path == path && n.Reason == reason {
			return n
		}
	}
	*c = append(*c, status.Count{Path: path, Reason: reason})
	return &(*c)[len(*c)-1]
}

// latencyBounds are the upper bounds of the latencies' buckets: from what a
// mirror beside its brokers takes to what a backlog of an hour does.
var latencyBounds = [...]time.Duration{
	time.Millisecond, 2 * time.Millisecond, 5 * time.Millisecond, 10 * time.Millisecond, 20 * time.Millisecond,
	50 * time.Millisecond, 100 * time.Millisecond, 200 * time.Millisecond, 500 * time.Millisecond,
	time.Second, 2 * time.Second, 5 * time.Second, 10 * time.Second, 30 * time.Second,
	time.Minute, 5 * time.Minute, 15 * time.Minute, time.Hour,
}

// latencies is a histogram of how long records took to be safe on the target.
// All partitions of a flow write to it at once.
type latencies struct {
	buckets [len(latencyBounds) + 1]atomic.Uint64 // each without those below it
	sum     atomic.Int64                          // ms
}

// observe counts a batch whose youngest record bears a timestamp, in ms since
// the epoch, and that is acknowledged now. Timestamps are the producers': one of a
// clock that is ahead counts as 0, and what is not above 0 is none.
func (l *latencies) observe(timestamp int64, now time.Time) {
	if timestamp <= 0 {
		return
	}
	ms := max(now.UnixMilli()-timestamp, 0)
	i := 0
	for i < len(latencyBounds) && ms > latencyBounds[i].Milliseconds() {
		i++
	}
	l.buckets[i].Add(1)
	l.sum.Add(ms)
}

// histogram is what was observed so far.
func (l *latencies) histogram() status.Histogram {
	h := status.Histogram{Buckets: make([]status.Bucket, len(latencyBounds)), Sum: float64(l.sum.Load()) / 1000}
	for i := range l.buckets {
		h.Count += l.buckets[i].Load()
		if i < len(latencyBounds) {
			h.Buckets[i] = status.Bucket{Most: latencyBounds[i].Seconds(), Count: h.Count}
		}
	}
	return h
}
