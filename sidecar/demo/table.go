package demo

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"mirror/sidecar/status"
)

// style marks text on a terminal, and leaves it alone elsewhere.
type style struct{ on bool }

func (s style) bold(text string) string  { return s.mark("1", text) }
func (s style) green(text string) string { return s.mark("32", text) }
func (s style) red(text string) string   { return s.mark("31;1", text) }
func (s style) faint(text string) string { return s.mark("2", text) }

func (s style) mark(code, text string) string {
	if !s.on || text == "" {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}

// frame is the table for a terminal. note is its last line.
func frame(st style, before, now sample, ran time.Duration, note string) string {
	all := rows(before, now)
	var b strings.Builder
	fmt.Fprintf(&b, "%s  %s -> %s, two Kafka clusters in this process, %s\n\n", st.bold("mirror demo"), from, to, ran.Round(time.Second))
	fmt.Fprintln(&b, st.bold(line("TOPIC", "PARTITIONS", "RECORDS/S", "MB/S", "LAG", "STATE")))
	for _, r := range append(all, total(all)) {
		text := line(r.topic, count(r.partitions), count(r.records), megabytes(r.bytes), count(r.lag), "")
		switch {
		case r.topic == "total":
			b.WriteString(st.bold(strings.TrimRight(text, " ")))
		case r.state == status.Running:
			b.WriteString(text + st.green(string(r.state)))
		case r.state == status.Stalled || r.state == blocked:
			b.WriteString(text + st.red(string(r.state)))
		default:
			b.WriteString(text + string(r.state))
		}
		b.WriteByte('\n')
	}
	fmt.Fprintf(&b, "\n%s\n%s\n%s\n", resources(before, now), verdict(st, now), now.group.progress())
	if note != "" {
		b.WriteString(st.faint(note) + "\n")
	}
	return b.String()
}

// progressLine is the same in one line, for a file or a pipe.
func progressLine(before, now sample, ran time.Duration, note string) string {
	t := total(rows(before, now))
	text := fmt.Sprintf("%s: %s records/s, %s MB/s, lag %s, %s, %s, %s, %s", ran.Round(time.Second), count(t.records), megabytes(t.bytes),
		count(t.lag), t.state, resources(before, now), verdict(style{}, now), now.group.progress())
	if note != "" {
		text += "; " + note
	}
	return text + "\n"
}

func line(topic, partitions, records, megabytes, lag, state string) string {
	return fmt.Sprintf("%-12s %10s %11s %8s %8s  %s", topic, partitions, records, megabytes, lag, state)
}

func resources(before, now sample) string {
	text := fmt.Sprintf("CPU %.0f %%", 100*cpu(before, now))
	if now.usage.memory > 0 {
		text += fmt.Sprintf(", memory %.0f MB", now.usage.memory/1e6)
	}
	return text
}

func verdict(st style, s sample) string {
	records, different := s.compared()
	if different > 0 {
		return fmt.Sprintf("%s records compared, %s", count(records), st.red(count(different)+" differ"))
	}
	return fmt.Sprintf("%s records compared, %s", count(records), st.green("all equal"))
}

func megabytes(bytes float64) string { return strconv.FormatFloat(bytes/1e6, 'f', 2, 64) }

// count writes a number with commas between thousands.
func count[N int | int64 | uint64 | float64](n N) string {
	digits := strconv.FormatFloat(float64(n), 'f', 0, 64)
	sign := ""
	if strings.HasPrefix(digits, "-") {
		sign, digits = "-", digits[1:]
	}
	var b strings.Builder
	for i, d := range digits {
		if i > 0 && (len(digits)-i)%3 == 0 {
			b.WriteByte(',')
		}
		b.WriteRune(d)
	}
	return sign + b.String()
}
