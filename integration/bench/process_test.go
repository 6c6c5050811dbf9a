package main

import (
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func TestParsePeak(t *testing.T) {
	for _, test := range []struct {
		status string
		want   int64 // -1: an error
	}{
		{"Name:\tmirror\nVmPeak:\t 1236 kB\nVmHWM:\t    4096 kB\nVmRSS:\t    12 kB\n", 4 << 20},
		{"VmHWM:\t0 kB", 0},
		{"Name:\tmirror\nState:\tZ (zombie)\n", -1},
		{"VmHWM:\t12 MB\n", -1},
		{"VmHWM:\t", -1},
		{"", -1},
	} {
		got, err := parsePeak([]byte(test.status))
		if (err != nil) != (test.want < 0) || err == nil && got != test.want {
			t.Errorf("%q: %d, %v, want %d", test.status, got, err, test.want)
		}
	}
}

// A process's clock by its id is the clock that it has for itself.
func TestCPUTime(t *testing.T) {
	own := func() time.Duration {
		var at unix.Timespec
		if err := unix.ClockGettime(unix.CLOCK_PROCESS_CPUTIME_ID, &at); err != nil {
			t.Fatal(err)
		}
		return time.Duration(at.Nano())
	}
	before := own()
	got, err := cpuTime(os.Getpid())
	after := own()
	if err != nil || got < before || got > after {
		t.Errorf("%v, %v, want %v to %v", got, err, before, after)
	}
}

func TestProcess(t *testing.T) {
	p, err := launch("sh", "-c", "echo first; yes | head -c 5000; echo; echo last >&2; exec sleep 1000")
	if err != nil {
		t.Fatal(err)
	}
	defer p.stop()
	if peak, err := peakMemory(p.pid()); err != nil || peak <= 0 {
		t.Errorf("peak memory: %d, %v", peak, err)
	}
	err = await(t.Context(), time.Millisecond, func() error {
		if !strings.HasSuffix(p.log(), "last\n") {
			return os.ErrNotExist
		}
		return nil
	})
	if err != nil || len(p.log()) > 4<<10 || strings.Contains(p.log(), "first") {
		t.Errorf("log of %d bytes, %v: %s", len(p.log()), err, p.log())
	}
	p.stop()
	if _, err := cpuTime(p.pid()); err == nil {
		t.Error("a process that has ended has a clock")
	}
}
