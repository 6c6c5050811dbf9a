package soak

import (
	"encoding/json"
	"fmt"
	"io"
	"text/tabwriter"
)

// report is the outcome.
type report struct {
	Seconds  float64  `json:"seconds"`
	Trends   []trend  `json:"trends"`
	Compared uint64   `json:"records_compared"` // equal on both sides (keys, of compacted topics)
	Churned  int      `json:"topics_created_and_deleted"`
	Cuts     int      `json:"links_cut"`
	Writers  uint64   `json:"writers_replaced"` // because the cuts hit them, too
	Failures []string `json:"failures"`
	Samples  []sample `json:"samples"`
}

// rows of the table at most, however long the run.
const rows = 20

// print writes a table, the trends, and all of it as one line of JSON.
func (r report) print(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "s\trss MiB\theap MiB\tgoroutines\topen files\tCPU s\trecords\tMB\tlag\tpartitions\tstalled\terrors\t")
	for i, s := range r.Samples {
		if step := (len(r.Samples) + rows - 1) / rows; (i+1)%step != 0 && i != 0 && i != len(r.Samples)-1 {
			continue
		}
		fmt.Fprintf(t, "%.0f\t%.1f\t%.1f\t%d\t%d\t%.1f\t%d\t%.1f\t%d\t%d\t%d\t%d\t\n", s.Seconds, float64(s.RSS)/mib, float64(s.Heap)/mib,
			s.Goroutines, s.Files, s.CPU, s.Records, float64(s.Bytes)/1e6, s.Lag, s.Partitions, s.Stalled, s.Errors)
	}
	fmt.Fprintln(t)
	fmt.Fprintln(t, "\tsecond fifth\tlast fifth\tat most\tflat\t")
	for _, x := range r.Trends {
		fmt.Fprintf(t, "%s\t%.1f\t%.1f\t%.1f\t%v\t\n", x.Resource, x.Early, x.Late, x.Most, x.Flat)
	}
	fmt.Fprintf(t, "\n%d records equal, %d topics created and deleted, links cut %d times, %d writers replaced\n", r.Compared, r.Churned, r.Cuts, r.Writers)
	if err := t.Flush(); err != nil {
		return err
	}
	return json.NewEncoder(w).Encode(r)
}
