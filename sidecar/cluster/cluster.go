// Package cluster reaches one Kafka cluster: it builds every client and every connection, with TLS
// and SASL, from the cluster's table in the config, knows which topics there are and who leads
// their partitions, and says what an error of the network or the brokers means to an operator.
package cluster

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl"

	"mirror/sidecar/config"
)

const (
	dialTimeout = 10 * time.Second
	// retryTimeout is how long a client retries a request before it reports the error: long enough
	// for a change of leader, short enough that somebody may wait for the error.
	retryTimeout = 15 * time.Second
)

// Cluster is one Kafka cluster. It is safe for concurrent use.
type Cluster struct {
	cfg       config.Cluster
	log       *slog.Logger
	mechanism sasl.Mechanism // nil: none
	client    *kgo.Client
	brokers   atomic.Pointer[[]int32] // see Brokers; nil: not known yet
}

// Open prepares everything to reach the cluster and reads the files that its config names, so that
// what is wrong with them is said at once; they are read again for every new connection. It does no
// network I/O. An embedded cluster has to be started before, and its addresses put in place of
// "embedded".
func Open(cfg config.Cluster, log *slog.Logger) (*Cluster, error) {
	c := &Cluster{cfg: cfg, log: log.With("cluster", cfg.Alias)}
	var err error
	if _, err = tlsConfig(cfg.TLS, ""); err != nil {
		return nil, fmt.Errorf("cluster %s: %w", cfg.Alias, err)
	}
	if c.mechanism, err = mechanism(cfg.SASL); err != nil {
		return nil, fmt.Errorf("cluster %s: %w", cfg.Alias, err)
	}
	if c.client, err = c.NewClient(); err != nil {
		return nil, err
	}
	return c, nil
}

// Alias returns the cluster's name in the config.
func (c *Cluster) Alias() string { return c.cfg.Alias }

// Rack returns where the mirror stands, for fetching from the closest replica (KIP-392); "": not
// said.
func (c *Cluster) Rack() string { return c.cfg.Rack }

// ClientID returns the name that brokers know the mirror by.
func (c *Cluster) ClientID() string { return c.cfg.ClientID }

// Client returns the client for metadata and administration that all parts of the mirror share. It
// neither consumes nor produces.
func (c *Cluster) Client() *kgo.Client { return c.client }

// NewClient returns a client of its own, for a consumer, a producer or a transaction, with the
// options of opts after the cluster's. The caller closes it.
func (c *Cluster) NewClient(opts ...kgo.Opt) (*kgo.Client, error) {
	base := []kgo.Opt{
		kgo.SeedBrokers(c.cfg.Bootstrap...),
		kgo.ClientID(c.cfg.ClientID),
		kgo.SoftwareNameAndVersion("mirror", "1"),
		kgo.Dialer(func(ctx context.Context, _, addr string) (net.Conn, error) { return c.Dial(ctx, addr) }),
		kgo.WithLogger(clientLogger(c.log)),
		kgo.RetryTimeout(retryTimeout),
		// What a client has cached about topics may be this old after it noticed that something is
		// wrong with it.
		kgo.MetadataMinAge(250 * time.Millisecond),
		kgo.MetadataMaxAge(30 * time.Second),
		kgo.DisableClientMetrics(),
	}
	if c.cfg.Rack != "" {
		base = append(base, kgo.Rack(c.cfg.Rack))
	}
	if c.mechanism != nil {
		base = append(base, kgo.SASL(c.mechanism))
	}
	client, err := kgo.NewClient(append(base, opts...)...)
	if err != nil {
		return nil, fmt.Errorf("cluster %s: %w", c.cfg.Alias, err)
	}
	return client, nil
}

// Dial opens a connection to a broker: TCP, and TLS if the cluster has it.
func (c *Cluster) Dial(ctx context.Context, addr string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	var d net.Dialer
	conn, err := d.DialContext(ctx, "tcp", addr)
	if err != nil || !c.cfg.TLS.Enabled {
		return conn, err
	}
	return c.secure(ctx, conn, addr)
}

// SASL returns the mechanism to authenticate with, nil if there is none. What it needs from files
// is read at each authentication.
func (c *Cluster) SASL(context.Context) (sasl.Mechanism, error) { return c.mechanism, nil }

// Close ends the shared client. Clients of NewClient are their owners' to close.
func (c *Cluster) Close() { c.client.Close() }
