package policy

import (
	"bufio"
	"encoding/json"
	"os"
	"regexp"
	"strings"
	"testing"

	"mirror/sidecar/config"
)

// vector is a line of testdata/vectors.jsonl: a flow, and after it what
// MirrorMaker's classes say of topics in it (see testdata/Vectors.java).
type vector struct {
	Flow, Separator, From, To string
	Topics, Exclude           *string // comma-separated; nil: the defaults

	Topic, Target, Original              string
	Source, Upstream                     *string
	Internal, Heartbeats, Cycle, Mirrors bool
}

func TestVectorsOfMirrorMaker(t *testing.T) {
	file, err := os.Open("testdata/vectors.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	var p *Policy
	var filter Filter
	var flow vector
	flows, topics := 0, 0
	for in := bufio.NewScanner(file); in.Scan(); {
		var v vector
		if err := json.Unmarshal(in.Bytes(), &v); err != nil {
			t.Fatalf("%s: %v", in.Text(), err)
		}
		if v.Flow != "" {
			flows++
			flow = v
			p = New(config.Naming{Policy: v.Flow, Separator: v.Separator}, v.From, v.To)
			filter = NewFilter(patterns(t, v.Topics, `.*`), patterns(t, v.Exclude, `mm2.*\.internal,.*\.replica,__.*`))
			continue
		}
		topics++
		got := vector{
			Topic: v.Topic, Target: p.Target(v.Topic), Original: p.originalTopic(v.Topic),
			Internal: p.IsInternal(v.Topic), Heartbeats: p.IsHeartbeats(v.Topic),
			Cycle: p.IsCycle(v.Topic), Mirrors: p.Mirrors(filter, v.Topic),
		}
		if s, ok := p.TopicSource(v.Topic); ok {
			got.Source = &s
		}
		if s, ok := p.UpstreamTopic(v.Topic); ok {
			got.Upstream = &s
		}
		g, _ := json.Marshal(got)
		w, _ := json.Marshal(v)
		if string(g) != string(w) {
			t.Errorf("%s policy, separator %q, %s->%s:\n got %s\nwant %s", flow.Flow, flow.Separator, flow.From, flow.To, g, w)
		}
	}
	if flows != 6 || topics < 1000 {
		t.Fatalf("read %d flows and %d topics", flows, topics)
	}
}

func patterns(t *testing.T, list *string, otherwise string) []*regexp.Regexp {
	t.Helper()
	if list == nil {
		list = &otherwise
	}
	var out []*regexp.Regexp
	for source := range strings.SplitSeq(*list, ",") {
		if source == "" {
			continue
		}
		re, err := config.Pattern(source)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, re)
	}
	return out
}
