package main

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"unicode/utf8"
)

// column is a figure in the table.
type column struct {
	head   string
	digits int  // behind the point
	ratio  bool // to the mirror's, too
	of     func(figures) Figure
}

var columns = []column{
	{"CPU s/GB", 2, true, func(f figures) Figure { return f.CPU }},
	{"MB/s", 0, true, func(f figures) Figure { return f.Throughput }},
	{"source CPU s/GB", 2, false, func(f figures) Figure { return f.SourceCPU }},
	{"target CPU s/GB", 2, true, func(f figures) Figure { return f.TargetCPU }},
	{"peak RSS MB", 0, true, func(f figures) Figure { return f.Memory }},
	{"p50 ms", 1, false, func(f figures) Figure { return f.P50 }},
	{"p99 ms", 1, false, func(f figures) Figure { return f.P99 }},
	{"first record s", 1, false, func(f figures) Figure { return f.First }},
}

// print writes a table for each case: the range of each subject's runs, and how
// many times the mirror's mean its mean is.
func (r Report) print(w io.Writer) {
	if len(r.Cases) > 0 {
		fmt.Fprintf(w, "%s, %d CPUs, %s. CPU and MB/s are for record values; the first fifth of them is left out.\n"+
			"In brackets: times the mirror's. Latency is what it adds, at %d records a second.\n", r.Image, r.CPUs, r.Go, lightRate)
	}
	for _, c := range r.Cases {
		if len(c.Runs) == 0 {
			continue // it was interrupted
		}
		fmt.Fprintf(w, "\n%s: %s\n%d records, %.0f MB, %.0f MB stored in %d batches\n", c.Name, c.About,
			c.Records, float64(c.Payload)/1e6, float64(c.Stored)/1e6, c.Batches)
		align(w, c.rows())
		for _, x := range c.Runs {
			if why := x.Note + x.Error; why != "" {
				fmt.Fprintf(w, "%s, run %d: %s\n", x.Subject, x.Run, why)
			}
		}
		c.printPairs(w)
	}
}

// rows are the cells of a case's table, the head first.
func (c Case) rows() [][]string {
	head := []string{"subject"}
	for _, col := range columns {
		head = append(head, col.head)
	}
	var names []string
	for _, x := range c.Runs {
		if !slices.Contains(names, x.Subject) {
			names = append(names, x.Subject)
		}
	}
	rows := [][]string{head}
	for _, name := range names {
		row := []string{name}
		for _, col := range columns {
			row = append(row, col.cell(c.values(name, col), c.values(mirrorName, col)))
		}
		rows = append(rows, row)
	}
	return rows
}

// values are the known figures of a subject.
func (c Case) values(subject string, col column) (all []float64) {
	for _, x := range c.Runs {
		if f := col.of(x.figures); x.Subject == subject && f.known() {
			all = append(all, float64(f))
		}
	}
	return all
}

func (col column) cell(own, mirror []float64) string {
	if len(own) == 0 {
		return "-"
	}
	cell := fmt.Sprintf("%.*f", col.digits, slices.Min(own))
	if most := fmt.Sprintf("%.*f", col.digits, slices.Max(own)); most != cell {
		cell += "-" + most
	}
	if ratio := mean(own) / mean(mirror); col.ratio && !math.IsNaN(ratio) && !math.IsInf(ratio, 0) {
		cell += " (" + times(ratio) + ")"
	}
	return cell
}

// times is a ratio with two or three digits that matter.
func times(ratio float64) string {
	switch {
	case ratio < 0.95:
		return fmt.Sprintf("%.2f", ratio)
	case ratio < 9.5:
		return fmt.Sprintf("%.1f", ratio)
	}
	return fmt.Sprintf("%.0f", ratio)
}

// mean is NaN for none.
func mean(all []float64) float64 {
	sum := 0.0
	for _, x := range all {
		sum += x
	}
	return sum / float64(len(all))
}

// align writes the rows with the first column to the left and the others to the
// right.
func align(w io.Writer, rows [][]string) {
	widths := make([]int, len(rows[0]))
	for _, row := range rows {
		for i, cell := range row {
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	for _, row := range rows {
		line := fmt.Sprintf("%-*s", widths[0], row[0])
		for i, cell := range row[1:] {
			line += fmt.Sprintf("  %*s", widths[i+1], cell)
		}
		fmt.Fprintln(w, strings.TrimRight(line, " "))
	}
}
