package offsetsync

import (
	"maps"
	"slices"

	"pgregory.net/rapid"

	"mirror/abi"
)

// step is something that happens.
func (w *world) step(m *mirrored) {
	t := w.t
	switch what := rapid.IntRange(0, 22).Draw(t, "what"); what {
	default:
		var entries [][]abi.Commit
		for _, m := range w.all {
			entries = append(entries, m.copies(rapid.IntRange(0, 6).Draw(t, "pieces"), true))
		}
		w.tell(rapid.Bool().Draw(t, "flush"), entries...)
	case 8, 9:
		w.small(m, rapid.IntRange(100, 1500).Draw(t, "transactions"), rapid.Bool().Draw(t, "flushes"))
	case 10, 11:
		w.crash()
	case 12, 13:
		w.trap()
	case 14:
		w.swap()
	case 15: // some of it is copied again
		w.back(m, abi.Assigned)
	case 16: // the source has lost its end, and the target keeps it
		w.back(m, abi.Truncated)
	case 17:
		w.recreate(m)
	case 18: // switched off for a time
		w.tell(true)
		m.copies(rapid.IntRange(1, 10).Draw(t, "pieces"), false)
		if rapid.Bool().Draw(t, "fresh") {
			w.restart()
		} else {
			w.assign(m, abi.Assigned, m.position, m.end)
		}
		if rapid.Bool().Draw(t, "replay") {
			w.replay(m)
		}
		w.tell(true)
	case 19:
		m.logStart = rapid.Int64Range(max(m.logStart, 0), max(m.logStart, m.position+1)).Draw(t, "log start")
		w.happened(m.event(abi.LogStartMoved, m.position, m.told))
	case 20:
		w.targetLoses(m)
	case 21:
		w.replay(m) // a mirror's own syncs are read back with each start
	}
}

// back has the position go back, which is saved at once.
func (w *world) back(m *mirrored, kind abi.Event) {
	w.tell(true)
	m.lost(rapid.Int64Range(max(0, m.position-30), m.position+1).Draw(w.t, "back to"))
	m.saved, m.before = m.position, m.position
	w.assign(m, kind, m.position, m.end)
}

// small are many small transactions.
func (w *world) small(m *mirrored, n int, flushes bool) {
	var entries []abi.Commit
	for i := range n {
		first, size := m.position+1, int64(1+i%3)
		entries = append(entries, m.entry(first, first+size-1, m.end, m.end+size-1, 0), m.entry(first+size, first+size, -1, -1, 0))
		for x := range size {
			m.truth[first+x] = m.end + x
		}
		m.end += size
		m.position = first + size
		if flushes && i%100 == 99 {
			w.tell(true, entries)
			entries = nil
		}
	}
	w.tell(false, entries)
}

// restart has a fresh instance, with the state as it is.
func (w *world) restart() {
	w.fresh()
	for _, m := range w.all {
		w.g.parts.at(m.partition).lose(0)
		w.assign(m, abi.Assigned, m.position, m.end)
	}
}

// crash ends the mirror, maybe in the middle of a flush. It begins again at the saved
// position, or the one before; what comes next is found on the target, or copied
// again.
func (w *world) crash() {
	if rapid.Bool().Draw(w.t, "in a flush") {
		var nothing []abi.Commit
		for _, m := range w.all {
			nothing = append(nothing, m.entry(m.position+1, m.position, -1, -1, 0))
		}
		w.g.parts.torn = true
		w.commit(abi.Flush, nothing)
		w.g.parts.torn = false
	}
	for _, m := range w.all {
		p := w.g.parts.at(m.partition)
		written := rapid.IntRange(0, len(p.put)).Draw(w.t, "written")
		if p.lose(written); written > 0 { // it may have what was told since
			m.flushed = append(m.flushed, m.known...)
		}
		m.known = clones(m.flushed)
		m.position = rapid.SampledFrom([]int64{m.saved, m.saved, m.before}).Draw(w.t, "position")
		m.before = m.position
	}
	w.fresh()
	for _, m := range w.all {
		again := slices.DeleteFunc(slices.Clone(m.since), func(e abi.Commit) bool { return e.SrcFirst <= m.position })
		found := len(again) > 0 && again[0].SrcFirst == m.position+1 && m.position == m.saved && rapid.Bool().Draw(w.t, "found")
		w.assign(m, abi.Assigned, m.position, m.end)
		m.since, m.saved, m.base = nil, m.position, m.end
		if found {
			m.position = again[len(again)-1].SrcLast
			w.tell(false, again)
		}
		m.lost(m.position + 1)
	}
}

// trap ends the instance. The next one is told everything since the last flush.
func (w *world) trap() {
	w.fresh()
	for _, m := range w.all {
		w.g.parts.at(m.partition).lose(0)
		again := m.since
		m.since, m.known = nil, clones(m.flushed)
		w.assign(m, abi.Assigned, m.saved, m.base)
		w.tell(false, again)
	}
}

// swap has another generation take over.
func (w *world) swap() {
	w.tell(true)
	blob := w.g.save()
	w.fresh()
	if err := w.g.restore(blob); err != nil {
		w.t.Fatal(err)
	}
	for _, m := range w.all {
		w.assign(m, abi.Assigned, m.position, m.told)
	}
}

// recreate: the source topic was deleted and made again, and maybe the target's too.
func (w *world) recreate(m *mirrored) {
	delete(w.g.parts.of, m.partition)
	m.lost(0)
	m.known, m.since, m.logStart = []*oracle{newOracle()}, nil, -1
	if rapid.Bool().Draw(w.t, "target too") {
		m.end = 0
	}
	w.assign(m, abi.Recreated, -1, m.end)
	w.tell(true)
	m.before = m.saved
}

// targetLoses: the end of the target's log is gone, and the mirror goes on.
func (w *world) targetLoses(m *mirrored) {
	end := rapid.Int64Range(max(0, m.end-20), m.end).Draw(w.t, "target's end")
	for _, o := range m.known {
		for _, dst := range o.marks {
			if dst > end {
				return // see TestTargetLosesMixedRanges
			}
		}
	}
	w.tell(true)
	m.end = end
	maps.DeleteFunc(m.truth, func(_, dst int64) bool { return dst >= end })
	w.assign(m, abi.Assigned, m.position, m.end)
	w.tell(true)
}
