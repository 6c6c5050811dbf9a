package kafkatest

import (
	"fmt"
	"testing"

	"github.com/testcontainers/testcontainers-go"
)

// MirrorMaker is a running MirrorMaker 2, or some of its connectors.
type MirrorMaker struct{ container testcontainers.Container }

// StartMirrorMaker runs the real MirrorMaker 2, in dedicated mode, on the properties.
func StartMirrorMaker(t testing.TB, net *testcontainers.DockerNetwork, name string, config map[string]string) *MirrorMaker {
	t.Helper()
	Need(t)
	c, err := container(t, net, name, "exec "+bin+"connect-mirror-maker.sh /tmp/mm2.properties",
		map[string][]byte{"/tmp/mm2.properties": properties(config)})
	if err != nil {
		t.Fatal(err)
	}
	return &MirrorMaker{c}
}

// StartConnectors runs some of MirrorMaker's connectors without the others, in a Kafka
// Connect of their own.
func StartConnectors(t testing.TB, net *testcontainers.DockerNetwork, name string, worker map[string]string, connectors ...map[string]string) *MirrorMaker {
	t.Helper()
	Need(t)
	files := map[string][]byte{"/tmp/worker.properties": properties(worker)}
	command := "exec " + bin + "kafka-run-class.sh org.apache.kafka.connect.cli.ConnectStandalone /tmp/worker.properties"
	for i, c := range connectors {
		file := fmt.Sprintf("/tmp/connector-%d.properties", i)
		files[file] = properties(c)
		command += " " + file
	}
	c, err := container(t, net, name, command, files)
	if err != nil {
		t.Fatal(err)
	}
	return &MirrorMaker{c}
}

// Stop asks MirrorMaker to end, which makes it write its positions, and waits
// until it has.
func (m *MirrorMaker) Stop(t testing.TB) {
	t.Helper()
	if err := m.container.Stop(t.Context(), nil); err != nil {
		t.Fatalf("stop MirrorMaker: %v", err)
	}
}
