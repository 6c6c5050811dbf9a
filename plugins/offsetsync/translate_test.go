package offsetsync

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"mirror/abi"
)

// mirrored is a partition that is mirrored: what the mirror does with it, what it has
// told the plugin, and what is true.
type mirrored struct {
	partition
	t       *rapid.T
	known   []*oracle       // what the plugin may know: more than one thing after a crash that cut off its writes
	flushed []*oracle       // as of the last flush
	truth   map[int64]int64 // where each record is on the target, also those that the plugin does not hear of; the last copy

	position, saved, before int64 // told, saved, and saved before that; the last offset that is copied
	end, told, base         int64 // of the target: as it is, as the plugin knows it, and did at the last flush
	logStart                int64
	since                   []abi.Commit // told since the last flush
}

func (m *mirrored) event(kind abi.Event, position, end int64) abi.Partition {
	return abi.Partition{Topic: m.topic, Partition: m.number, TargetTopic: "A." + m.topic, Event: kind, LogStart: m.logStart, Position: position, TargetEnd: end}
}

func (m *mirrored) entry(first, last, dst, dstLast int64, dropped uint32) abi.Commit {
	return abi.Commit{Topic: m.topic, Partition: m.number, TargetTopic: "A." + m.topic, TargetPartition: m.number, SrcFirst: first, SrcLast: last,
		DstFirst: dst, DstLast: dstLast, Records: uint32(max(0, dstLast-dst+1)), Dropped: dropped, MaxTimestamp: -1, LeaderEpoch: -1}
}

// copies makes up what comes next at the source, and stores it.
func (m *mirrored) copies(pieces int, foreign bool) (entries []abi.Commit) {
	t := m.t
	for range pieces {
		first := m.position + 1
		n := rapid.SampledFrom([]int64{1, 1, 2, 3, 10, 10, 50}).Draw(t, "length")
		switch what := rapid.IntRange(0, 20).Draw(t, "piece"); {
		case what < 7:
			n = min(n, 3)
			entries = append(entries, m.entry(first, first+n-1, -1, -1, 0))
		case what == 7:
			stored := rapid.Int64Range(1, n).Draw(t, "stored")
			e := m.entry(first, first+n-1, m.end, m.end+stored-1, uint32(n-stored))
			if stored == n { // others wrote in between
				e.DstLast += 3
				stored += 3
			}
			if n == 1 { // nothing was left out
				e.Dropped, e.DstLast = 1, e.DstFirst
				stored = 1
			}
			for x := range min(n, stored) {
				m.truth[first+x] = m.end + x
			}
			m.end += stored
			entries = append(entries, e)
		default:
			if foreign && what == 20 {
				m.end += n
			}
			entries = append(entries, m.entry(first, first+n-1, m.end, m.end+n-1, 0))
			for x := range n {
				m.truth[first+x] = m.end + x
			}
			m.end += n
		}
		m.position = first + n - 1
	}
	return entries
}

// heard notes what the plugin was told.
func (m *mirrored) heard(e abi.Commit) {
	for _, o := range m.known {
		switch {
		case e.SrcLast < e.SrcFirst:
			return
		case e.DstFirst < 0:
			o.tell(empty, e.SrcFirst, e.SrcLast, 0)
		case e.Dropped > 0 || e.SrcLast-e.SrcFirst != e.DstLast-e.DstFirst:
			o.mixed(e.SrcFirst, e.SrcLast, e.DstFirst, e.DstLast)
		default:
			o.tell(record, e.SrcFirst, e.SrcLast, e.DstFirst)
		}
	}
	if e.DstLast >= 0 {
		m.told = e.DstLast + 1
	}
	m.since = append(m.since, e)
}

// lost: from a source offset on nothing that was copied counts any more.
func (m *mirrored) lost(from int64) {
	m.position = from - 1
	maps.DeleteFunc(m.truth, func(x, _ int64) bool { return x >= from })
}

// world is a lane with its plugin.
type world struct {
	t   *rapid.T
	g   *guest
	all []*mirrored
}

func (w *world) fresh() {
	parts, given := w.g.parts, w.g.given
	w.g = plugin(w.t, "lag_max", "1000000")
	w.g.parts, w.g.given = parts, given
}

func (w *world) happened(events ...abi.Partition) {
	w.g.frame.Begin(abi.OnPartitions, 0)
	for _, e := range events {
		w.g.frame.Partition(e)
	}
	if _, err := w.g.call(abi.OnPartitions); err != nil {
		w.t.Fatal(err)
	}
}

// assign tells the plugin where the partition is.
func (w *world) assign(m *mirrored, kind abi.Event, position, end int64) {
	w.happened(m.event(kind, position, end))
	for _, o := range m.known {
		o.forget(position + 1)
		if end >= 0 {
			o.rewind(end)
		}
		if end == 0 {
			o.began(position+1, m.logStart)
		}
	}
	m.told = end
}

// tell tells ranges, of several partitions in any order among them.
func (w *world) tell(flush bool, entries ...[]abi.Commit) {
	var all []abi.Commit
	for {
		entries = slices.DeleteFunc(entries, func(e []abi.Commit) bool { return len(e) == 0 })
		if len(entries) == 0 {
			break
		}
		i := rapid.IntRange(0, len(entries)-1).Draw(w.t, "whose")
		n := rapid.IntRange(1, len(entries[i])).Draw(w.t, "entries")
		all, entries[i] = append(all, entries[i][:n]...), entries[i][n:]
	}
	for len(all) > 0 {
		n := rapid.IntRange(1, len(all)).Draw(w.t, "in a frame")
		if len(all) > 200 {
			n = min(len(all), abi.MaxEntries)
		}
		w.commit(0, all[:n])
		all = all[n:]
	}
	if flush {
		var nothing []abi.Commit
		for _, m := range w.all {
			nothing = append(nothing, m.entry(m.position+1, m.position, -1, -1, 0))
		}
		w.commit(abi.Flush, nothing)
		for _, m := range w.all {
			m.saved, m.before, m.base, m.since = m.position, m.saved, m.told, nil
			m.flushed = clones(m.known)
		}
	}
}

func (w *world) commit(flags uint16, entries []abi.Commit) {
	w.g.commit(flags, entries...)
	for _, e := range entries {
		if flags&abi.Replay != 0 {
			continue
		}
		for _, m := range w.all {
			if m.topic == e.Topic && m.number == e.Partition {
				m.heard(e)
			}
		}
	}
}

// replay tells some points that an earlier mirror has left.
func (w *world) replay(m *mirrored) {
	var points []abi.Commit
	for _, x := range slices.Sorted(maps.Keys(m.truth)) {
		if x <= m.position && rapid.IntRange(0, 5).Draw(w.t, "sync") == 0 {
			points = append(points, m.entry(x, x, m.truth[x], m.truth[x], 0))
		}
	}
	if len(points) > 0 {
		w.commit(abi.Replay, points)
	}
	for _, p := range points {
		for _, o := range m.known {
			if p.SrcFirst >= o.covered {
				o.tell(point, p.SrcFirst, p.SrcFirst, p.DstFirst)
			}
		}
	}
}

// ask asks about some offsets of each partition, all if they are few.
func (w *world) ask() {
	for _, m := range w.all {
		var offsets []int64
		if top := m.position + 4; top < 150 {
			for x := range top {
				offsets = append(offsets, x)
			}
		} else {
			for range 60 {
				offsets = append(offsets, rapid.Int64Range(0, top).Draw(w.t, "offset"))
			}
			offsets = append(offsets, m.position, m.position+1, m.position+2)
		}
		w.g.frame.Begin(abi.OnGroups, 0)
		for _, x := range offsets {
			w.g.frame.Group(abi.Group{Group: "g", Topic: m.topic, Partition: m.number, Offset: x, LogStart: m.logStart, Position: m.position, TargetEnd: m.told, LeaderEpoch: -1})
		}
		emits, err := w.g.call(abi.OnGroups)
		if err != nil || len(emits) != len(offsets) {
			w.t.Fatalf("%d answers to %d, %v", len(emits), len(offsets), err)
		}
		for i, e := range emits {
			if e.Kind != abi.EmitTranslation || e.Entry != uint32(i) {
				w.t.Fatalf("answer %d is %v about %d", i, e.Kind, e.Entry)
			}
			w.check(m, offsets[i], answer{e.Offset, e.Outcome, e.Reason}, e.Run)
		}
	}
}

func (w *world) check(m *mirrored, offset int64, got answer, run abi.Run) {
	fail := func(why string) {
		w.t.Fatalf("%s-%d, offset %d: %v by %+v: %s; position %d, target's end %d", m.topic, m.number, offset, got, run, why, m.position, m.told)
	}
	// What is true, whatever is known.
	x, ok := m.first(offset)
	if first := m.truth[x]; ok && got.offset > first {
		fail(fmt.Sprint("it is past ", first))
	} else if ok && got.outcome == abi.Exact && got.offset != first {
		fail(fmt.Sprint("the first record at or after it is at ", first))
	}
	for i := range run.Records {
		if dst, ok := m.truth[run.First+i]; !ok || dst != run.Target+i {
			fail(fmt.Sprint("its run has no record ", run.First+i, " there"))
		}
	}
	if run.Records > 0 && !follows(offset, x, ok, got, run) {
		fail("it does not follow from its run")
	}
	// What the rules say.
	var want []string
	var right []*oracle
	for _, o := range m.known {
		a, at := o.translate(offset, m.position)
		if want = append(want, fmt.Sprint(a, " by ", at)); w.fits(m, o, offset, got, a) && w.goesBy(m, o, got, a, run, at) {
			right = append(right, o)
		}
	}
	if len(right) == 0 {
		fail(fmt.Sprint("want one of ", want))
	}
	m.known = right
}

// fits says whether an answer is as good as the one by the rules.
func (w *world) fits(m *mirrored, o *oracle, offset int64, got, want answer) bool {
	thinned := w.g.given > 0 && got.outcome != abi.Exact
	small := w.g.parts.limit < 3*4096                         // not even what is told between two flushes may have room
	trimmed := offset < m.logStart || o.covered <= m.logStart // all that is known may be gone
	switch {
	case got == want:
		return true
	case trimmed && got.outcome == abi.NoOffset && (got.reason == abi.BeforeFirst || got.reason == abi.NotKnown):
		return true
	case trimmed && got.reason == abi.Thinned && got.offset <= want.offset:
		return true
	case thinned && (small || offset < o.covered && got.offset <= want.offset):
		return true
	case w.g.given > 0 && got.outcome == abi.Exact && got.offset == want.offset:
		// The rules forget what comes after a record that the target has lost. Where that
		// record had been given up, what is known to be empty after it stays known.
		_, ok := m.first(offset)
		return ok // and it was looked at whether it is true
	}
	// Next to a point that was read back either reason is as good.
	either := func(r abi.Reason) bool { return r == abi.InUnknown || r == abi.BeforeFirst }
	points := slices.ContainsFunc(o.at, func(w what) bool { return w.kind == point })
	return points && got.outcome == want.outcome && got.offset == want.offset && either(got.reason) && either(want.reason)
}

// follows says whether an answer is what a run says: that its record at the offset is
// there, or its first one where nothing comes before it, or that the group is behind all
// of it. x is the first record at or after the offset, if there is one.
func follows(offset, x int64, ok bool, got answer, run abi.Run) bool {
	switch {
	case got.outcome == abi.NoOffset:
		return false
	case got.outcome == abi.Exact && ok:
		return run.First <= x && x <= run.Last() && got.offset == run.Target+x-run.First && (x == offset || x == run.First)
	case got.outcome == abi.Bound && run.First >= offset: // a point that was read back
		return run.Records == 1 && got.offset == run.Target && ok && run.First == x
	}
	return run.Last() < offset && got.offset == run.End()
}

// goesBy says whether an answer that the rules give goes by the run with the record that
// they go by, as they know it; or by none, if there is none or it may be forgotten.
func (w *world) goesBy(m *mirrored, o *oracle, got, want answer, run abi.Run, at int64) bool {
	switch {
	case got.outcome != want.outcome || got.offset != want.offset || got.reason == abi.Thinned:
		return true // something is forgotten that the rules still know
	case run.Records == 0:
		return at == noRecord || w.g.given > 0 || at < m.logStart
	}
	return run.First <= at && at <= run.Last() && o.has(run)
}

// first is the first record at or after an offset, of those that are copied.
func (m *mirrored) first(offset int64) (int64, bool) {
	for x := offset; x <= m.position; x++ {
		if _, ok := m.truth[x]; ok {
			return x, true
		}
	}
	return noRecord, false
}

// Random histories of two partitions, told to the plugin as a host does, with
// instances that end at any time. Each answer is what a plain list of offsets says.
func TestTranslation(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := &world{t: t, g: plugin(t, "lag_max", "1000000")}
		w.g.parts.limit = rapid.SampledFrom([]int{0, 0, 0, 200, 700, 3000, 20000}).Draw(t, "limit")
		for _, name := range []string{"t", "u"} {
			m := &mirrored{partition: partition{name, 3}, t: t, known: []*oracle{newOracle()}, flushed: []*oracle{newOracle()}, truth: map[int64]int64{}, logStart: -1}
			m.position = rapid.SampledFrom([]int64{-1, -1, 4}).Draw(t, "position")
			m.saved, m.before = m.position, m.position
			m.end = rapid.SampledFrom([]int64{0, 0, 7}).Draw(t, "target's end")
			m.logStart = rapid.SampledFrom([]int64{-1, 0, 5}).Draw(t, "log start")
			m.base = m.end
			w.all = append(w.all, m)
			w.assign(m, abi.Assigned, m.position, m.end)
		}
		most := 30
		if interpreted {
			most = 5
		}
		for range rapid.IntRange(1, most).Draw(t, "steps") {
			w.step(w.all[rapid.IntRange(0, 1).Draw(t, "partition")])
			w.ask()
		}
	})
}
