package main

import (
	"bytes"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"go.uber.org/goleak"
)

// TestMain lets the tests' program be a child of itself, as bench is.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 {
		if child, ok := children[os.Args[1]]; ok {
			fmt.Fprintln(os.Stderr, child(os.Args[2:]))
			os.Exit(1)
		}
	}
	goleak.VerifyTestMain(m)
}

func TestFlags(t *testing.T) {
	for _, test := range []struct {
		args  string
		error string // in what is written
	}{
		{args: "-size 64MiB -cases far-target,lz4-16k -subjects mirror,copy -o json"},
		{args: "-cases none", error: `no case "none": there are none-16k,`},
		{args: "-subjects mm3", error: `no subject "mm3": there are copy,`},
		{args: "-size 0", error: "not a size"},
		{args: "-size 12MB", error: "not a size"},
		{args: "-size 9999999999GiB", error: "not a size"},
		{args: "-runs 0", error: "-runs 0"},
		{args: "-o xml", error: "-o xml"},
		{args: "-subjects mirror,mirror-absent", error: "mirror-absent is a program that -absent names"},
		{args: "-fake -subjects mm2", error: "-fake: the subject mm2 runs in Docker"},
		{args: "-fake -cases far-target", error: "-fake: there is no long link for the case far-target"},
		{args: "lz4-16k", error: `"lz4-16k" is no flag`},
	} {
		var stderr bytes.Buffer
		o, err := parse(strings.Fields(test.args), &stderr)
		if test.error == "" {
			if err != nil || o.size != 64<<20 || !o.json || len(o.cases) != 2 || len(o.subjects) != 2 ||
				o.cases[0].Name != "lz4-16k" || o.subjects[1].name != mirrorName {
				t.Errorf("%s: %+v, %v", test.args, o, err)
			}
			continue
		}
		if err == nil || !strings.Contains(stderr.String(), test.error) {
			t.Errorf("%s: %v, and wrote %q, want %q", test.args, err, stderr.String(), test.error)
		}
		if got := run(strings.Fields(test.args), &stderr, &stderr); got != 64 {
			t.Errorf("%s: exit code %d, want 64", test.args, got)
		}
	}
}

func TestSize(t *testing.T) {
	for text, want := range map[string]size{"1": 1, "1000": 1000, "3KiB": 3 << 10, "64MiB": 64 << 20, "2GiB": 2 << 30} {
		var s size
		if err := s.Set(text); err != nil || s != want || s.String() != text {
			t.Errorf("%s: %d, %v, and %q", text, int64(s), err, s.String())
		}
	}
}

func TestCases(t *testing.T) {
	names := map[string]bool{}
	for _, c := range allCases {
		busy := c.busy()
		if len(busy) != c.Busy || busy[0] != 0 || int(busy[len(busy)-1]) >= c.Partitions || len(slices.Compact(busy)) != c.Busy {
			t.Errorf("%s: busy are %v of %d", c.Name, busy, c.Partitions)
		}
		if _, ok := codecs[c.Codec]; !ok || names[c.Name] {
			t.Errorf("%s: codec %s; or there are two of the name", c.Name, c.Codec)
		}
		names[c.Name] = true
	}
}

// What runs only when named does not run else, and fakes leave out what they cannot do.
func TestNarrowing(t *testing.T) {
	for args, want := range map[string]string{
		"":      "none-16k lz4-16k zstd-16k zstd-900k tx-10 wide far-target far-source: copy kgo mm2 mm2-tuned mirror",
		"-fake": "none-16k lz4-16k zstd-16k zstd-900k tx-10 wide: copy kgo mirror",
		"-fake -absent x -cases tx-10 -subjects mirror,mirror-absent,mirror-off": "tx-10: mirror mirror-off mirror-absent",
	} {
		o, err := parse(strings.Fields(args), t.Output())
		var cases, subjects []string
		for _, c := range o.cases {
			cases = append(cases, c.Name)
		}
		for _, s := range o.subjects {
			subjects = append(subjects, s.name)
		}
		if got := strings.Join(cases, " ") + ": " + strings.Join(subjects, " "); err != nil || got != want {
			t.Errorf("%s: %s, %v, want %s", args, got, err, want)
		}
	}
}
