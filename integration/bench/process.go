package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// cpuTime is what all threads of a process, ended ones too, have used so far, to
// the nanosecond. It is the clock of clock_getcpuclockid(3), whose number has the
// process id's complement and, in three bits, 2 for the scheduler's account.
func cpuTime(pid int) (time.Duration, error) {
	var t unix.Timespec
	if err := unix.ClockGettime(int32(^pid<<3|2), &t); err != nil {
		return 0, fmt.Errorf("CPU time of process %d: %w (has it ended?)", pid, err)
	}
	return time.Duration(t.Nano()), nil
}

// peakMemory is the most memory that a process has had resident, in bytes.
func peakMemory(pid int) (int64, error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, err
	}
	return parsePeak(b)
}

// parsePeak finds VmHWM in /proc/PID/status, see proc_pid_status(5).
func parsePeak(status []byte) (int64, error) {
	for line := range bytes.Lines(status) {
		if rest, ok := bytes.CutPrefix(line, []byte("VmHWM:")); ok {
			digits, ok := bytes.CutSuffix(bytes.TrimSpace(rest), []byte(" kB"))
			n, err := strconv.ParseInt(string(digits), 10, 64)
			if !ok || err != nil {
				return 0, fmt.Errorf("not a size: %q", line)
			}
			return n << 10, nil
		}
	}
	return 0, errors.New("no VmHWM: the process has ended")
}

// process is a child.
type process struct {
	cmd    *exec.Cmd
	output tail
	exited chan struct{}
}

// launch starts a child that a terminal's Ctrl-C does not reach, and that does
// not outlive this process.
func launch(program string, args ...string) (*process, error) {
	p := &process{cmd: exec.Command(program, args...), exited: make(chan struct{})}
	p.cmd.Stdout, p.cmd.Stderr = &p.output, &p.output
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		_ = p.cmd.Wait() // what it wrote says more
		close(p.exited)
	}()
	return p, nil
}

func (p *process) pid() int { return p.cmd.Process.Pid }

// stop asks the process to end, insists after a while, and waits.
func (p *process) stop() {
	_ = p.cmd.Process.Signal(syscall.SIGTERM) // gone already: as it shall be
	select {
	case <-p.exited:
	case <-time.After(15 * time.Second):
		_ = p.cmd.Process.Kill()
		<-p.exited
	}
}

// tail keeps the end of what is written.
type tail struct {
	mu sync.Mutex
	b  []byte
}

const tailBytes = 4 << 10

func (t *tail) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.b = append(t.b, b...)
	t.b = t.b[max(0, len(t.b)-tailBytes):]
	return len(b), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.b)
}
