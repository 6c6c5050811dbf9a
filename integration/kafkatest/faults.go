package kafkatest

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/moby/moby/api/types/network"
	"github.com/moby/moby/client"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// do runs an action of Docker on the node. It may be called from a cleanup, when
// t's own context has ended.
func (n *Node) do(t testing.TB, what string, action func(context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), time.Minute)
	defer cancel()
	if err := action(ctx); err != nil {
		t.Fatalf("%s broker %d: %v", what, n.ID, err)
	}
}

// Kill is kill -9.
func (n *Node) Kill(t testing.TB) {
	t.Helper()
	n.Proxy.setTarget("") // Docker may give its port to another container
	n.do(t, "kill", func(ctx context.Context) error {
		_, err := n.docker.ContainerKill(ctx, n.GetContainerID(), client.ContainerKillOptions{Signal: "KILL"})
		return err
	})
}

// Restart starts the node again after Kill, with its data, at the address it had.
func (n *Node) Restart(t testing.TB) {
	t.Helper()
	n.do(t, "start", func(ctx context.Context) error {
		if err := n.Start(ctx); err != nil {
			return err
		}
		return n.connect(ctx)
	})
}

// Pause freezes the node: connections stay, nothing is answered.
func (n *Node) Pause(t testing.TB) {
	t.Helper()
	n.do(t, "pause", func(ctx context.Context) error {
		for tries := 1; ; tries++ {
			_, err := n.docker.ContainerPause(ctx, n.GetContainerID(), client.ContainerPauseOptions{})
			// On a busy machine the kernel may not freeze all threads in the time that
			// runc gives it.
			if err == nil || tries == pauseTries || !strings.Contains(err.Error(), "unable to freeze") {
				return err
			}
		}
	})
}

const pauseTries = 5

// Unpause ends a Pause.
func (n *Node) Unpause(t testing.TB) {
	t.Helper()
	n.do(t, "unpause", func(ctx context.Context) error {
		_, err := n.docker.ContainerUnpause(ctx, n.GetContainerID(), client.ContainerUnpauseOptions{})
		return err
	})
}

// Isolate takes the node off the network: nothing that the other nodes or this
// machine send it arrives, and they are not told.
func (c *Cluster) Isolate(t testing.TB, n *Node) {
	t.Helper()
	n.Proxy.Hold()
	n.do(t, "isolate", func(ctx context.Context) error {
		_, err := n.docker.NetworkDisconnect(ctx, c.net.ID, client.NetworkDisconnectOptions{Container: n.GetContainerID(), Force: true})
		return err
	})
}

// Rejoin ends an Isolate.
func (c *Cluster) Rejoin(t testing.TB, n *Node) {
	t.Helper()
	n.do(t, "rejoin", func(ctx context.Context) error {
		_, err := n.docker.NetworkConnect(ctx, c.net.ID, client.NetworkConnectOptions{
			Container: n.GetContainerID(), EndpointConfig: &network.EndpointSettings{Aliases: []string{c.alias(n.ID)}}})
		if err != nil {
			return err
		}
		return n.connect(ctx)
	})
	n.Proxy.Restore()
}

// WaitMoved waits until the other nodes say that every partition is led, and
// none by n.
func (c *Cluster) WaitMoved(t testing.TB, n *Node) {
	t.Helper()
	cl := c.Client(t)
	defer cl.Close()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	req := kmsg.NewPtrMetadataRequest()
	req.Topics = nil // all
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	moved := func(asked *Node) bool {
		// Not any broker: the one in question may not answer, or not know yet.
		m, err := req.RequestWith(ctx, cl.SeedBrokers()[asked.ID-1])
		if err != nil {
			return false
		}
		for _, topic := range m.Topics {
			for _, p := range topic.Partitions {
				if p.Leader < 0 || p.Leader == int32(n.ID) {
					return false
				}
			}
		}
		return true
	}
	for _, asked := range c.Nodes {
		for asked != n && !moved(asked) {
			select {
			case <-ctx.Done():
				t.Fatalf("cluster %s: broker %d still leads, as broker %d says", c.opts.Name, n.ID, asked.ID)
			case <-tick.C:
			}
		}
	}
}
