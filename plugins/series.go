package plugins

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"mirror/abi"
)

// Series is a metric that a plugin has defined.
type Series struct {
	Plugin  string
	Name    string
	Counter bool    // else a gauge
	Labels  []Label // of the plugin's own
	Lane    int     // of a gauge; a counter is the sum over the lanes
	Value   int64
}

// Label of a series.
type Label struct{ Key, Value string }

// board has the metrics of all instances of a plugin.
type board struct {
	mu    sync.Mutex
	ids   map[string]int32 // by the text that defined it
	all   []*metric
	names map[string]*metric // the first of each name, which sets type and keys
}

type metric struct {
	name    string
	counter bool
	labels  []Label
	sum     int64
	lanes   map[int]int64
}

func newBoard() *board {
	return &board{ids: map[string]int32{}, names: map[string]*metric{}}
}

var (
	metricName = regexp.MustCompile(`^[a-z][a-z0-9_]*$`)
	taken      = map[string]bool{"flow": true, "plugin": true, "lane": true}
)

// define gives the id of a series, or a negative status and why.
func (b *board) define(kind int32, text string) (int32, abi.Status, string) {
	if kind != abi.MetricCounter && kind != abi.MetricGauge {
		return 0, abi.BadInput, fmt.Sprintf("a metric of type %d", kind)
	}
	m := &metric{counter: kind == abi.MetricCounter, lanes: map[int]int64{}}
	parts := strings.Split(text, "\x00")
	m.name = parts[0]
	if len(parts)%2 == 0 || len(parts) > 1+2*abi.MaxMetricPairs {
		return 0, abi.BadInput, fmt.Sprintf("a metric %.40q: a name and up to %d pairs belong there", text, abi.MaxMetricPairs)
	}
	for i := 1; i < len(parts); i += 2 {
		m.labels = append(m.labels, Label{parts[i], parts[i+1]})
	}
	slices.SortFunc(m.labels, func(a, b Label) int { return strings.Compare(a.Key, b.Key) })
	if why := m.wrong(); why != "" {
		return 0, abi.BadInput, why
	}
	key := m.name
	for _, l := range m.labels {
		key += "\x00" + l.Key + "\x00" + l.Value
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if id, ok := b.ids[key]; ok && b.all[id].counter == m.counter {
		return id, abi.OK, ""
	}
	if first := b.names[m.name]; first != nil && (first.counter != m.counter || !slices.EqualFunc(first.labels, m.labels, func(a, b Label) bool { return a.Key == b.Key })) {
		return 0, abi.BadInput, fmt.Sprintf("the metric %s was defined with another type or other labels", m.name)
	}
	if len(b.all) >= maxSeries {
		return 0, abi.Limit, fmt.Sprintf("%d metric series are the limit", maxSeries)
	}
	id := int32(len(b.all))
	b.ids[key] = id
	b.all = append(b.all, m)
	if b.names[m.name] == nil {
		b.names[m.name] = m
	}
	return id, abi.OK, ""
}

// wrong says what is wrong with the names, if anything.
func (m *metric) wrong() string {
	if len(m.name) > abi.MaxMetricName || !metricName.MatchString(m.name) {
		return fmt.Sprintf("a metric cannot be called %.70q", m.name)
	}
	last := ""
	for _, l := range m.labels {
		if len(l.Key) > abi.MaxMetricName || !metricName.MatchString(l.Key) || taken[l.Key] || l.Key == last {
			return fmt.Sprintf("a label of the metric %s cannot be called %.70q", m.name, l.Key)
		}
		if len(l.Value) > abi.MaxMetricValue || !utf8.ValidString(l.Value) {
			return fmt.Sprintf("a value of %d bytes, or not UTF-8, for the label %s of the metric %s", len(l.Value), l.Key, m.name)
		}
		last = l.Key
	}
	return ""
}

// change adds to a series or sets it.
func (b *board) change(lane int, id, op int32, v int64) abi.Status {
	b.mu.Lock()
	defer b.mu.Unlock()
	if id < 0 || int(id) >= len(b.all) {
		return abi.NotFound
	}
	m := b.all[id]
	switch {
	case op == abi.MetricAdd && m.counter && v >= 0:
		m.sum += v
	case op == abi.MetricAdd && !m.counter:
		m.lanes[lane] += v
	case op == abi.MetricSet && !m.counter:
		m.lanes[lane] = v
	default:
		return abi.BadInput
	}
	return abi.OK
}

// leave forgets the gauges of a lane.
func (b *board) leave(lane int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, m := range b.all {
		delete(m.lanes, lane)
	}
}

func (b *board) series(plugin string) (all []Series) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, m := range b.all {
		s := Series{Plugin: plugin, Name: m.name, Counter: m.counter, Labels: m.labels, Value: m.sum}
		if m.counter {
			all = append(all, s)
			continue
		}
		for _, lane := range slices.Sorted(maps.Keys(m.lanes)) {
			s.Lane, s.Value = lane, m.lanes[lane]
			all = append(all, s)
		}
	}
	return all
}
