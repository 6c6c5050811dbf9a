// Package kafkatest runs real Apache Kafka clusters, and MirrorMaker 2, in
// containers for tests.
//
// The image is that of $KAFKA_TEST_IMAGE, else mirror-test/kafka:4.3.1 (made by
// integration/image/build.sh without a registry) where Docker has it, else
// apache/kafka:4.3.1 from Docker's own registry. Only what both have is used: a
// shell, and the scripts of the Apache distribution in /opt/kafka/bin.
//
// Where there is no Docker, or no image, a test that asks for a cluster is
// skipped and says what to do; in CI (CI=true or KAFKA_TEST_REQUIRED=1) it fails.
package kafkatest

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/moby/moby/client"
	"github.com/testcontainers/testcontainers-go"
	"github.com/testcontainers/testcontainers-go/log"
	"github.com/testcontainers/testcontainers-go/network"
)

const (
	localImage  = "mirror-test/kafka:4.3.1"
	publicImage = "apache/kafka:4.3.1"
	ownerLabel  = "mirror-test.owner" // host:pid of the test process
	bin         = "/opt/kafka/bin/"
)

// quiet drops the library's progress, which would go between the tests' lines.
type quiet struct{}

func (quiet) Printf(string, ...any) {}

func init() {
	log.SetDefault(quiet{})
	// Testcontainers' own cleaner ("Ryuk") is one more image to pull. Unless the
	// user says otherwise do without; sweep takes its place. The library reads
	// this once, at its first use, so an init is early enough.
	if os.Getenv("TESTCONTAINERS_RYUK_DISABLED") == "" {
		os.Setenv("TESTCONTAINERS_RYUK_DISABLED", "true")
	}
	// With a local dockerd, published ports are on this machine. Where there is a
	// file /.dockerenv (some virtual machines made from images have it) the
	// library thinks otherwise.
	if _, ok := os.LookupEnv("TESTCONTAINERS_HOST_OVERRIDE"); !ok &&
		(os.Getenv("DOCKER_HOST") == "" || strings.HasPrefix(os.Getenv("DOCKER_HOST"), "unix:")) {
		os.Setenv("TESTCONTAINERS_HOST_OVERRIDE", "127.0.0.1")
	}
}

// docker is the client of a Docker that answers, and is swept.
var docker = sync.OnceValues(func() (*client.Client, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	c, err := testcontainers.NewDockerClientWithOpts(ctx)
	if err == nil {
		_, err = c.Ping(ctx, client.PingOptions{})
	}
	if err != nil {
		return nil, fmt.Errorf("no Docker (%w): start dockerd", err)
	}
	sweep(ctx, c.Client)
	return c.Client, nil
})

// image is the name of an image that Docker has.
var image = sync.OnceValues(func() (string, error) {
	c, err := docker()
	if err != nil {
		return "", err
	}
	names := []string{localImage, publicImage}
	if s := os.Getenv("KAFKA_TEST_IMAGE"); s != "" {
		names = []string{s}
	}
	ctx := context.Background()
	for _, name := range names {
		if _, err := c.ImageInspect(ctx, name); err == nil {
			return name, nil
		}
	}
	name := names[len(names)-1]
	if err := pull(ctx, c, name); err != nil {
		return "", fmt.Errorf("no image %s (%w): build one with integration/image/build.sh, or set KAFKA_TEST_IMAGE", strings.Join(names, " or "), err)
	}
	return name, nil
})

// pull asks for the image's manifest first: where the registry is out of reach
// that fails within its time, a pull may hang for minutes.
func pull(ctx context.Context, c *client.Client, name string) error {
	probe, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	if _, err := c.DistributionInspect(probe, name, client.DistributionInspectOptions{}); err != nil {
		return err
	}
	p, err := c.ImagePull(ctx, name, client.ImagePullOptions{})
	if err != nil {
		return err
	}
	return p.Wait(ctx)
}

// Need skips the test where no cluster can be started, or fails it where there
// must be one.
func Need(t testing.TB) {
	t.Helper()
	_, err := image()
	switch {
	case err == nil:
	case os.Getenv("KAFKA_TEST_REQUIRED") == "1" || os.Getenv("CI") == "true":
		t.Fatalf("no Kafka: %v", err)
	default:
		t.Skipf("no Kafka: %v", err)
	}
}

func owner() string {
	h, _ := os.Hostname()
	return fmt.Sprintf("%s:%d", h, os.Getpid())
}

// sweep removes what test processes of this machine left that did not live to
// clean up (killed, or go test's -timeout). What it cannot remove the next one will.
func sweep(ctx context.Context, c *client.Client) {
	h, _ := os.Hostname()
	dead := func(labels map[string]string) bool {
		host, pid, _ := strings.Cut(labels[ownerLabel], ":")
		n, err := strconv.Atoi(pid)
		return host == h && err == nil && syscall.Kill(n, 0) == syscall.ESRCH
	}
	label := make(client.Filters).Add("label", ownerLabel)
	if l, err := c.ContainerList(ctx, client.ContainerListOptions{All: true, Filters: label}); err == nil {
		for _, x := range l.Items {
			if dead(x.Labels) {
				_, _ = c.ContainerRemove(ctx, x.ID, client.ContainerRemoveOptions{Force: true, RemoveVolumes: true})
			}
		}
	}
	if l, err := c.NetworkList(ctx, client.NetworkListOptions{Filters: label}); err == nil {
		for _, x := range l.Items {
			if dead(x.Labels) {
				_, _ = c.NetworkRemove(ctx, x.ID, client.NetworkRemoveOptions{})
			}
		}
	}
}

// Network makes a Docker network, on which clusters and MirrorMaker meet. (Docker
// has addresses for some thirty at a time.)
func Network(t testing.TB) *testcontainers.DockerNetwork {
	t.Helper()
	Need(t)
	n, err := network.New(t.Context(), network.WithLabels(map[string]string{ownerLabel: owner()}))
	testcontainers.CleanupNetwork(t, n)
	if err != nil {
		t.Fatalf("docker network: %v", err)
	}
	return n
}

// container runs the shell command in the image with the files; it stops when
// the test ends, and shows the end of its log if the test failed.
func container(t testing.TB, net *testcontainers.DockerNetwork, alias, command string, files map[string][]byte, opts ...testcontainers.ContainerCustomizer) (testcontainers.Container, error) {
	t.Helper()
	img, err := image()
	if err != nil {
		return nil, err
	}
	o := []testcontainers.ContainerCustomizer{
		testcontainers.WithEntrypoint("sh", "-c", command),
		testcontainers.WithLabels(map[string]string{ownerLabel: owner()}),
		testcontainers.WithEnv(map[string]string{
			"KAFKA_HEAP_OPTS":            "-Xms64m -Xmx320m",
			"KAFKA_JVM_PERFORMANCE_OPTS": "-XX:+UseSerialGC -XX:TieredStopAtLevel=1",
			"LOG_LEVEL":                  "warn",
		}),
		network.WithNetwork([]string{alias}, net),
	}
	for path, data := range files {
		o = append(o, testcontainers.WithFiles(testcontainers.ContainerFile{
			Reader: bytes.NewReader(data), ContainerFilePath: path, FileMode: 0o644}))
	}
	c, err := testcontainers.Run(t.Context(), img, append(o, opts...)...)
	t.Cleanup(func() {
		if c == nil {
			return
		}
		ctx := context.Background()
		if t.Failed() {
			t.Logf("end of the log of %s:\n%s", alias, logTail(ctx, c, 40))
		}
		// No goodbye from the broker: it has nothing to save.
		if err := testcontainers.TerminateContainer(c, testcontainers.StopTimeout(0)); err != nil {
			t.Logf("removing %s: %v", alias, err)
		}
	})
	if err != nil {
		return nil, fmt.Errorf("container %s: %w", alias, err)
	}
	return c, nil
}

func logTail(ctx context.Context, c testcontainers.Container, lines int) string {
	r, err := c.Logs(ctx)
	if err != nil {
		return err.Error()
	}
	defer r.Close()
	b, err := io.ReadAll(r)
	if err != nil {
		return err.Error()
	}
	l := strings.Split(strings.TrimRight(string(b), "\n"), "\n")
	return strings.Join(l[max(0, len(l)-lines):], "\n")
}
