package kafkatest

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/testcontainers/testcontainers-go"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

const (
	hostPort     = "9092/tcp" // listener HOST: for this machine, through a Proxy
	internalPort = 9093       // listener INTERNAL: for brokers and MirrorMaker, by alias
)

// Options of a Cluster.
type Options struct {
	// Name is the start of the brokers' names on the network, unique there.
	Name string
	// Nodes is the number of brokers, each a controller too; 0 means 1.
	Nodes int
	// Protocol is what clients of this machine speak: PLAINTEXT (the default),
	// SSL, SASL_PLAINTEXT or SASL_SSL. Brokers and MirrorMaker always speak
	// PLAINTEXT among themselves.
	Protocol string
	// Config is added to server.properties.
	Config map[string]string
	// Scram has users and passwords, for SCRAM-SHA-256.
	Scram map[string]string
	// Files are put into the brokers' containers.
	Files map[string][]byte
	// Client is what a client of the cluster needs (credentials).
	Client []kgo.Opt
}

// Cluster is a running Kafka cluster.
type Cluster struct {
	Nodes []*Node
	opts  Options
	id    string
	net   *testcontainers.DockerNetwork
}

// Start starts a cluster and waits until it serves. Where net is nil it has a
// network of its own, as clusters need whose brokers are restarted at the same
// time: Docker may give one the other's old address.
func Start(t testing.TB, net *testcontainers.DockerNetwork, o Options) *Cluster {
	t.Helper()
	Need(t)
	docker, err := docker()
	if err != nil {
		t.Fatal(err)
	}
	o.Nodes = max(o.Nodes, 1)
	if o.Protocol == "" {
		o.Protocol = "PLAINTEXT"
	}
	if net == nil {
		net = Network(t)
	}
	c := &Cluster{opts: o, id: newID(), net: net}
	for i := range o.Nodes {
		// The proxy comes first, so that its port can be advertised.
		p, err := newProxy()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(p.close)
		c.Nodes = append(c.Nodes, &Node{ID: i + 1, Proxy: p, docker: docker})
	}
	var wg sync.WaitGroup
	errs := make([]error, o.Nodes)
	for i, n := range c.Nodes {
		wg.Go(func() { errs[i] = c.run(t, n) })
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	c.WaitReady(t, o.Nodes)
	return c
}

// StartAll starts several clusters at the same time.
func StartAll(t testing.TB, net *testcontainers.DockerNetwork, all ...Options) []*Cluster {
	t.Helper()
	cs := make([]*Cluster, len(all))
	var wg sync.WaitGroup
	for i, o := range all {
		wg.Go(func() { cs[i] = Start(t, net, o) })
	}
	wg.Wait()
	if slices.Contains(cs, nil) { // t.Fatal ended that goroutine, not this one
		t.FailNow()
	}
	return cs
}

// newID makes a cluster's id, by which brokers know that they belong together.
func newID() string {
	id := make([]byte, 16)
	_, _ = rand.Read(id) // never fails
	id[0] = 0            // it must not begin with a dash
	return base64.RawURLEncoding.EncodeToString(id)
}

func (c *Cluster) alias(id int) string { return fmt.Sprintf("%s-%d", c.opts.Name, id) }

func (c *Cluster) run(t testing.TB, n *Node) (err error) {
	format := bin + "kafka-storage.sh format -t " + c.id + " -c /tmp/server.properties"
	for _, u := range slices.Sorted(maps.Keys(c.opts.Scram)) {
		format += fmt.Sprintf(" --add-scram 'SCRAM-SHA-256=[name=%s,password=%s]'", u, c.opts.Scram[u])
	}
	files := map[string][]byte{"/tmp/server.properties": properties(c.config(n))}
	maps.Copy(files, c.opts.Files)
	n.Container, err = container(t, c.net, c.alias(n.ID),
		"[ -f /tmp/kafka-data/meta.properties ] || "+format+" || exit; exec "+bin+"kafka-server-start.sh /tmp/server.properties",
		files, testcontainers.WithExposedPorts(hostPort))
	if err != nil {
		return err
	}
	return n.connect(t.Context())
}

// config is the node's server.properties.
func (c *Cluster) config(n *Node) map[string]string {
	o := c.opts
	var voters []string
	for _, m := range c.Nodes {
		voters = append(voters, fmt.Sprintf("%d@%s:9094", m.ID, c.alias(m.ID)))
	}
	replicas := strconv.Itoa(min(o.Nodes, 3))
	config := map[string]string{
		"process.roles":                            "broker,controller",
		"node.id":                                  strconv.Itoa(n.ID),
		"controller.quorum.voters":                 strings.Join(voters, ","),
		"listeners":                                "HOST://:9092,INTERNAL://:9093,CONTROLLER://:9094",
		"advertised.listeners":                     fmt.Sprintf("HOST://127.0.0.1:%d,INTERNAL://%s:%d", n.Proxy.Port(), c.alias(n.ID), internalPort),
		"listener.security.protocol.map":           "HOST:" + o.Protocol + ",INTERNAL:PLAINTEXT,CONTROLLER:PLAINTEXT",
		"inter.broker.listener.name":               "INTERNAL",
		"controller.listener.names":                "CONTROLLER",
		"log.dirs":                                 "/tmp/kafka-data",
		"offsets.topic.replication.factor":         replicas,
		"offsets.topic.num.partitions":             "5",
		"transaction.state.log.replication.factor": replicas,
		"transaction.state.log.min.isr":            "1",
		"transaction.state.log.num.partitions":     "5",
		"group.initial.rebalance.delay.ms":         "0",
		"group.streams.initial.rebalance.delay.ms": "0",
		"auto.create.topics.enable":                "false",
		"log.cleaner.dedupe.buffer.size":           "16777216", // 128 MiB else
		// A killed broker is missed, and may come back, after this (9 s else).
		"broker.session.timeout.ms":    "3000",
		"broker.heartbeat.interval.ms": "500",
		// Each broker has a rack of its own (KIP-392).
		"broker.rack":            fmt.Sprintf("rack-%d", n.ID),
		"replica.selector.class": "org.apache.kafka.common.replica.RackAwareReplicaSelector",
	}
	if len(o.Scram) > 0 {
		config["listener.name.host.sasl.enabled.mechanisms"] = "SCRAM-SHA-256"
		config["listener.name.host.scram-sha-256.sasl.jaas.config"] = "org.apache.kafka.common.security.scram.ScramLoginModule required;"
	}
	maps.Copy(config, o.Config)
	return config
}

// properties is a Java properties file.
func properties(m map[string]string) []byte {
	var b []byte
	for _, k := range slices.Sorted(maps.Keys(m)) {
		b = fmt.Appendf(b, "%s=%s\n", k, m[k])
	}
	return b
}

// Bootstrap has the addresses for clients on this machine.
func (c *Cluster) Bootstrap() []string {
	var a []string
	for _, n := range c.Nodes {
		a = append(a, net.JoinHostPort("127.0.0.1", strconv.Itoa(n.Proxy.Port())))
	}
	return a
}

// Internal has the addresses for clients on the Docker network.
func (c *Cluster) Internal() string {
	var a []string
	for _, n := range c.Nodes {
		a = append(a, fmt.Sprintf("%s:%d", c.alias(n.ID), internalPort))
	}
	return strings.Join(a, ",")
}

// Client makes a client on this machine.
func (c *Cluster) Client(t testing.TB, opts ...kgo.Opt) *kgo.Client {
	t.Helper()
	cl, err := kgo.NewClient(slices.Concat([]kgo.Opt{kgo.SeedBrokers(c.Bootstrap()...)}, c.opts.Client, opts)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cl.Close)
	return cl
}

// WaitReady waits until n of the brokers answer, and each of them knows of n.
func (c *Cluster) WaitReady(t testing.TB, n int) {
	t.Helper()
	cl := c.Client(t)
	defer cl.Close()
	// Not kadm, whose BrokerMetadata gives the client's first answer for ever.
	req := kmsg.NewPtrMetadataRequest()
	req.Topics = []kmsg.MetadataRequestTopic{}
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(2 * time.Minute); ; <-tick.C {
		ready := 0
		var err error
		for _, b := range cl.SeedBrokers() {
			ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
			m, e := req.RequestWith(ctx, b)
			cancel()
			if e != nil {
				err = e
			} else if len(m.Brokers) >= n {
				ready++
			}
		}
		if ready >= n {
			return
		}
		exited := 0
		for _, x := range c.Nodes {
			if s, e := x.State(t.Context()); e == nil && !s.Running {
				exited++
			}
		}
		if exited > len(c.Nodes)-n || time.Now().After(deadline) {
			t.Fatalf("cluster %s: %d of %d brokers ready, %d exited; %v", c.opts.Name, ready, n, exited, err)
		}
	}
}
