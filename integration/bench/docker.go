package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// container is a Java program in a container that shares the network of this
// machine, so that no bytes take a way through Docker.
type container struct {
	name string
	pid  int // of Java, as this machine sees it
}

// ownerLabel has the host and process that a container belongs to, as for the
// tests on real Kafka: they sweep too.
const ownerLabel = "mirror-test.owner"

// javaOptions are those of Kafka's own start scripts that matter here. (The test
// image is made for quick starts and would do with less.)
const javaOptions = "-server -XX:+UseG1GC -XX:MaxGCPauseMillis=20 -XX:InitiatingHeapOccupancyPercent=35"

// runContainer starts the shell command, which finds the properties in a file
// $PROPERTIES. The container is there to be removed even if this fails.
func runContainer(image, name, heap, command string, properties map[string]string) (*container, error) {
	var text strings.Builder
	for _, k := range slices.Sorted(maps.Keys(properties)) {
		fmt.Fprintf(&text, "%s=%s\n", k, properties[k])
	}
	host, err := os.Hostname()
	if err != nil {
		return nil, err
	}
	c := &container{name: name}
	if _, err = docker("run", "--detach", "--name", name, "--network", "host",
		"--label", fmt.Sprintf("%s=%s:%d", ownerLabel, host, os.Getpid()),
		"--env", "KAFKA_HEAP_OPTS="+heap, "--env", "KAFKA_JVM_PERFORMANCE_OPTS="+javaOptions,
		"--env", "LOG_LEVEL=warn", "--env", "TEXT="+text.String(), "--env", "PROPERTIES=/tmp/bench.properties",
		"--entrypoint", "sh", image, "-c", `printf %s "$TEXT" >"$PROPERTIES" || exit; `+command); err != nil {
		return c, err
	}
	out, err := docker("inspect", "--format", "{{.State.Pid}}", name)
	if err != nil {
		return c, err
	}
	if c.pid, err = strconv.Atoi(strings.TrimSpace(out)); err == nil && c.pid == 0 {
		err = errors.New("it has ended")
	}
	if err != nil {
		return c, fmt.Errorf("container %s: %w; %s", name, err, c.log())
	}
	return c, nil
}

// sweep removes the containers that processes of this machine left which were
// killed: they would take part in what is measured.
func sweep() error {
	host, err := os.Hostname()
	if err != nil {
		return err
	}
	out, err := docker("ps", "--all", "--filter", "label="+ownerLabel, "--format", `{{.Names}} {{.Label "`+ownerLabel+`"}}`)
	if err != nil {
		return err
	}
	for line := range strings.Lines(out) {
		name, owner, _ := strings.Cut(strings.TrimSpace(line), " ")
		at, digits, _ := strings.Cut(owner, ":")
		if pid, err := strconv.Atoi(digits); at == host && err == nil && syscall.Kill(pid, 0) == syscall.ESRCH {
			(&container{name: name}).remove()
		}
	}
	return nil
}

// remove ends the container and leaves nothing of it.
func (c *container) remove() {
	_, _ = docker("rm", "--force", "--volumes", c.name) // gone already: as it shall be
}

// log is the end of what it wrote.
func (c *container) log() string {
	out, err := docker("logs", "--tail", "20", c.name)
	if err != nil {
		return err.Error()
	}
	return out
}

// docker runs a command of Docker's client. A signal does not interrupt it: what
// it has begun must be known, to be undone.
func docker(args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "docker", args...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // not the terminal's
	out, err := cmd.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("docker %s: %w; %s", args[0], err, strings.TrimSpace(string(out)))
	}
	return string(out), nil
}
