package offsetsync

import (
	"bufio"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"mirror/abi"
)

// sequence is one of testdata/decisions.txt: steps, and the syncs that
// MirrorMaker's own writer made at each.
type sequence struct {
	lag   string
	steps []step
}

type step struct {
	flush    bool
	up, down int64
	want     []string
}

func decisions(t *testing.T) (all []sequence) {
	t.Helper()
	file, err := os.Open("testdata/decisions.txt")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	for in := bufio.NewScanner(file); in.Scan(); {
		line := in.Text()
		if lag, ok := strings.CutPrefix(line, "lag "); ok {
			all = append(all, sequence{lag: lag})
			continue
		}
		s := &all[len(all)-1]
		if pair, ok := strings.CutPrefix(line, "= "); ok {
			last := &s.steps[len(s.steps)-1]
			last.want = append(last.want, strings.Replace(pair, " ", ":", 1))
			continue
		}
		next := step{flush: line == "flush"}
		if !next.flush {
			if _, err := fmt.Sscan(line, &next.up, &next.down); err != nil {
				t.Fatalf("%q: %v", line, err)
			}
		}
		s.steps = append(s.steps, next)
	}
	return all
}

// last is the source offset of the last record before step i.
func (s sequence) last(i int) int64 {
	for i--; i >= 0; i-- {
		if !s.steps[i].flush {
			return s.steps[i].up
		}
	}
	return -1
}

// What MirrorMaker's classes decide (testdata/Decisions.java) the plugin decides,
// whether it hears of one record a call or of all since the last flush.
func TestDecisionsOfMirrorMaker(t *testing.T) {
	all := decisions(t)
	synced, held := 0, 0
	for n, s := range all {
		single, batched := plugin(t, "lag_max", s.lag), plugin(t, "lag_max", s.lag)
		var entries []abi.Commit
		var want []string
		for i, step := range s.steps {
			var got []string
			if step.flush {
				last := s.last(i)
				got = single.tell(abi.Flush, nothing(last+1, last))
			} else {
				got = single.tell(0, run(step.up, step.up, step.down))
				entries = append(entries, run(step.up, step.up, step.down))
			}
			if !slices.Equal(got, step.want) {
				t.Fatalf("sequence %d, lag %s, step %d %+v: syncs %v", n, s.lag, i, step, got)
			}
			synced += len(got)
			if len(got) == 0 && !step.flush {
				held++
			}
			want = append(want, step.want...)
			if step.flush {
				last := s.last(i)
				if got := batched.tell(abi.Flush, append(entries, nothing(last+1, last))...); !slices.Equal(got, want) {
					t.Fatalf("sequence %d, lag %s, all until step %d: syncs\n got %v\nwant %v", n, s.lag, i, got, want)
				}
				entries, want = nil, nil
			}
		}
	}
	if len(all) < 30 || synced < 500 || held < 500 {
		t.Errorf("%d sequences, %d syncs, %d held back: too few to tell anything", len(all), synced, held)
	}
}

// byRecord is the plugin's rule for records one at a time, as plain as it can be
// said; TestDecisionsOfMirrorMaker holds the plugin to MirrorMaker's for those.
type byRecord struct {
	lag            int64
	up, down, sync int64
	held           bool
}

func (r *byRecord) record(up, down int64) (due, forced bool) {
	forced = r.sync < 0 || up != r.up+1 || down < r.down
	due = forced || down > r.sync+r.lag
	if due {
		r.sync = down
	}
	r.up, r.down, r.held = up, down, !due
	return due, forced
}

// Of runs of many records the plugin writes a part of what MirrorMaker would one
// record at a time: nothing else; the first after each gap; the last of each run;
// and as many that a reader's error is below its distance to the run's end, or the
// lag. What is due after them is the same.
func TestRuns(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		lag := rapid.SampledFrom([]int64{0, 1, 3, 10, 100}).Draw(t, "lag")
		g, rule := plugin(t, "lag_max", fmt.Sprint(lag)), &byRecord{lag: lag, up: -1, down: -1, sync: -1}
		up, down := rapid.Int64Range(0, 1000).Draw(t, "up"), rapid.Int64Range(0, 1000).Draw(t, "down")
		before := abi.Emit{Upstream: -1, Downstream: -1}
		for range rapid.IntRange(1, 8).Draw(t, "calls") {
			var entries []abi.Commit
			for range rapid.IntRange(1, 3).Draw(t, "runs") {
				up = max(0, up+rapid.SampledFrom([]int64{0, 0, 0, 1, 7, -5}).Draw(t, "gap"))
				down = max(0, down+rapid.SampledFrom([]int64{0, 0, 0, 2, 150, -50}).Draw(t, "target gap"))
				length := rapid.Int64Range(1, 1500).Draw(t, "length")
				entries = append(entries, run(up, up+length-1, down))
				up, down = up+length, down+length
			}
			syncs := g.commit(0, entries...)
			for i, e := range entries {
				own := 0
				for own < len(syncs) && syncs[own].Entry == uint32(i) {
					own++
				}
				checkRun(t, rule, e, before, syncs[:own])
				if own > 0 {
					before = syncs[own-1]
				}
				syncs = syncs[own:]
			}
			if len(syncs) > 0 {
				t.Fatalf("syncs %v out of order", syncs)
			}
			if rapid.Bool().Draw(t, "flush") {
				held := g.tell(abi.Flush, nothing(up, up-1))
				if want := fmt.Sprintf("%d:%d", rule.up, rule.down); rule.held && !slices.Equal(held, []string{want}) || !rule.held && held != nil {
					t.Fatalf("flush: syncs %v after %s, held back: %v", held, want, rule.held)
				}
				rule.held = false
			}
		}
	})
}

// checkRun looks at the syncs of one run; before is the last one before it.
func checkRun(t *rapid.T, rule *byRecord, e abi.Commit, before abi.Emit, syncs []abi.Emit) {
	t.Helper()
	all := syncs
	for up, down := e.SrcFirst, e.DstFirst; up <= e.SrcLast; up, down = up+1, down+1 {
		due, forced := rule.record(up, down)
		here := len(syncs) > 0 && syncs[0].Upstream == up
		switch {
		case here && !due:
			t.Fatalf("%d:%d: a sync that MirrorMaker would not write; of the run: %v", up, down, all)
		case here && syncs[0].Downstream != down:
			t.Fatalf("%d:%d: its sync is %v", up, down, syncs[0])
		case forced && !here:
			t.Fatalf("%d:%d: no sync, though it is the first after a gap; of the run: %v", up, down, all)
		case due && !here && len(syncs) == 0:
			t.Fatalf("%d:%d: no sync, though the last one of the run is due here; of the run: %v", up, down, all)
		}
		if here {
			before, syncs = syncs[0], syncs[1:]
			continue
		}
		// A reader translates to one after the sync at or before.
		if wrong := down - (before.Downstream + 1); wrong > max(rule.lag, e.DstLast-down) {
			t.Fatalf("%d:%d is translated %d too early; of the run: %v", up, down, wrong, all)
		}
	}
	if len(syncs) > 0 {
		t.Fatalf("syncs %v beyond %d or out of order", syncs, e.SrcLast)
	}
}

// Of very many runs of a partition in one frame some have no sync: there are few
// syncs then, none that MirrorMaker would not write, the first and the last run have
// theirs, and a reader's error is below its distance to the frame's end, or the lag.
func TestVeryManyRuns(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		lag := rapid.SampledFrom([]int64{0, 10, 100}).Draw(t, "lag")
		g, rule := plugin(t, "lag_max", fmt.Sprint(lag)), &byRecord{lag: lag, up: -1, down: -1, sync: -1}
		up, down := int64(0), rapid.Int64Range(0, 1000).Draw(t, "down")
		for range rapid.IntRange(1, 3).Draw(t, "frames") {
			var entries []abi.Commit
			runs := rapid.IntRange(1, 150).Draw(t, "runs")
			for range runs {
				up += rapid.SampledFrom([]int64{0, 1, 1, 1, 7}).Draw(t, "gap")
				down += rapid.SampledFrom([]int64{0, 0, 0, 0, 2}).Draw(t, "target gap")
				length := rapid.SampledFrom([]int64{1, 1, 10, 10, 10, 50}).Draw(t, "length")
				entries = append(entries, run(up, up+length-1, down), nothing(up+length, up+length))
				up, down = up+length+1, down+length
			}
			syncs, end := g.commit(abi.Flush, entries...), down-1
			if runs > 64 && len(syncs) > 130 {
				t.Fatalf("%d syncs of %d runs", len(syncs), runs)
			}
			before := abi.Emit{Upstream: -1, Downstream: -1}
			for _, e := range entries {
				for up, down := e.SrcFirst, e.DstFirst; down >= 0 && up <= e.SrcLast; up, down = up+1, down+1 {
					due, forced := rule.record(up, down)
					here := len(syncs) > 0 && syncs[0].Upstream == up
					first, flushed := before.Upstream < 0, down == end
					switch {
					case here && (!due && !flushed || syncs[0].Downstream != down):
						t.Fatalf("%d:%d: its sync is %v, due: %v", up, down, syncs[0], due)
					case !here && (forced && (first || runs <= 64) || flushed):
						t.Fatalf("%d:%d has no sync", up, down)
					}
					if here {
						before, syncs = syncs[0], syncs[1:]
					} else if wrong := down - (before.Downstream + 1); wrong > max(lag, end-down) {
						t.Fatalf("%d:%d is translated %d too early", up, down, wrong)
					}
				}
			}
			rule.held = false
			if len(syncs) > 0 {
				t.Fatalf("syncs %v out of order", syncs)
			}
		}
	})
}
