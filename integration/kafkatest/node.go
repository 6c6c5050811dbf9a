package kafkatest

import (
	"context"
	"io"
	"net"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/moby/moby/client"
	"github.com/testcontainers/testcontainers-go"
	"github.com/testcontainers/testcontainers-go/exec"
)

// Node is a broker, which is a controller too.
type Node struct {
	testcontainers.Container
	ID    int
	Proxy *Proxy // between this machine and the broker

	docker *client.Client
}

// connect points the proxy at the port Docker has given the container; it gives
// another at each start.
func (n *Node) connect(ctx context.Context) error {
	host, err := n.Host(ctx)
	if err != nil {
		return err
	}
	if host == "localhost" {
		host = "127.0.0.1"
	}
	port, err := n.MappedPort(ctx, hostPort)
	if err != nil {
		return err
	}
	n.Proxy.setTarget(net.JoinHostPort(host, strconv.Itoa(int(port.Num()))))
	return nil
}

// Tool runs a Kafka main class in the node's container and returns what it wrote
// to its standard output.
func (n *Node) Tool(t testing.TB, class string, args ...string) string {
	t.Helper()
	// Docker would mix the two outputs.
	cmd := append([]string{"sh", "-c", `"$@" 2>/tmp/err.$$ || { s=$?; cat /tmp/err.$$; exit $s; }`, "sh",
		bin + "kafka-run-class.sh", class}, args...)
	code, r, err := n.Exec(t.Context(), cmd, exec.Multiplexed())
	if err != nil {
		t.Fatalf("%s: %v", class, err)
	}
	b, err := io.ReadAll(r)
	if err != nil || code != 0 {
		t.Fatalf("%s: exit status %d, %v\n%s", class, code, err, b)
	}
	return string(b)
}

// Java runs a .java file, which may use Kafka's classes, in the node's container
// and returns what it wrote. The image needs the module jdk.compiler for this:
// ours has it.
func (n *Node) Java(t testing.TB, file string, args ...string) string {
	t.Helper()
	in := "/tmp/" + filepath.Base(file)
	if err := n.CopyFileToContainer(t.Context(), file, in, 0o644); err != nil {
		t.Fatal(err)
	}
	return n.Tool(t, in, args...)
}
