package main

import (
	"strings"
	"testing"
)

func TestTable(t *testing.T) {
	run := func(subject string, n int, cpu, throughput, memory, p50 Figure) Run {
		f := noFigures()
		f.CPU, f.Throughput, f.Memory, f.P50 = cpu, throughput, memory, p50
		return Run{Subject: subject, Run: n, figures: f}
	}
	failed := Run{Subject: "mm2", Run: 2, figures: noFigures(), Error: "no broker"}
	r := Report{Image: "kafka:1", CPUs: 2, Go: "go1", Cases: []Case{
		{benchCase: benchCase{Name: "lz4-16k", About: "small"}, dataset: dataset{Records: 1000, Payload: 1_024_000, Stored: 500_000, Batches: 70},
			Runs: []Run{run("copy", 1, 0.25, 1000, 9, noFigure), run("mm2", 1, 22, 50, 2000, 7.5), run(mirrorName, 1, 1.5, 260, 40, 1),
				run("copy", 2, 0.25, 1100, 9, noFigure), failed, run(mirrorName, 2, 1.7, 240, 60, 1.04)}},
		{benchCase: benchCase{Name: "interrupted"}},
	}}
	var b strings.Builder
	r.print(&b)
	want := `kafka:1, 2 CPUs, go1. CPU and MB/s are for record values; the first fifth of them is left out.
In brackets: times the mirror's. Latency is what it adds, at 100 records a second.

lz4-16k: small
1000 records, 1 MB, 0 MB stored in 70 batches
subject         CPU s/GB             MB/s  source CPU s/GB  target CPU s/GB  peak RSS MB  p50 ms  p99 ms  first record s
copy         0.25 (0.16)  1000-1100 (4.2)                -                -     9 (0.18)       -       -               -
mm2           22.00 (14)        50 (0.20)                -                -    2000 (40)     7.5       -               -
mirror   1.50-1.70 (1.0)    240-260 (1.0)                -                -  40-60 (1.0)     1.0       -               -
mm2, run 2: no broker
`
	if b.String() != want {
		t.Errorf("got\n%swant\n%s", b.String(), want)
	}
	if !r.failed() || (Report{Cases: []Case{{Runs: r.Cases[0].Runs[:1]}}}).failed() {
		t.Error("failed does not tell whether a run has failed")
	}
}

// Where the mirror did not run there are no ratios.
func TestTableWithoutMirror(t *testing.T) {
	if got := columns[0].cell([]float64{2}, nil); got != "2.00" {
		t.Errorf("%q", got)
	}
}
