package demo

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"mirror/sidecar/compare"
	"mirror/sidecar/status"
)

var update = flag.Bool("update", false, "write the golden files anew")

func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("got\n%s\nwant (go test -update rewrites it)\n%s", got, want)
	}
}

// samples are two seconds apart, with topics in every state.
func samples() (before, now sample) {
	at := time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)
	partition := func(topic string, number int32, state status.State, records, bytes uint64, lag int64) status.Partition {
		return status.Partition{Topic: topic, Partition: number, State: state, Records: records, Bytes: bytes, Lag: lag,
			Batches: map[string]uint64{status.PathRaw: records / 100, status.PathMerged: 3, status.PathReencoded: 2, status.PathSkipped: 1}}
	}
	before = sample{at: at, usage: usage{cpuSeconds: 1, memory: 100e6}, report: status.Report{Flows: []status.Flow{{
		Partitions: []status.Partition{partition("orders", 0, status.Running, 1000, 400_000, 5)},
	}}}}
	now = sample{at: at.Add(2 * time.Second), usage: usage{cpuSeconds: 2.5, memory: 123.4e6},
		progress: map[string]compare.Progress{"orders": {Source: 7200, Target: 7000}, "clicks": {Target: 5}},
		report: status.Report{Flows: []status.Flow{{
			Topics: []status.Topic{{Source: "payments"}},
			Partitions: []status.Partition{
				partition("orders", 0, status.Running, 5000, 2_400_000, 7),
				partition("orders", 1, status.Running, 3469, 345_678, 1200),
				partition("clicks", 0, status.Running, 5, 50, 0),
				partition("clicks", 1, status.Stalled, 0, 0, 9),
				partition("customers", 0, status.Starting, 0, 0, 0),
				partition("customers", 1, status.Running, 0, 0, 0),
			},
		}}}}
	return before, now
}

// failedOver is a group that has gone on at the right record, but for one partition.
func failedOver(wrong int64) moved {
	return moved{at: to, partitions: []movedPartition{
		{partition{"orders", 0}, groupPartition{before: 1200, committed: 1200, from: 1200 + wrong, next: 3000, after: 1800 - wrong}},
		{partition{"payments", 2}, groupPartition{before: 40, committed: 57, from: 40, next: 95, after: 55}},
	}}
}

func TestFrame(t *testing.T) {
	before, now := samples()
	now.group = failedOver(0)
	plain := frame(style{}, before, now, 12*time.Second, "")
	golden(t, "frame.txt", plain)
	golden(t, "line.txt", progressLine(before, now, 12*time.Second, "the traffic has stopped"))

	// Marks must not change what is read, nor where it stands.
	coloured := frame(style{on: true}, before, now, 12*time.Second, "note")
	unmarked := strings.NewReplacer("\x1b[1m", "", "\x1b[32m", "", "\x1b[31;1m", "", "\x1b[2m", "", "\x1b[0m", "").Replace(coloured)
	if unmarked != plain+"note\n" {
		t.Errorf("got\n%s", unmarked)
	}
	if !strings.Contains(coloured, "\x1b[31;1mstalled\x1b[0m") || !strings.Contains(coloured, "\x1b[32mall equal\x1b[0m") {
		t.Errorf("%q", coloured)
	}
	now.progress["orders"] = compare.Progress{Target: 7000, Different: 1234}
	if text := frame(style{}, before, now, 0, ""); !strings.Contains(text, "7,005 records compared, 1,234 differ\n") {
		t.Error(text)
	}
}

func TestScreen(t *testing.T) {
	var out bytes.Buffer
	live := screen{out: &out, live: true}
	live.show("a\nb\n")
	live.show("c\n")
	live.print("kept\n")
	live.show("d\n")
	if want := "a\nb\n\x1b[2A\x1b[Jc\nkept\nd\n"; out.String() != want {
		t.Errorf("%q, want %q", out.String(), want)
	}
	out.Reset()
	plain := screen{out: &out}
	plain.show("a\n")
	plain.show("b\n")
	if want := "a\nb\n"; out.String() != want {
		t.Errorf("%q, want %q", out.String(), want)
	}
}

// report has one partition a topic, each of 100 records.
func report(change func(r *compare.Result)) compare.Report {
	var all compare.Report
	for _, t := range topics {
		r := compare.Result{Topic: t.name, Compacted: t.compacted, SourceRecords: 1000, TargetRecords: 1000, Equal: 1000}
		if t.compacted {
			r.SourceRecords, r.Equal = 990, 502
		}
		change(&r)
		all = append(all, r)
	}
	return all
}

func TestSummary(t *testing.T) {
	_, now := samples()
	o := outcome{report: report(func(*compare.Result) {}), last: now, writing: 10 * time.Second, ran: 12 * time.Second,
		patience: 30 * time.Second, caughtUp: true, cpuSeconds: 6, peakMemory: 150e6, commits: 30, abortions: 10, aborted: 2400, group: failedOver(0)}
	golden(t, "equal.txt", summary(style{}, o))

	o.report = report(func(r *compare.Result) {
		if r.Topic == "orders" {
			r.Equal, r.Different = 999, 1
			r.Differences = []compare.Difference{{Kind: compare.Missing, SourceOffset: 7, TargetOffset: -1}}
		}
	})
	o.group = failedOver(-3)
	golden(t, "different.txt", summary(style{}, o))

	for want, change := range map[string]func(r *compare.Result){
		"9,000 of 8,990 records are not on the target as they are on the source. The mirror was given 30s to catch up.\n": func(r *compare.Result) { r.Different = 1000 },
		"The comparison is incomplete, so nothing is proven. The mirror was given 30s to catch up.\n":                     func(r *compare.Result) { r.Incomplete = "broker is gone" },
	} {
		o.caughtUp = false
		o.report = report(change)
		if text := summary(style{}, o); !strings.HasPrefix(text, want) {
			t.Errorf("want %q in\n%s", want, text)
		}
	}
}

func TestCount(t *testing.T) {
	for n, want := range map[int]string{0: "0", 7: "7", 999: "999", 1000: "1,000", 123456: "123,456", 1234567: "1,234,567", -1234: "-1,234"} {
		if got := count(n); got != want {
			t.Errorf("%d: %s, want %s", n, got, want)
		}
	}
}
