package main

import (
	"math"
	"strings"
	"testing"
)

func TestStudent(t *testing.T) {
	// From tables: 0.975 quantiles.
	for degrees, want := range map[int]float64{1: 12.706, 9: 2.262, 10: 2.228, 11: 2.201, 15: 2.131, 20: 2.086, 30: 2.042, 100: 1.984} {
		if got := student(degrees); math.Abs(got-want) > 0.0025 {
			t.Errorf("%d degrees: %.4f, want %.3f", degrees, got, want)
		}
	}
}

// Rounds with ratios 1.1 and 1/1.1 say nothing, about 1; a single one has no
// interval; a run that was cut, or failed, is no round.
func TestCompare(t *testing.T) {
	run := func(subject string, n int, cpu Figure) Run {
		f := noFigures()
		f.CPU, f.Settled, f.SourceCPU = cpu, cpu, cpu
		return Run{Subject: subject, Run: n, figures: f}
	}
	cut := run(offName, 3, 2)
	cut.Note = "cut"
	failed := run(mirrorName, 4, 1)
	failed.Error = "gone"
	c := Case{Runs: []Run{run(mirrorName, 1, 1.1), run(offName, 1, 1), run(offName, 2, 1.1), run(mirrorName, 2, 1),
		run(mirrorName, 3, 50), cut, failed, run(offName, 4, 1), run(absentName, 1, 0.5), run(mirrorName, 5, noFigure), run(offName, 5, 1)}}
	got := c.compare()
	if len(got) != 6 {
		t.Fatalf("%d pairs: %+v", len(got), got)
	}
	// The logarithms are l and -l, of standard deviation l√2; its mean's is l.
	half := 12.706 * math.Log(1.1)
	for _, p := range got[:2] {
		if p.Of != mirrorName || p.To != offName || p.Rounds != 2 {
			t.Errorf("%+v", p)
		}
		near(t, "ratio", p.Ratio, 1)
		near(t, "low", p.Low, Figure(math.Exp(-half)))
		near(t, "high", p.High, Figure(math.Exp(half)))
	}
	if p := got[5]; p.Of != offName || p.To != absentName || p.What != "CPU s/GB" || p.Rounds != 1 || p.Low.known() {
		t.Errorf("%+v", p)
	}
	near(t, "the only round", got[5].Ratio, 2)
	var b strings.Builder
	c.Pairs = got[:1]
	c.Pairs[0].Low, c.Pairs[0].High = 0.98, 1.0204
	c.printPairs(&b)
	const want = `
ratio                                          of  95 % confidence  rounds
mirror / mirror-off, CPU s/GB until settled  1.000   0.980 to 1.020       2
`
	if strings.ReplaceAll(b.String(), " ", "") != strings.ReplaceAll(want, " ", "") {
		t.Errorf("got\n%s", b.String())
	}
}
