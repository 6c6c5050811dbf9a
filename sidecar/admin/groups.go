package admin

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"mirror/sidecar/status"
)

// Translate says where a group would go on at the target; flow and topic may be "" for
// all. Lag says what all groups would lose or repeat.
type (
	Translate func(ctx context.Context, flow, group, topic string) (status.Translations, error)
	Lag       func(ctx context.Context, flow string) (status.Lags, error)
)

// Where groups are asked about: TranslatePath takes group, topic and flow in its query,
// LagPath flow.
const (
	TranslatePath = "/translate"
	LagPath       = "/lag"
)

// NothingToSay is the code of an answer about a group that nobody follows, or of a
// mirror that follows none.
const NothingToSay = http.StatusNotFound

// groupsTime is how long the clusters may take. It is less than a server has for an
// answer.
const groupsTime = answerTimeout - 5*time.Second

// Unknown is an error that says that there is nothing to say.
type Unknown interface{ NothingToSay() bool }

// serveTranslate answers 200, 400 without a group, NothingToSay or 503.
func serveTranslate(w http.ResponseWriter, r *http.Request, translate Translate) {
	q := r.URL.Query()
	if q.Get("group") == "" {
		writeText(w, http.StatusBadRequest, "which group? "+TranslatePath+"?group=NAME\n")
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), groupsTime)
	defer cancel()
	t, err := translate(ctx, q.Get("flow"), q.Get("group"), q.Get("topic"))
	if !answered(w, err) {
		return
	}
	if wantsJSON(r) {
		t.Groups, t.Errors = array(t.Groups), array(t.Errors)
		writeJSON(w, http.StatusOK, t)
		return
	}
	var b strings.Builder
	for i := range t.Groups {
		if i > 0 {
			b.WriteString("\n")
		}
		translationText(&b, &t.Groups[i])
	}
	errorsText(&b, t.Errors)
	writeText(w, http.StatusOK, b.String())
}

// serveLag answers 200, NothingToSay or 503.
func serveLag(w http.ResponseWriter, r *http.Request, lag Lag) {
	ctx, cancel := context.WithTimeout(r.Context(), groupsTime)
	defer cancel()
	l, err := lag(ctx, r.URL.Query().Get("flow"))
	if !answered(w, err) {
		return
	}
	if wantsJSON(r) {
		l.Groups, l.Errors = array(l.Groups), array(l.Errors)
		writeJSON(w, http.StatusOK, l)
		return
	}
	var b strings.Builder
	lagText(&b, l.Groups)
	errorsText(&b, l.Errors)
	writeText(w, http.StatusOK, b.String())
}

// answered says whether there is an answer, and else writes why there is none.
func answered(w http.ResponseWriter, err error) bool {
	if err == nil {
		return true
	}
	code := http.StatusServiceUnavailable
	var unknown Unknown
	if errors.As(err, &unknown) && unknown.NothingToSay() {
		code = NothingToSay
	}
	writeText(w, code, err.Error()+"\n")
	return false
}

func errorsText(b *strings.Builder, errs []string) {
	for _, err := range errs {
		fmt.Fprintf(b, "no answer: %s\n", err)
	}
}

// table writes rows in columns.
func table(w io.Writer, rows [][]string) {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, r := range rows {
		fmt.Fprintln(t, strings.Join(r, "\t"))
	}
	t.Flush()
}

// translationText is a group for people: a summary, then a table.
func translationText(b *strings.Builder, g *status.GroupTranslation) {
	counts := map[string]int{}
	rows := [][]string{{"TOPIC", "PARTITION", "OFFSET", "ON TARGET", "OUTCOME", "WHY", "RUN", "OFFSET SYNC", "CHECKPOINT", "AGE", "GROUP THERE", "SYNC"}}
	for i := range g.Partitions {
		p := &g.Partitions[i]
		counts[p.Outcome]++
		run, sync, checkpoint, age := "-", "-", "-", "-"
		if p.Run != nil {
			run = fmt.Sprintf("%d-%d at %d", p.Run.First, p.Run.Last, p.Run.Target)
		}
		if p.Nearest != nil {
			sync = fmt.Sprintf("%d to %d", p.Nearest.Upstream, p.Nearest.Downstream)
		}
		if p.Checkpoint != nil {
			checkpoint = fmt.Sprintf("%d to %d", p.Checkpoint.Upstream, p.Checkpoint.Downstream)
			age = (time.Duration(p.Checkpoint.Age) * time.Second).String()
		}
		rows = append(rows, []string{p.Topic, strconv.Itoa(int(p.Partition)), offset(p.Source), offset(p.Offset), p.Outcome, why(p.Reason),
			run, sync, checkpoint, age, offset(p.Committed), syncText(p, g.SyncGroups)})
	}
	fmt.Fprintf(b, "group %s, flow %s: %s\n", g.Group, g.Flow, outcomes(counts))
	fmt.Fprintf(b, "on the source it is %s, on the target %s; sync_groups is %s\n", state(g.State), state(g.TargetState), map[bool]string{false: "off", true: "on"}[g.SyncGroups])
	table(b, rows)
}

func offset(n int64) string {
	if n < 0 {
		return "-"
	}
	return strconv.FormatInt(n, 10)
}

func state(s string) string {
	if s == "" {
		return "in a state that its brokers do not tell"
	}
	return s
}

// outcomes sums up.
func outcomes(counts map[string]int) string {
	var parts []string
	for _, o := range status.Outcomes {
		if n := counts[o]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, o))
		}
	}
	if len(parts) == 0 {
		return "no offsets of mirrored partitions"
	}
	return strings.Join(parts, ", ")
}

// why is a reason in words.
func why(reason string) string {
	if text, ok := map[string]string{
		"":                        "-",
		status.InexactBeforeFirst: "before what is known",
		status.InexactAhead:       "ahead of what is copied",
		status.InexactUnknown:     "in a span that is not known",
		status.InexactThinned:     "given up for room",
		status.InexactNotKnown:    "nothing is known yet",
		status.InexactFailed:      "the plugin cannot tell now",
		status.InexactPastEnd:     "the plugin's answer is past the end",
	}[reason]; ok {
		return text
	}
	return reason
}

// syncText is what a sync does, or would do.
func syncText(p *status.TranslatedOffset, on bool) string {
	switch p.Would {
	case status.SyncInPlace:
		return "in place"
	case status.SyncCommit:
		if on {
			return "commits " + offset(p.Offset)
		}
		return "would commit " + offset(p.Offset)
	}
	return map[string]string{
		status.HeldNone: "nothing: not translated", status.HeldActive: "nothing: it has members there", status.HeldAhead: "nothing: it is ahead there",
		status.HeldShare: "nothing: a share group there", status.HeldDenied: "nothing: a right is missing", status.HeldUnreadable: "nothing: cannot be read there",
	}[p.Held]
}

// lagText is all groups for people: a summary, then a table.
func lagText(b *strings.Builder, groups []status.GroupLag) {
	counts := map[string]int{}
	var lose, repeat int64
	var unknown int
	atMost := false
	rows := [][]string{{"FLOW", "GROUP", "OFFSETS", "OUTCOME", "LOSES", "REPEATS", "NOT KNOWN", "NOT COPIED", "GOES ON BY"}}
	for i := range groups {
		g := &groups[i]
		counts[g.Outcome]++
		lose, repeat, unknown, atMost = lose+g.Lose, repeat+g.Repeat, unknown+g.Unknown, atMost || g.AtMost
		by := g.By
		if g.Error != "" {
			by = g.Error
		}
		rows = append(rows, []string{g.Flow, g.Group, strconv.Itoa(g.Offsets), g.Outcome, most(g.Lose, g.AtMost), most(g.Repeat, g.AtMost),
			strconv.Itoa(g.Unknown), strconv.FormatInt(g.NotCopied, 10), by})
	}
	if len(groups) == 0 {
		b.WriteString("no group has offsets of mirrored partitions\n")
		return
	}
	fmt.Fprintf(b, "groups: %s; failing over now they would lose %s and repeat %s records", outcomes(counts), most(lose, atMost), most(repeat, atMost))
	if unknown > 0 {
		fmt.Fprintf(b, ", beside %d offsets of which that is not known", unknown)
	}
	b.WriteString("\n")
	table(b, rows)
}

func most(n int64, atMost bool) string {
	if atMost && n > 0 {
		return fmt.Sprintf("≤%d", n)
	}
	return strconv.FormatInt(n, 10)
}
