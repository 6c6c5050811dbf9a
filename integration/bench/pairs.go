package main

import (
	"fmt"
	"io"
	"math"
)

// Pair compares what two subjects used in the rounds that both have measured. A
// round's runs follow each other, and the order turns round from one to the next, so
// that a machine that gets slower or quicker meanwhile harms neither.
type Pair struct {
	Of     string `json:"of"`
	To     string `json:"to"`
	What   string `json:"what"`
	Rounds int    `json:"rounds"`
	// Ratio is the geometric mean of the rounds' ratios; Low to High is where it is
	// with a confidence of 95 %, by Student's distribution of their logarithms. None
	// for a single round.
	Ratio Figure `json:"ratio"`
	Low   Figure `json:"low"`
	High  Figure `json:"high"`
}

// compared are the ways of the mirror: which to which.
var compared = [][2]string{{mirrorName, offName}, {mirrorName, absentName}, {offName, absentName}}

// settledCPU is not in the table of all subjects.
var settledCPU = column{head: "CPU s/GB until settled", of: func(f figures) Figure { return f.Settled }}

// compare has the pairs of a case, of the figures that are to be small or large.
func (c Case) compare() (all []Pair) {
	for _, names := range compared {
		for _, col := range append([]column{settledCPU}, columns...) {
			if !col.ratio && col.head != settledCPU.head {
				continue
			}
			if logs := c.logRatios(names[0], names[1], col); len(logs) > 0 {
				p := Pair{Of: names[0], To: names[1], What: col.head, Rounds: len(logs)}
				p.Ratio, p.Low, p.High = interval(logs)
				all = append(all, p)
			}
		}
	}
	return all
}

// logRatios has the logarithm of a round's ratio, for each round without a fault.
func (c Case) logRatios(of, to string, col column) (logs []float64) {
	rounds := map[int]Figure{}
	for _, x := range c.Runs {
		if x.Subject == to && x.whole() {
			rounds[x.Run] = col.of(x.figures)
		}
	}
	for _, x := range c.Runs {
		a, b := col.of(x.figures), rounds[x.Run]
		if x.Subject == of && x.whole() && a > 0 && b > 0 { // not if one is unknown
			logs = append(logs, math.Log(float64(a/b)))
		}
	}
	return logs
}

func (r Run) whole() bool { return r.Error == "" && r.Note == "" }

// interval is the geometric mean of what logs are the logarithms of, and the bounds
// of its interval of confidence.
func interval(logs []float64) (ratio, low, high Figure) {
	n := float64(len(logs))
	m := mean(logs)
	if n < 2 {
		return Figure(math.Exp(m)), noFigure, noFigure
	}
	squares := 0.0
	for _, x := range logs {
		squares += (x - m) * (x - m)
	}
	half := student(len(logs)-1) * math.Sqrt(squares/(n-1)/n)
	return Figure(math.Exp(m)), Figure(math.Exp(m - half)), Figure(math.Exp(m + half))
}

// student is what a variable of Student's distribution with so many degrees of
// freedom stays within, either way, in 95 % of all cases.
func student(degrees int) float64 {
	exact := []float64{12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228}
	if degrees <= len(exact) {
		return exact[degrees-1]
	}
	// Abramowitz and Stegun, 26.7.5.
	const z = 1.959964
	d := float64(degrees)
	return z + (z*z*z+z)/(4*d) + (5*z*z*z*z*z+16*z*z*z+3*z)/(96*d*d)
}

// printPairs writes them as a table.
func (c Case) printPairs(w io.Writer) {
	if len(c.Pairs) == 0 {
		return
	}
	rows := [][]string{{"ratio", "of", "95 % confidence", "rounds"}}
	for _, p := range c.Pairs {
		bounds := "-"
		if p.Low.known() {
			bounds = fmt.Sprintf("%.3f to %.3f", float64(p.Low), float64(p.High))
		}
		rows = append(rows, []string{p.Of + " / " + p.To + ", " + p.What, fmt.Sprintf("%.3f", float64(p.Ratio)), bounds, fmt.Sprint(p.Rounds)})
	}
	fmt.Fprintln(w)
	align(w, rows)
}
