package integration

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"

	"mirror/integration/contract"
	"mirror/integration/kafkatest"
)

// place is a partition, by its name at the source.
type place struct {
	topic     string
	partition int32
}

// reading is what one consumer of FailOver.java did.
type reading struct {
	at   map[place]int64    // where it went on, or what it committed in the end; -1: nothing
	read map[place][]string // the digests of the records, in order
}

// consumers runs FailOver.java on a cluster, where topics are called as at the source,
// with a prefix.
func consumers(t testing.TB, on *kafkatest.Cluster, what, prefix string, topics []string, jobs ...string) []reading {
	t.Helper()
	var names []string
	for _, topic := range topics {
		names = append(names, prefix+topic)
	}
	out := on.Nodes[0].Java(t, "testdata/FailOver.java", slices.Concat([]string{what, on.Internal(), strings.Join(names, ",")}, jobs)...)
	all := make([]reading, len(jobs))
	for i := range all {
		all[i] = reading{map[place]int64{}, map[place][]string{}}
	}
	for line := range strings.Lines(out) {
		f := strings.Fields(line)
		number := func(i int) int64 {
			n, err := strconv.ParseInt(f[i], 10, 64)
			if err != nil {
				t.Fatalf("FailOver.java prints %q: %v", line, err)
			}
			return n
		}
		r, p := all[number(0)], place{topics[number(2)], int32(number(3))}
		switch f[1] {
		case "at":
			r.at[p] = number(4)
		case "read":
			r.read[p] = append(r.read[p], f[4])
		}
	}
	return all
}

// moved compares what a group has read at both clusters with what a consumer has that
// stayed at the source.
func moved(t testing.TB, stayed, before, after reading) (m contract.Moved) {
	t.Helper()
	for p, want := range stayed.read {
		got := slices.Concat(before.read[p], after.read[p])
		if slices.Equal(got, want) {
			continue
		}
		times := map[string]int{}
		for _, r := range got {
			times[r]++
		}
		for _, r := range want {
			switch n := times[r]; {
			case n == 0:
				m.Lost++
			default:
				m.Repeated += n - 1
			}
			delete(times, r)
		}
		for _, n := range times { // nobody knows these
			m.Repeated += n
		}
		if m == (contract.Moved{}) {
			t.Errorf("%s/%d: the records come in another order", p.topic, p.partition)
		}
	}
	return m
}

// What a group has lost and read twice is found, wherever it is.
func TestMovedReadings(t *testing.T) {
	one, two := place{"t", 0}, place{"t", 1}
	read := func(a, b string) reading {
		return reading{read: map[place][]string{one: strings.Split(a, ""), two: strings.Split(b, "")}}
	}
	stayed := read("abcdef", "ghi")
	for _, c := range []struct {
		before, after reading
		want          contract.Moved
	}{
		{read("abc", "g"), read("def", "hi"), contract.Moved{}},
		{read("", ""), read("abcdef", "ghi"), contract.Moved{}},
		{read("abcdef", "ghi"), read("", ""), contract.Moved{}},
		{read("abc", "g"), read("ef", "i"), contract.Moved{Lost: 2}},
		{read("abc", "g"), read("bcdef", "ghi"), contract.Moved{Repeated: 3}},
		{read("abc", "g"), read("cef", "hi"), contract.Moved{Lost: 1, Repeated: 1}},
		{read("abc", "g"), read("defx", "hi"), contract.Moved{Repeated: 1}},
		{read("abc", "g"), read("def", "h"), contract.Moved{Lost: 1}},
	} {
		if got := moved(t, stayed, c.before, c.after); got != c.want {
			t.Errorf("%v, then %v: %+v, want %+v", c.before.read, c.after.read, got, c.want)
		}
	}
}

// stopped is a group of Java consumers that has stopped somewhere.
type stopped struct {
	name, protocol string  // as FailOver.java has it
	part           float64 // of each partition's offsets, that it has read
	read           reading
}

// streams says that it is a Kafka Streams application's.
func (g stopped) streams() bool { return strings.HasPrefix(g.protocol, "streams/") }

// stops are where groups stop: at the very start, a few records later, in the middle,
// at the head. A Streams application that has read nothing commits nothing.
var stops = []struct {
	part      float64
	protocols []string
}{
	{0, []string{"classic", "consumer"}},
	{0.001, []string{"classic", "consumer"}},
	{0.3, []string{"classic", "consumer", "streams/at_least_once"}},
	{0.7, []string{"classic", "consumer", "streams/exactly_once_v2"}},
	{1, []string{"classic", "consumer", "streams/at_least_once"}},
}

// stopGroups has groups of all protocols of consumer groups read a part of the topics
// at the source.
func (k *kafka) stopGroups(e *contract.Env, topics []string) (groups []stopped) {
	e.Helper()
	var jobs []string
	for i, stop := range stops {
		for _, protocol := range stop.protocols {
			typ, _, _ := strings.Cut(protocol, "/")
			g := stopped{name: e.Topic(fmt.Sprintf("%s-%d", typ, i)), protocol: protocol, part: stop.part}
			groups = append(groups, g)
			jobs = append(jobs, fmt.Sprintf("%s %s %g", g.name, g.protocol, g.part))
		}
	}
	for i, r := range consumers(e, k.source, "stop", "", topics, jobs...) {
		groups[i].read = r
	}
	k.wantTypes(e, k.source, groups)
	last := topics[len(topics)-1]
	end := e.Ends(e.Source, last)[0]
	for _, g := range groups {
		at := g.read.at[place{last, 0}]
		if read := len(g.read.read) > 0; read != (g.part > 0) || (at == end) != (g.part == 1) {
			e.Errorf("group %s, which was to read %g, is at %d of %s, which ends at %d", g.name, g.part, at, last, end)
		}
	}
	return groups
}

// wantTypes checks that the groups are on a cluster what they say, and have no members.
func (k *kafka) wantTypes(e *contract.Env, on *kafkatest.Cluster, groups []stopped) {
	e.Helper()
	listed, err := kadm.NewClient(on.Client(e)).ListGroups(e.Context())
	if err != nil {
		e.Fatal(err)
	}
	for _, g := range groups {
		typ, _, _ := strings.Cut(g.protocol, "/")
		if got := listed[g.name]; !strings.EqualFold(got.GroupType, typ) || got.State != "Empty" {
			e.Errorf("group %s is %s of type %s, want Empty of type %s", g.name, got.State, got.GroupType, typ)
		}
	}
}

// stayed is what a consumer has read that stays at the source: everything, with no two
// records alike.
func (k *kafka) stayed(e *contract.Env, topics []string) reading {
	e.Helper()
	r := consumers(e, k.source, "go-on", "", topics, e.Topic("stayed")+" classic offsets")[0]
	for p, records := range r.read {
		seen := map[string]bool{}
		for _, d := range records {
			if seen[d] {
				e.Fatalf("%s/%d has records that are alike: nothing can be said of its copy", p.topic, p.partition)
			}
			seen[d] = true
		}
	}
	return r
}

// way is one of those in which a group can fail over.
type way struct {
	name string
	how  func(stopped) string // for FailOver.java; "": that group cannot
}

// wantGoOn has the groups go on at the target, in each of the ways, with nothing lost and
// nothing twice beside who stayed.
func (k *kafka) wantGoOn(e *contract.Env, prefix string, topics []string, groups []stopped, stayed reading, ways ...way) {
	e.Helper()
	var jobs []string
	type going struct {
		stopped
		way string
	}
	var all []going
	for _, w := range ways {
		for _, g := range groups {
			if how := w.how(g); how != "" {
				jobs = append(jobs, fmt.Sprintf("%s %s %s", g.name, g.protocol, how))
				all = append(all, going{g, w.name})
			}
		}
	}
	for i, r := range consumers(e, k.target, "go-on", prefix, topics, jobs...) {
		g := all[i]
		if m := moved(e, stayed, g.read, r); m != (contract.Moved{}) {
			e.Errorf("group %s, which had read %g, goes on %s: %v", g.name, g.part, g.way, m)
		}
	}
}

// runs is how many runs of offsets lie between a group that has hardly begun and the
// head.
const runs = 101_000

// groupsFailOver has groups of Java consumers stop at the source and go on at the
// target, while the mirror is killed before and after: each reads on with the record
// after the last it has read.
func (k *kafka) groupsFailOver(e *contract.Env) {
	flow := e.SyncGroups()
	flow.From = "fail"
	topics, more := e.GroupTopics(runs)
	p := e.Launch(flow)
	for range contract.Kills(1) {
		p.Kill()
		more()
		p = e.Launch(flow)
	}
	p.CaughtUp(topics...)
	if n := p.Copied(topics[len(topics)-1])[0].Runs(); n < runs {
		e.Fatalf("the last topic has %d runs of offsets, want %d", n, runs)
	}
	groups := k.stopGroups(e, topics)
	p.Kill()
	p = e.Launch(flow)
	var names []string
	for _, g := range groups {
		names = append(names, g.name)
	}
	p.GroupsFollow(topics, names)
	more() // so that those at the head have something to go on with
	p.CaughtUp(topics...)
	copied := map[string][]contract.Copied{}
	for _, topic := range topics {
		copied[topic] = p.Copied(topic)
	}
	stayed := k.stayed(e, topics)
	k.wantGoOn(e, p.TargetName(""), topics, groups, stayed,
		way{"where the group is on the target", func(stopped) string { return "group" }},
		way{"where RemoteClusterUtils says", onlyConsumers(func(stopped) string { return "translated " + flow.From })},
		way{"where mirror translate says", onlyConsumers(func(g stopped) string {
			var offsets []string
			for _, o := range p.Translate(g.name).Partitions {
				c, r := copied[o.Topic][o.Partition], o.Run
				if r == nil {
					if !c.Empty() {
						e.Errorf("group %s, %s/%d: no run is told that %d becomes %d by", g.name, o.Topic, o.Partition, o.Source, o.Offset)
					}
				} else if wrong := c.Misplaced(r.First, r.Last, r.Target); wrong != "" {
					e.Errorf("group %s, %s/%d: of the run that %d becomes %d by, %+v, %s", g.name, o.Topic, o.Partition, o.Source, o.Offset, *r, wrong)
				}
				offsets = append(offsets, fmt.Sprintf("%s/%d=%d", o.Target, o.Partition, o.Offset))
			}
			return "offsets " + strings.Join(offsets, ",")
		})})
	k.streamsComeBack(e, p, topics, groups, more)
}

// onlyConsumers is a way that Streams applications do not have: they go on where their group is.
func onlyConsumers(how func(stopped) string) func(stopped) string {
	return func(g stopped) string {
		if g.streams() {
			return ""
		}
		return how(g)
	}
}

// streamsComeBack has the Streams applications, which have gone on at the target and so
// committed there, go on at the source again: what they have at the target stays until
// they are further at the source, and follows them then.
func (k *kafka) streamsComeBack(e *contract.Env, p *contract.Process, topics []string, groups []stopped, more func()) {
	e.Helper()
	var jobs, names []string
	groups = slices.DeleteFunc(slices.Clone(groups), func(g stopped) bool { return !g.streams() })
	for _, g := range groups {
		jobs, names = append(jobs, fmt.Sprintf("%s %s group", g.name, g.protocol)), append(names, g.name)
	}
	k.wantTypes(e, k.target, groups)
	had := make([]kadm.OffsetResponses, len(groups))
	for i, g := range groups {
		had[i] = e.GroupOffsets(e.Target, g.name)
	}
	e.CheckpointRound(p.From, topics[len(topics)-1])
	for i, g := range groups {
		if has := e.GroupOffsets(e.Target, g.name); !reflect.DeepEqual(has, had[i]) {
			e.Errorf("group %s had committed %v at the target, and has %v", g.name, had[i], has)
		}
	}
	more()
	p.CaughtUp(topics...)
	consumers(e, k.source, "go-on", "", topics, jobs...)
	p.GroupsFollow(topics[len(topics)-3:], names) // each partition of these has more
}
