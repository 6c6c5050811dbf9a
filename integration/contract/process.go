package contract

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"mirror/integration/watch"
	"mirror/sidecar/status"
)

// Process is a mirror that runs as a process of its own, built from this module.
type Process struct {
	*Flow // the first
	Flows []*Flow

	cmd    *exec.Cmd
	config string // its file
	admin  string
	log    watch.Log
	exited chan struct{}
}

// binaryDir is the folder of the mirror that binary built, "" before that.
var binaryDir string

// binary builds the mirror once for all scenarios.
var binary = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "mirror-contract")
	if err != nil {
		return "", err
	}
	binaryDir = dir
	file := filepath.Join(dir, "mirror")
	if out, err := exec.Command("go", "build", "-o", file, "mirror").CombinedOutput(); err != nil {
		return "", fmt.Errorf("build the mirror: %w\n%s", err, out)
	}
	return file, nil
})

// Clean removes what the scenarios built. It is for the end of TestMain.
func Clean() {
	if binaryDir != "" {
		os.RemoveAll(binaryDir)
	}
}

// Command is the built mirror with arguments.
func (e *Env) Command(args ...string) *exec.Cmd {
	e.Helper()
	file, err := binary()
	if err != nil {
		e.Fatal(err)
	}
	return exec.Command(file, args...)
}

// ConfigFile writes a config file and returns its name.
func (e *Env) ConfigFile(text string) string {
	e.Helper()
	file := filepath.Join(e.TempDir(), "mirror.toml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		e.Fatal(err)
	}
	return file
}

// Launch starts a process with the flows and waits until it says it is ready.
func (e *Env) Launch(flows ...Flow) *Process {
	e.Helper()
	p := e.LaunchAnyway(flows...)
	p.Ready()
	return p
}

// Validate runs the mirror's validate --connect with the flows, which takes half
// a minute at most.
func (e *Env) Validate(flows ...Flow) (code int, output string) {
	e.Helper()
	cmd := e.Command("validate", "--connect", "-c", e.ConfigFile(configText(e.flows(flows), "")))
	out, err := cmd.CombinedOutput()
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		e.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), string(out)
}

// LaunchAnyway starts a process with the flows.
func (e *Env) LaunchAnyway(flows ...Flow) *Process {
	e.Helper()
	p := &Process{Flows: e.flows(flows), admin: freeAddress(e), exited: make(chan struct{})}
	p.Flow = p.Flows[0]
	for _, f := range p.Flows {
		f.status = p.status
	}
	p.config = e.ConfigFile(configText(p.Flows, p.admin))
	p.cmd = e.Command("run", "-c", p.config)
	p.cmd.Stdout, p.cmd.Stderr = &p.log, &p.log
	if err := p.cmd.Start(); err != nil {
		e.Fatal(err)
	}
	go func() {
		_ = p.cmd.Wait() // ProcessState has the outcome
		close(p.exited)
	}()
	e.Cleanup(func() {
		if e.Failed() { // what is it doing?
			_ = p.cmd.Process.Signal(syscall.SIGQUIT)
			select {
			case <-p.exited:
			case <-time.After(5 * time.Second): // it may be stopped
			}
		}
		_ = p.cmd.Process.Kill()
		<-p.exited
		if e.Failed() {
			e.Logf("the mirror wrote:\n%s", p.log.String())
		}
	})
	return p
}

// Ready waits until the process says that it is.
func (p *Process) Ready() {
	p.e.Helper()
	p.e.Eventually("the mirror to be ready", func() string {
		if r := p.Readiness(); !r.Ready {
			return fmt.Sprintf("it is not: %q", r.Reasons)
		}
		return ""
	})
}

// Readiness is what /readyz says.
type Readiness struct {
	Ready   bool
	Reasons []string
}

// Readiness asks /readyz. While nothing answers the process is not ready, for no
// reason.
func (p *Process) Readiness() (r Readiness) {
	p.e.Helper()
	select {
	case <-p.exited:
		p.e.Fatalf("the mirror has ended: %v\n%s", p.cmd.ProcessState, p.log.String())
	default:
	}
	code, body, err := p.Get("/readyz")
	if err != nil {
		return r
	}
	if err := json.Unmarshal(body, &r); err != nil {
		p.e.Errorf("/readyz: %v in %s", err, body)
	}
	if want := map[bool]int{true: http.StatusOK, false: http.StatusServiceUnavailable}[r.Ready]; code != want {
		p.e.Errorf("/readyz: %d, want %d, with %s", code, want, body)
	}
	return r
}

// freeAddress is a loopback address that nobody listens on.
func freeAddress(e *Env) string {
	e.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		e.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

var httpClient = &http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}

// PID is the process's id.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Get asks the admin server.
func (p *Process) Get(path string) (code int, body []byte, err error) {
	r, err := httpClient.Get("http://" + p.admin + path)
	if err != nil {
		return 0, nil, err
	}
	defer r.Body.Close()
	var b bytes.Buffer
	_, err = b.ReadFrom(r.Body)
	return r.StatusCode, b.Bytes(), err
}

// status is an empty report where the process does not answer.
func (p *Process) status() (r status.Report) {
	if _, body, err := p.Get("/status"); err == nil {
		if err := json.Unmarshal(body, &r); err != nil {
			p.e.Errorf("/status is no report: %v\n%s", err, body)
		}
	}
	return r
}

// Translate is what mirror translate says of a group that one flow follows.
func (p *Process) Translate(group string) (t status.GroupTranslation) {
	p.e.Helper()
	out, err := p.e.Command("translate", group, "-c", p.config, "-o", "json").Output()
	var all status.Translations
	if err == nil {
		err = json.Unmarshal(out, &all)
	}
	if err != nil || len(all.Groups) != 1 || len(all.Errors) > 0 {
		p.e.Fatalf("mirror translate %s: %v\n%s", group, err, out)
	}
	return all.Groups[0]
}

// PeakMemory is the most bytes of memory that the process has had (resident), as
// Linux counts.
func (p *Process) PeakMemory() int64 {
	p.e.Helper()
	return p.kilobytes("VmHWM:") << 10
}

// Log is what the process has written.
func (p *Process) Log() string { return p.log.String() }

// Kill is kill -9.
func (p *Process) Kill() {
	p.e.Helper()
	p.Signal(syscall.SIGKILL)
	<-p.exited
}

// Signal sends a signal.
func (p *Process) Signal(s syscall.Signal) {
	p.e.Helper()
	if err := p.cmd.Process.Signal(s); err != nil && !errors.Is(err, os.ErrProcessDone) {
		p.e.Fatal(err)
	}
}

// WantExit waits for the end of the process and checks its exit status.
func (p *Process) WantExit(code int) {
	p.e.Helper()
	p.e.Eventually("the end of the mirror", func() string {
		select {
		case <-p.exited:
			return ""
		default:
			return "it runs"
		}
	})
	if got := p.cmd.ProcessState.ExitCode(); got != code {
		p.e.Errorf("exit status %d, want %d; it wrote:\n%s", got, code, p.log.String())
	}
}

// WantCommand runs the mirror with arguments to its end and checks its exit
// status and that its standard error has the words.
func (e *Env) WantCommand(code int, words []string, args ...string) {
	e.Helper()
	cmd := e.Command(args...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	err := cmd.Run()
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		e.Fatal(err)
	}
	if got := cmd.ProcessState.ExitCode(); got != code {
		e.Errorf("mirror %s: exit status %d, want %d; it wrote:\n%s", strings.Join(args, " "), got, code, stderr.String())
	}
	for _, w := range words {
		if !strings.Contains(stderr.String(), w) {
			e.Errorf("mirror %s wrote, without %q:\n%s", strings.Join(args, " "), w, stderr.String())
		}
	}
}
