package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"slices"
	"strconv"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// broker is a cluster of one.
type broker struct {
	near string // its address
	far  string // its address at the end of a long link
	pid  int

	fake      *kfake.Cluster // instead of the container
	container *container
	link      *link
	client    *kgo.Client
}

const brokerCommand = `/opt/kafka/bin/kafka-storage.sh format -t AAAAAAAAAAAAAAAAAAAAAQ -c "$PROPERTIES" &&
exec /opt/kafka/bin/kafka-server-start.sh "$PROPERTIES"`

// startBroker starts a broker and waits until it answers. What it returns is to
// be closed, with an error too.
func startBroker(ctx context.Context, image, name string) (*broker, error) {
	b := &broker{}
	ports, err := freePorts(3)
	if err != nil {
		return b, err
	}
	at := func(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }
	b.near = at(ports[0])
	if b.link, err = newLink(at(ports[1]), oneWay); err != nil {
		return b, err
	}
	b.far = b.link.address()
	b.container, err = runContainer(image, fmt.Sprintf("mirror-bench-%d-%s", os.Getpid(), name), "-Xms1g -Xmx1g", brokerCommand, map[string]string{
		"process.roles":                            "broker,controller",
		"node.id":                                  "1",
		"controller.quorum.voters":                 "1@" + at(ports[2]),
		"listeners":                                fmt.Sprintf("NEAR://%s,FAR://%s,CONTROLLER://%s", b.near, at(ports[1]), at(ports[2])),
		"advertised.listeners":                     fmt.Sprintf("NEAR://%s,FAR://%s", b.near, b.far),
		"listener.security.protocol.map":           "NEAR:PLAINTEXT,FAR:PLAINTEXT,CONTROLLER:PLAINTEXT",
		"inter.broker.listener.name":               "NEAR",
		"controller.listener.names":                "CONTROLLER",
		"log.dirs":                                 "/tmp/kafka-data",
		"offsets.topic.replication.factor":         "1",
		"offsets.topic.num.partitions":             "5",
		"transaction.state.log.replication.factor": "1",
		"transaction.state.log.min.isr":            "1",
		"transaction.state.log.num.partitions":     "5",
		"group.initial.rebalance.delay.ms":         "0",
		"auto.create.topics.enable":                "false",
		"log.segment.delete.delay.ms":              "1000", // the copies of earlier runs take room
	})
	if err != nil {
		return b, err
	}
	b.pid = b.container.pid
	if b.client, err = kgo.NewClient(kgo.SeedBrokers(b.near)); err != nil {
		return b, err
	}
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	err = await(ctx, 100*time.Millisecond, func() error { return b.client.Ping(ctx) })
	if err != nil {
		return b, fmt.Errorf("broker %s does not answer: %w; %s", name, err, b.container.log())
	}
	return b, nil
}

func (b *broker) close() {
	if b.client != nil {
		b.client.Close()
	}
	if b.fake != nil {
		b.fake.Close()
	}
	if b.container != nil {
		b.container.remove()
	}
	if b.link != nil {
		b.link.close()
	}
}

// address is where a subject finds it.
func (b *broker) address(far bool) string {
	if far {
		return b.far
	}
	return b.near
}

func (b *broker) create(ctx context.Context, topic string, partitions int) error {
	_, err := kadm.NewClient(b.client).CreateTopic(ctx, int32(partitions), 1, nil, topic)
	if err != nil {
		return fmt.Errorf("create topic %s: %w", topic, err)
	}
	return nil
}

// topics are the names of all topics but the broker's own. (The admin client would
// give those of some seconds ago.)
func (b *broker) topics(ctx context.Context) (names []string, err error) {
	req := kmsg.NewPtrMetadataRequest()
	req.Topics = nil // all
	resp, err := req.RequestWith(ctx, b.client.SeedBrokers()[0])
	if err != nil {
		return nil, fmt.Errorf("list topics: %w", err)
	}
	for _, t := range resp.Topics {
		if t.Topic != nil && !t.IsInternal {
			names = append(names, *t.Topic)
		}
	}
	return names, nil
}

// clear deletes all topics but one.
func (b *broker) clear(ctx context.Context, keep string) error {
	names, err := b.topics(ctx)
	if err != nil {
		return err
	}
	names = slices.DeleteFunc(names, func(name string) bool { return name == keep })
	if len(names) == 0 {
		return nil
	}
	answers, err := kadm.NewClient(b.client).DeleteTopics(ctx, names...)
	if err == nil {
		err = answers.Error()
	}
	if err != nil {
		return fmt.Errorf("delete topics: %w", err)
	}
	return nil
}

// ends is how many records the partitions of a topic have, where nothing was
// deleted; 0 for a topic that is not there yet. It goes to the broker as it is:
// clients remember for seconds that a topic is missing.
func (b *broker) ends(ctx context.Context, topic string, partitions []int32) (n int64, err error) {
	req := kmsg.NewPtrListOffsetsRequest()
	t := kmsg.NewListOffsetsRequestTopic()
	t.Topic = topic
	for _, number := range partitions {
		p := kmsg.NewListOffsetsRequestTopicPartition()
		p.Partition, p.Timestamp = number, -1
		t.Partitions = append(t.Partitions, p)
	}
	req.Topics = append(req.Topics, t)
	resp, err := req.RequestWith(ctx, b.client.SeedBrokers()[0])
	if err != nil {
		return 0, fmt.Errorf("list offsets of %s: %w", topic, err)
	}
	for _, t := range resp.Topics {
		for _, p := range t.Partitions {
			if p.ErrorCode == 0 {
				n += p.Offset
			}
		}
	}
	return n, nil
}

// freePorts has ports that nobody listens on.
func freePorts(n int) (ports []int, err error) {
	for range n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		defer l.Close()
		ports = append(ports, l.Addr().(*net.TCPAddr).Port)
	}
	return ports, nil
}
