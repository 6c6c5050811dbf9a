package produce

import (
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"pgregory.net/rapid"

	"mirror/sidecar/batch"
	"mirror/sidecar/cluster"
	"mirror/sidecar/wire"
)

// The model: a broker that keeps Kafka's rules for idempotent producers, and an
// owner that pushes records 0, 1, 2, … whose values are their offsets. Whatever
// is lost, refused, cut off or answered late, the log must hold each record once
// and in order, up to the first that the broker will not have (order_test.go).

// broker is one leader's log of the partition.
type broker struct {
	records []int64 // values, by offset
	log     []stored
	limit   int   // max.message.bytes
	poison  int64 // a record that is refused
	pid     int64 // the producer it knows
	next    int32 // sequence; -1: the producer is not known
	last    []stored
	stamp   int64 // of the last batch
}

type stored struct {
	pid             int64
	sequence, count int32
	base            int64
}

// receive is what a broker does with a produce request's batch.
func (b *broker) receive(bytes batch.Batch) answer {
	if err := bytes.Verify(); err != nil {
		return answer{err: kerr.CorruptMessage, base: -1}
	}
	if len(bytes) > b.limit {
		return answer{err: kerr.MessageTooLarge, base: -1}
	}
	sequence, count := bytes.BaseSequence(), bytes.Count()
	if bytes.ProducerID() != b.pid {
		b.forget()
	}
	for _, s := range b.last {
		if s.sequence == sequence && s.count == count {
			return answer{base: s.base} // a resend: not stored again
		}
	}
	values := valuesOf(bytes)
	for i, v := range values {
		if v == b.poison {
			return answer{err: kerr.InvalidRecord, base: -1, bad: []recordError{{index: int32(i), message: "poison"}}}
		}
	}
	if b.next >= 0 && sequence != b.next {
		return answer{err: kerr.OutOfOrderSequenceNumber, base: -1}
	}
	s := stored{bytes.ProducerID(), sequence, count, int64(len(b.records))}
	b.records = append(b.records, values...)
	b.log = append(b.log, s)
	b.pid, b.next, b.stamp = s.pid, batch.NextSequence(sequence, count), bytes.MaxTimestamp()
	b.last = append(b.last, s)
	if len(b.last) > 5 {
		b.last = b.last[1:]
	}
	return answer{base: s.base}
}

// forget is what a broker does to a producer that is too old, or when it has lost
// what it knew.
func (b *broker) forget() { b.next, b.last = -1, nil }

func valuesOf(b batch.Batch) (vs []int64) {
	for r, err := range b.Records(1 << 20) {
		if err != nil {
			panic(err)
		}
		var v int64
		fmt.Sscan(string(r.Value), &v)
		vs = append(vs, v)
	}
	return vs
}

// ledger is the owner: what it was told.
type ledger struct {
	t          *rapid.T
	b          *broker
	acked      int64 // last source offset
	end        int64 // after the last target offset
	sequence   int32 // the next one
	stored     int64 // records
	refused    *Refusal
	lost       error
	shedFrom   int64 // -1: nothing was shed
	generation uint64
}

func (l *ledger) Acknowledged(a Ack) {
	if a.Last < l.acked {
		l.t.Fatalf("acknowledged %d after %d", a.Last, l.acked)
	}
	l.acked = a.Last
	var n int32
	for _, r := range a.Runs {
		for i := range r.Count {
			if at := a.TargetOffset + int64(n); l.b.records[at] != r.Source+int64(i) {
				l.t.Fatalf("source offset %d is said to be at target offset %d, where record %d is", r.Source+int64(i), at, l.b.records[at])
			}
			n++
		}
	}
	if n != a.Count {
		l.t.Fatalf("%d records in the runs, %d in the acknowledgement", n, a.Count)
	}
	l.stored += int64(n)
	if n > 0 {
		l.end, l.sequence = a.TargetOffset+int64(n), batch.NextSequence(a.Sequence, 1)
	}
}

func (l *ledger) Refused(r Refusal) { l.refused = &r }
func (l *ledger) Lost(err error)    { l.lost = err; l.generation++ }
func (l *ledger) Failed(error, int) {}
func (l *ledger) Starved()          {}
func (l *ledger) Ready()            {}
func (l *ledger) Shed(from int64) uint64 {
	l.shedFrom = from
	l.generation++
	return l.generation
}

// flight is a request on its way, or its answer on the way back.
type flight struct {
	s        *sent
	bytes    batch.Batch
	received bool
	answer
}

// world is a partition at work in the model.
type world struct {
	*rapid.T
	b        *broker
	l        *ledger
	frames   *wire.Pool
	producer *Producer
	p        *Partition
	flying   []*flight
	stamps   []time.Duration // ages of records
	next     int64           // source offset
	pushed   []int64         // values, which are offsets
	session  int64
	uneasy   bool // the last answer was a failure

	repeats int   // times that what the target holds could not be matched
	from    int64 // the target offset after the last of them
	resumed int64 // and the source offset there
}

// newWorld makes a world whose records have one of these ages.
func newWorld(t *rapid.T, b *broker, ages ...time.Duration) *world {
	b.next, b.pid = -1, -1
	w := &world{T: t, b: b, frames: wire.NewPool(1 << 20), session: 1, stamps: ages}
	w.l = &ledger{t: t, b: b, acked: -1, shedFrom: -1, generation: 1}
	w.producer = New(Options{Leaders: cluster.NewLeaders(nil), Frames: w.frames, MaxDecompressed: 1 << 20, Failed: func(error) {}})
	w.p = w.producer.Partition("t", 0, w.l)
	w.p.Reset(Start{Generation: 1, Producer: batch.Producer{ID: 7}})
	return w
}

// push appends a batch of the next records to the source.
func (w *world) push() {
	if w.l.refused != nil || w.l.lost != nil {
		return
	}
	var out batch.Builder
	n := rapid.IntRange(1, 6).Draw(w.T, "records")
	hole := rapid.Bool().Draw(w.T, "hole")
	age := rapid.SampledFrom(w.stamps).Draw(w.T, "age")
	e := Entry{First: w.next, Sources: 1}
	for i := range n {
		if hole && i > 0 && i%2 == 0 {
			w.next++ // an offset without a record
		}
		out.Add(batch.Record{Value: fmt.Append(nil, w.next), Timestamp: time.Now().Add(-age).UnixMilli()})
		w.pushed = append(w.pushed, w.next)
		if k := len(e.Runs) - 1; k >= 0 && e.Runs[k].Source+int64(e.Runs[k].Count) == w.next {
			e.Runs[k].Count++
		} else {
			e.Runs = append(e.Runs, batch.Run{Source: w.next, Count: 1})
		}
		w.next++
	}
	bytes, err := out.Build(nil, batch.Codec(rapid.IntRange(0, 4).Draw(w.T, "codec")))
	if err != nil {
		w.Fatal(err)
	}
	e.Frame = w.frames.Get(len(bytes))
	e.Batch = batch.Batch(e.Frame.Bytes())
	copy(e.Batch, bytes)
	e.Last = w.next - 1
	w.p.Push(w.l.generation, e)
}

func (w *world) skip() {
	if w.l.refused == nil && w.l.lost == nil {
		w.p.Skip(w.l.generation, w.next, 0)
		w.next++
	}
}

// take has a request go out.
func (w *world) take() {
	if s := w.p.take(w.session); s != nil {
		// What a request carries is encoded at once.
		w.flying = append(w.flying, &flight{s: s, bytes: append(batch.Batch(nil), s.Batch...)})
		s.held.Release()
	}
}

// receive has the next request arrive; the broker gives the first error instead
// of looking at it, or the second after it has stored it.
func (w *world) receive(instead, after error) {
	i := slices.IndexFunc(w.flying, func(f *flight) bool { return !f.received })
	if i < 0 {
		return
	}
	f := w.flying[i]
	f.received, f.answer = true, answer{err: instead, base: -1}
	if instead == nil {
		f.answer = w.b.receive(f.bytes)
	}
	if f.err == nil && after != nil {
		f.answer = answer{err: after, base: -1}
	}
}

// answer has the next answer arrive.
func (w *world) answer() {
	if len(w.flying) > 0 && w.flying[0].received {
		f := w.flying[0]
		w.flying = w.flying[1:]
		w.uneasy = f.err != nil
		w.p.answered(f.s, f.answer)
	}
}

// cut ends the connection, when some requests have arrived.
func (w *world) cut() {
	n := rapid.IntRange(0, len(w.flying)).Draw(w.T, "received before the cut")
	for i, f := range w.flying {
		if i < n && !f.received {
			w.b.receive(f.bytes)
		}
		f.received, f.answer = true, answer{err: io.EOF, base: -1}
	}
	for len(w.flying) > 0 {
		w.answer()
	}
	w.session++
}

// settle is what time brings: the end of a pause, and what the owner does.
func (w *world) settle() {
	w.p.mu.Lock()
	w.p.wait(0)
	w.p.mu.Unlock()
	switch {
	case w.l.lost != nil:
		if len(w.flying) == 0 {
			w.begin()
		}
	case w.l.shedFrom >= 0:
		w.rewind(w.l.shedFrom)
	}
}

// rewind has the source read again from an offset.
func (w *world) rewind(to int64) {
	for len(w.pushed) > 0 && w.pushed[len(w.pushed)-1] >= to {
		w.pushed = w.pushed[:len(w.pushed)-1]
	}
	w.next, w.l.shedFrom = to, -1
}

// begin goes on after what the target holds, as the pipeline does: what follows
// what is acknowledged, by sequence, is compared with the source.
func (w *world) begin() {
	left := w.pushed
	for len(left) > 0 && left[0] <= w.l.acked {
		left = left[1:]
	}
	pid, matched := w.p.pid, true
	for _, s := range w.b.log {
		if s.base < w.l.end || s.pid != pid.ID {
			continue
		}
		n := int(s.count)
		matched = s.sequence == w.l.sequence && n <= len(left) && slices.Equal(w.b.records[s.base:s.base+int64(n)], left[:n])
		if !matched {
			break
		}
		w.l.acked, w.l.end, w.l.sequence = left[n-1], s.base+int64(n), batch.NextSequence(s.sequence, s.count)
		w.l.stored += int64(n)
		left = left[n:]
	}
	if !matched {
		pid.ID++
		w.repeats++
		w.l.end, w.l.sequence, w.l.stored = int64(len(w.b.records)), 0, 0
		w.from, w.resumed = w.l.end, w.l.acked
	}
	w.rewind(w.l.acked + 1)
	w.l.lost = nil
	w.p.Reset(Start{Generation: w.l.generation, Producer: pid, Sequence: w.l.sequence})
}

// finish has all that was pushed stored, and checks the log.
func (w *world) finish() {
	for n := 0; !w.p.Idle() || w.l.lost != nil; n++ {
		if n > 10000 {
			w.Fatal("it does not come to an end")
		}
		w.settle()
		w.take()
		w.receive(nil, nil)
		w.answer()
	}
	w.settle()
	w.check()
	w.p.Stop()
	if n := w.frames.InUse() + w.producer.SetAside(); n != 0 {
		w.Fatalf("%d bytes of frames are still held", n)
	}
}
