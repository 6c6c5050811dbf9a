package demo

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// moved is what became of the group.
type moved struct {
	at         string // the cluster that it reads at; "": it is on its way
	partitions []movedPartition
	failed     error
}

type movedPartition struct {
	partition
	groupPartition
}

// look is what has become of the group so far, by topic and number.
func (g *group) look() moved {
	g.mu.Lock()
	defer g.mu.Unlock()
	m := moved{at: g.at, failed: g.failed}
	for at, p := range g.partitions {
		m.partitions = append(m.partitions, movedPartition{at, *p})
	}
	slices.SortFunc(m.partitions, func(a, b movedPartition) int {
		return cmp.Or(cmp.Compare(slices.Index(groupTopics, a.topic), slices.Index(groupTopics, b.topic)), cmp.Compare(a.number, b.number))
	})
	return m
}

func (m moved) sums() (before, after, lost, repeated int64) {
	for _, p := range m.partitions {
		before, after = before+p.before, after+p.after
		lost, repeated = lost+p.lost(), repeated+p.repeated()
	}
	return before, after, lost, repeated
}

// ok says that the group went on at the target, with nothing lost and nothing twice.
func (m moved) ok() bool {
	_, _, lost, repeated := m.sums()
	return m.failed == nil && m.at == to && lost == 0 && repeated == 0
}

// progress is what has become of the group, in a few words.
func (m moved) progress() string {
	before, after, lost, repeated := m.sums()
	switch m.at {
	case from:
		return fmt.Sprintf("group %s has read %s records on %s", groupName, count(before), from)
	case "":
		return fmt.Sprintf("group %s fails over", groupName)
	}
	return fmt.Sprintf("group %s has failed over, with %s lost and %s repeated, and read %s records on %s", groupName, count(lost), count(repeated), count(after), to)
}

// summary tells what became of the group.
func (m moved) summary(st style) string {
	before, after, lost, repeated := m.sums()
	if m.failed != nil || m.at != to {
		return st.red(fmt.Sprintf("Consumer group %s read %s records on %s and could not go on: %v.", groupName, count(before), from, m.failed)) + "\n"
	}
	mark := st.green
	if !m.ok() {
		mark = st.red
	}
	var b strings.Builder
	b.WriteString(mark(fmt.Sprintf("Consumer group %s read %s records on %s, failed over, and went on with %s on %s: %s lost, %s repeated.",
		groupName, count(before), from, count(after), to, count(lost), count(repeated))) + "\n\n")
	b.WriteString(st.bold(movedLine("PARTITION", "READ", "COMMITTED", "WENT ON AT", "READ", "LOST", "REPEATED")) + "\n")
	for _, p := range m.partitions {
		text := movedLine(fmt.Sprintf("%s/%d", p.topic, p.number), count(p.before), count(p.committed), count(p.from), count(p.after), count(p.lost()), count(p.repeated()))
		if p.lost()+p.repeated() > 0 {
			text = st.red(text)
		}
		b.WriteString(text + "\n")
	}
	fmt.Fprintf(&b, "\nRead and committed on %s; went on at, and read, on %s. On %s the markers of transactions and aborted records have offsets, too.\n", from, to, from)
	return b.String()
}

func movedLine(partition, before, committed, from, after, lost, repeated string) string {
	return strings.TrimRight(fmt.Sprintf("%-12s %10s %10s   %10s %10s %9s %9s", partition, before, committed, from, after, lost, repeated), " ")
}
