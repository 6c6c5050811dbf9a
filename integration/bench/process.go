package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
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
	output *os.File // nameless; all is there once the process has ended
	exited chan struct{}
}

// launch starts a child that a terminal's Ctrl-C does not reach, and that does
// not outlive this process.
func launch(program string, args ...string) (*process, error) {
	output, err := os.CreateTemp("", "mirror-bench")
	if err != nil {
		return nil, err
	}
	_ = os.Remove(output.Name()) // on Linux it lives while it is open
	p := &process{cmd: exec.Command(program, args...), output: output, exited: make(chan struct{})}
	p.cmd.Stdout, p.cmd.Stderr = output, output
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if err := p.cmd.Start(); err != nil {
		output.Close()
		return nil, err
	}
	go func() {
		_ = p.cmd.Wait() // what it wrote says more
		close(p.exited)
	}()
	return p, nil
}

func (p *process) pid() int { return p.cmd.Process.Pid }

// log is the end of what it wrote.
func (p *process) log() string {
	const most = 4 << 10
	info, err := p.output.Stat()
	if err != nil {
		return err.Error()
	}
	b, err := io.ReadAll(io.NewSectionReader(p.output, max(0, info.Size()-most), most))
	if err != nil {
		return err.Error()
	}
	return string(b)
}

// stop asks the process to end, insists after a while, and waits.
func (p *process) stop() {
	_ = p.cmd.Process.Signal(syscall.SIGTERM) // gone already: as it shall be
	select {
	case <-p.exited:
	case <-time.After(15 * time.Second):
		_ = p.cmd.Process.Kill()
		<-p.exited
	}
	p.output.Close()
}
