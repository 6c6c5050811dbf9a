// Bench measures what it costs to mirror, on two real Kafka brokers in Docker:
// the mirror of this module beside MirrorMaker 2 with defaults and tuned, a
// plain loop of a Kafka client, and, as the floor, a program that only reads as
// many bytes from one socket as it writes to another.
//
// The brokers run once; the data of a case is made once. Each subject copies it
// in turn, each in a process of its own, and the whole round is repeated. All it
// starts ends with it, on errors and signals too. Docker has to run on this
// machine, because CPU time and memory are read by process id; the image is made
// by integration/image/build.sh.
//
//	go run ./integration/bench -size 64MiB -runs 1 -cases lz4-16k
//
// What the plugin offset-sync costs is measured in pairs of runs, with it and
// without, whose ratio is shown with its interval of confidence; with -fake on
// brokers in this process, which need no Docker:
//
//	go run ./integration/bench -light 0 -runs 10 -cases lz4-16k,tx-10 -subjects mirror,mirror-off
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"syscall"
	"time"
)

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

// options are the flags.
type options struct {
	size     size
	cases    []benchCase
	subjects []subject
	runs     int
	light    time.Duration
	limit    time.Duration
	image    string
	fake     bool
	absent   string
	json     bool
}

func parse(args []string, stderr io.Writer) (o options, err error) {
	f := flag.NewFlagSet("bench", flag.ContinueOnError)
	f.SetOutput(stderr)
	o.size = 1 << 30
	f.Var(&o.size, "size", "payload of a case, like 64MiB")
	caseNames := f.String("cases", "", "cases by name, with commas; all if empty")
	subjectNames := f.String("subjects", "", "subjects by name, with commas; if empty all but those that only run when named")
	f.IntVar(&o.runs, "runs", 2, "how often each subject runs")
	f.DurationVar(&o.light, "light", 10*time.Second, "how long latency is measured under light load; 0: not at all")
	f.DurationVar(&o.limit, "limit", 5*time.Minute, "a run that takes longer is cut, and measured as far as it came")
	f.StringVar(&o.image, "image", "mirror-test/kafka:4.3.1", "Docker `image` of Kafka")
	f.BoolVar(&o.fake, "fake", false, "brokers in this process instead of Docker, which keep all data in memory")
	f.StringVar(&o.absent, "absent", "", "a `program` of the mirror without plugins, as built before it had them, for the subject "+absentName)
	format := f.String("o", "table", "output: table or json")
	f.Usage = func() {
		fmt.Fprintf(stderr, "usage: bench [flags]\n\n")
		f.PrintDefaults()
		fmt.Fprintf(stderr, "\ncases:\n")
		for _, c := range allCases {
			fmt.Fprintf(stderr, "  %-12s %s\n", c.Name, c.About)
		}
		fmt.Fprintf(stderr, "\nsubjects:\n")
		for _, s := range allSubjects {
			only := ""
			if s.named {
				only = " (only when named)"
			}
			fmt.Fprintf(stderr, "  %-13s %s%s\n", s.name, s.about, only)
		}
	}
	if err := f.Parse(args); err != nil {
		return o, err
	}
	o.json = *format == "json"
	switch {
	case f.NArg() > 0:
		err = fmt.Errorf("%q is no flag: try -help", f.Arg(0))
	case *format != "table" && *format != "json":
		err = fmt.Errorf("-o %s: use table or json", *format)
	case o.runs < 1:
		err = fmt.Errorf("-runs %d: use 1 or more", o.runs)
	}
	if err == nil {
		o.cases, err = pick("case", *caseNames, allCases, func(c benchCase) string { return c.Name })
	}
	if err == nil {
		o.subjects, err = pick("subject", *subjectNames, allSubjects, func(s subject) string { return s.name })
	}
	if err == nil {
		err = o.narrow(*caseNames == "", *subjectNames == "")
	}
	if err != nil {
		fmt.Fprintln(stderr, "bench:", err)
	}
	return o, err
}

// narrow leaves out what was not asked for by name and cannot or need not run, and
// refuses what was and cannot.
func (o *options) narrow(anyCase, anySubject bool) error {
	if anySubject {
		o.subjects = slices.DeleteFunc(slices.Clone(o.subjects), func(s subject) bool { return s.named || o.fake && s.docker })
	}
	if anyCase && o.fake {
		o.cases = slices.DeleteFunc(slices.Clone(o.cases), func(c benchCase) bool { return c.Far != "" })
	}
	for _, c := range o.cases {
		if o.fake && c.Far != "" {
			return fmt.Errorf("-fake: there is no long link for the case %s", c.Name)
		}
	}
	for _, s := range o.subjects {
		switch {
		case o.fake && s.docker:
			return fmt.Errorf("-fake: the subject %s runs in Docker, and with a real broker only", s.name)
		case s.name == absentName && o.absent == "":
			return fmt.Errorf("the subject %s is a program that -absent names", s.name)
		}
	}
	return nil
}

// run is main with its exit code: 0 all was measured, 1 not all, 64 wrong usage.
func run(args []string, stdout, stderr io.Writer) int {
	if len(args) > 0 {
		if child, ok := children[args[0]]; ok {
			fmt.Fprintln(stderr, child(args[1:]))
			return 1
		}
	}
	o, err := parse(args, stderr)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return 0
	case err != nil:
		return 64
	}
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer cancel()
	report, err := measureAll(ctx, o, stderr)
	if err != nil {
		fmt.Fprintln(stderr, "bench:", err)
	}
	if o.json {
		e := json.NewEncoder(stdout)
		e.SetIndent("", "  ")
		err = errors.Join(err, e.Encode(report))
	} else {
		report.print(stdout)
	}
	if err != nil || report.failed() {
		return 1
	}
	return 0
}
