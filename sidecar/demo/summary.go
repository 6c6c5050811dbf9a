package demo

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"mirror/sidecar/compare"
	"mirror/sidecar/status"
)

// outcome is what the summary tells.
type outcome struct {
	report             compare.Report
	last               sample        // when all was compared
	writing            time.Duration // how long there was traffic
	ran                time.Duration // until all was compared
	patience           time.Duration // that the mirror was given to catch up
	caughtUp           bool
	cpuSeconds         float64
	peakMemory         float64
	commits, abortions int64 // transactions
	aborted            int64 // records
	group              moved
}

// ok says that every record arrived unchanged, and that the group missed none and saw
// none twice.
func (o outcome) ok() bool { return o.report.OK() && o.group.ok() }

// result is the outcome for one topic.
type result struct {
	source, target, equal, different uint64
	compacted                        bool
}

func results(report compare.Report) map[string]result {
	all := map[string]result{}
	for _, p := range report {
		r := all[p.Topic]
		r.source += p.SourceRecords
		r.target += p.TargetRecords
		r.equal += p.Equal
		r.different += p.Different
		r.compacted = p.Compacted
		all[p.Topic] = r
	}
	return all
}

// summary tells the outcome, the most important first.
func summary(st style, o outcome) string {
	var b strings.Builder
	byName, copied := results(o.report), byTopic(o.last.report)
	var sourceRecords, different uint64
	for _, r := range byName {
		sourceRecords += r.source
		different += r.different
	}
	var records, bytes uint64
	for _, s := range copied {
		records += s.records
		bytes += s.bytes
	}
	b.WriteString(headline(st, o, sourceRecords, different) + "\n\n")

	b.WriteString(st.bold(summaryLine("TOPIC", "SOURCE", "TARGET", "EQUAL", "DIFFERENT", "RAW", "MERGED", "RE-ENCODED", "SKIPPED", "")) + "\n")
	var sums result
	paths := map[string]uint64{}
	for _, t := range topics {
		r, batches := byName[t.name], copied[t.name].batches
		equal := count(r.equal)
		if r.compacted {
			equal += " keys"
		}
		text := summaryLine(t.name, count(r.source), count(r.target), equal, count(r.different),
			count(batches[status.PathRaw]), count(batches[status.PathMerged]), count(batches[status.PathReencoded]), count(batches[status.PathSkipped]), t.what)
		if r.different > 0 {
			text = st.red(text)
		}
		b.WriteString(text + "\n")
		sums.source += r.source
		sums.target += r.target
		sums.different += r.different
		for path, n := range batches {
			paths[path] += n
		}
	}
	b.WriteString(st.bold(summaryLine("total", count(sums.source), count(sums.target), "", count(sums.different),
		count(paths[status.PathRaw]), count(paths[status.PathMerged]), count(paths[status.PathReencoded]), count(paths[status.PathSkipped]), "")) + "\n\n")

	fmt.Fprintf(&b, "Records are counted as consumers see them that read committed; the last four columns count source batches by their path.\n")
	fmt.Fprintf(&b, "customers is compacted, by each cluster on its own: compared is the last record of each of its %s keys.\n", count(compactedKeys(byName)))
	fmt.Fprintf(&b, "payments had %s transactions committed and %s aborted; the %s records of these are not on the target.\n",
		count(o.commits), count(o.abortions), count(o.aborted))
	seconds := o.writing.Seconds()
	fmt.Fprintf(&b, "%s records/s and %s MB/s for %s; CPU %.0f %%%s (traffic, both clusters, mirror and comparison together).\n",
		count(perSecond(records, seconds)), megabytes(perSecond(bytes, seconds)), o.writing.Round(100*time.Millisecond),
		100*perSecondFloat(o.cpuSeconds, o.ran.Seconds()), peak(o.peakMemory))
	b.WriteString("\n" + o.group.summary(st))
	if !o.report.OK() {
		b.WriteString("\n" + st.red("What differs:") + "\n" + o.report.String())
	}
	return b.String()
}

func headline(st style, o outcome, records, different uint64) string {
	if o.report.OK() {
		return st.green(fmt.Sprintf("All %s records arrived as they were written: partition, order, key, value, headers and timestamp are equal.", count(records)))
	}
	text := "The comparison is incomplete, so nothing is proven."
	if different > 0 {
		text = fmt.Sprintf("%s of %s records are not on the target as they are on the source.", count(different), count(records))
	}
	if !o.caughtUp {
		text += fmt.Sprintf(" The mirror was given %s to catch up.", o.patience)
	}
	return st.red(text)
}

func summaryLine(topic, source, target, equal, different, raw, merged, reencoded, skipped, what string) string {
	return strings.TrimRight(fmt.Sprintf("%-12s %10s %10s %10s %9s   %8s %8s %10s %8s   %s",
		topic, source, target, equal, different, raw, merged, reencoded, skipped, what), " ")
}

func compactedKeys(byName map[string]result) uint64 {
	i := slices.IndexFunc(topics, func(t topic) bool { return t.compacted })
	r := byName[topics[i].name]
	return r.equal + r.different
}

func perSecond(n uint64, seconds float64) float64 { return perSecondFloat(float64(n), seconds) }

func perSecondFloat(n, seconds float64) float64 {
	if seconds <= 0 {
		return 0
	}
	return n / seconds
}

func peak(bytes float64) string {
	if bytes == 0 {
		return ""
	}
	return fmt.Sprintf(", peak memory %.0f MB", bytes/1e6)
}
