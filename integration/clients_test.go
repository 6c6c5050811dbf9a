package integration

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"mirror/integration/contract"
)

// clientScenarios have other people's clients write the source and read both sides.
func (k *kafka) clientScenarios() []contract.Scenario {
	return []contract.Scenario{
		{Name: "java", Real: true, Run: k.javaClients},
		{Name: "kcat", Real: true, Run: k.librdkafka},
		{Name: "mirrormaker", Real: true, Limit: 3 * time.Minute, Run: k.handOver},
		{Name: "differential", Real: true, Limit: 3 * time.Minute, Run: k.sameAsMirrorMaker},
		{Name: "beside-syncs", Real: true, Limit: 3 * time.Minute, Run: k.syncsBesideMirrorMaker},
		{Name: "read-by-mirrormaker", Real: true, Limit: 3 * time.Minute, Run: k.mirrorMakerReadsOurs},
		{Name: "failover", Real: true, Limit: 4 * time.Minute, Run: k.groupsFailOver},
		{Name: "loading", Real: true, Limit: 10 * time.Minute, Run: k.loading},
		{Name: "syncs", Real: true, Run: k.syncRule},
	}
}

func (k *kafka) javaClients(e *contract.Env) {
	topic := e.Topic("t")
	e.Create(k.pair.Source, topic, 3)
	m := e.Start()
	k.source.Nodes[0].Java(e, "testdata/Clients.java", "produce", k.source.Internal(), topic)
	e.Settled(topic)
	m.CaughtUp(topic)
	m.WantSame(topic)
	want := k.source.Nodes[0].Java(e, "testdata/Clients.java", "dump", k.source.Internal(), topic)
	got := k.target.Nodes[0].Java(e, "testdata/Clients.java", "dump", k.target.Internal(), m.TargetName(topic))
	// Five codecs, each with 600 records and three committed transactions of 20.
	if n := strings.Count(want, "\n"); n != 5*(600+3*20) {
		e.Fatalf("a Java consumer reads %d records from the source, want 3300", n)
	}
	wantLines(e, "a Java consumer", got, want)
}

// wantLines compares what a tool printed of the target with what it printed of
// the source.
func wantLines(t testing.TB, who, target, source string) {
	t.Helper()
	got, want := strings.Split(target, "\n"), strings.Split(source, "\n")
	for i := range max(len(got), len(want)) {
		line := func(all []string) string {
			if i < len(all) {
				return all[i]
			}
			return "nothing"
		}
		if line(got) != line(want) {
			t.Fatalf("%s reads, in line %d, %q from the target and %q from the source", who, i+1, line(got), line(want))
		}
	}
}

func (k *kafka) librdkafka(e *contract.Env) {
	kcat, err := exec.LookPath("kcat")
	if err != nil {
		if os.Getenv("CI") == "true" {
			e.Fatal("no kcat: install the package kcat")
		}
		e.Skip("no kcat: install the package kcat (Debian) to try librdkafka's batches")
	}
	run := func(stdin string, args ...string) string {
		e.Helper()
		cmd := exec.Command(kcat, args...)
		cmd.Stdin = strings.NewReader(stdin)
		var stderr strings.Builder
		cmd.Stderr = &stderr
		out, err := cmd.Output()
		if err != nil {
			e.Fatalf("kcat %s: %v\n%s", strings.Join(args, " "), err, stderr.String())
		}
		return string(out)
	}
	topic := e.Topic("t")
	codecs := []string{"none", "gzip", "snappy", "lz4", "zstd"}
	e.Create(k.pair.Source, topic, int32(len(codecs)))
	source, target := strings.Join(k.source.Bootstrap(), ","), strings.Join(k.target.Bootstrap(), ",")
	for p, codec := range codecs {
		var lines strings.Builder
		for n := range 500 {
			fmt.Fprintf(&lines, "key-%d:value %d of %s, %s\n", n, n, codec, strings.Repeat("x", n%100))
		}
		lines.WriteString("tombstone:\n")
		run(lines.String(), "-P", "-b", source, "-t", topic, "-p", fmt.Sprint(p), "-z", codec, "-K", ":", "-Z", "-H", "by=kcat", "-X", "linger.ms=20")
	}
	m := e.Start()
	m.CaughtUp(topic)
	m.WantSame(topic)
	for p := range codecs {
		read := func(broker, topic string) string {
			return run("", "-C", "-b", broker, "-t", topic, "-p", fmt.Sprint(p), "-o", "beginning", "-e", "-q", "-f", "%o %T %h %K:%k %S:%s\n")
		}
		want := read(source, topic)
		if n := strings.Count(want, "\n"); n != 501 {
			e.Fatalf("kcat reads %d records from the source, want 501", n)
		}
		wantLines(e, "kcat", read(target, m.TargetName(topic)), want)
	}
}
