package contract

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
)

// holding is what a process holds.
type holding struct {
	goroutines, files int
	memory            int64 // resident, in bytes
	code              int64 // of compiled plugins, in bytes
}

// growth is how much more memory a process may have later: much less than the
// instances and the code of a plugin that is not given back with each reload.
const growth = 32 << 20

// holds asks the process and /proc (see proc(5)).
func (p *Process) holds() (h holding) {
	p.e.Helper()
	proc := fmt.Sprintf("/proc/%d/", p.PID())
	files, err := os.ReadDir(proc + "fd")
	if err != nil {
		p.e.Fatal(err)
	}
	h.files = len(files)
	h.memory = p.kilobytes("VmRSS:") << 10
	maps, err := os.ReadFile(proc + "maps")
	if err != nil {
		p.e.Fatal(err)
	}
	for line := range strings.Lines(string(maps)) {
		// What is executable and of no file is what wazero has compiled.
		var from, to int64
		if words := strings.Fields(line); len(words) == 5 && strings.Contains(words[1], "x") {
			if _, err := fmt.Sscanf(words[0], "%x-%x", &from, &to); err != nil {
				p.e.Fatalf("%q: %v", line, err)
			}
			h.code += to - from
		}
	}
	_, metrics, err := p.Get("/metrics")
	if err != nil {
		p.e.Fatal(err)
	}
	for line := range bytes.Lines(metrics) {
		if n, ok := bytes.CutPrefix(bytes.TrimSpace(line), []byte("go_goroutines ")); ok {
			if h.goroutines, err = strconv.Atoi(string(n)); err != nil {
				p.e.Fatal(err)
			}
		}
	}
	if h.goroutines == 0 {
		p.e.Fatal("no go_goroutines in the metrics")
	}
	return h
}

// kilobytes is a number of the process's status in /proc.
func (p *Process) kilobytes(name string) (n int64) {
	p.e.Helper()
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.PID()))
	if err != nil {
		p.e.Fatal(err)
	}
	for line := range strings.Lines(string(b)) {
		if _, err := fmt.Sscanf(line, name+" %d kB", &n); err == nil {
			return n
		}
	}
	p.e.Fatalf("no %s in\n%s", name, b)
	return 0
}
