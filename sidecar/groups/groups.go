// Package groups reads what the consumer groups of a cluster have committed, and
// commits for groups that nobody is in. Requests go to the coordinators that it knows,
// with many groups in each where the brokers allow; trouble with one group or one
// coordinator is that one's alone, and nothing is retried blindly.
package groups

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"mirror/sidecar/cluster"
)

// askTime is how long a broker may take to answer one request.
const askTime = 10 * time.Second

// Types of groups.
const (
	typeConsumer = "consumer"
	typeStreams  = "streams"
	typeShare    = "share"
)

// Group is a group as its coordinator lists it.
type Group struct {
	Name string
	// Type is "classic", "consumer" (KIP-848), "streams" (KIP-1071), "share"…; "" where
	// the broker does not tell (before Kafka 3.8).
	Type string
	// Protocol is what its members do together, like "consumer" or "streams"; "" where it
	// never had any.
	Protocol string
	// State is "Empty", "Stable"…; "" where the broker does not tell (before Kafka 2.6).
	State string
}

// Share says that it is a share group, which has no offsets of this kind.
func (g Group) Share() bool { return g.Type == typeShare || g.Protocol == typeShare }

// Active says that it has members, or may have.
func (g Group) Active() bool {
	return g.State != "" && !strings.EqualFold(g.State, "Empty") && !strings.EqualFold(g.State, "Dead")
}

// Offset is what a group has committed for a partition, or is to commit.
type Offset struct {
	Topic       string
	TopicID     [16]byte // for commits; zero before Kafka 2.8
	Partition   int32
	Offset      int64  // the next to read
	LeaderEpoch int32  // -1: none
	Metadata    string // "" stands for none too
}

// Client asks one cluster. Its methods may be called by several goroutines.
type Client struct {
	cluster *cluster.Cluster

	mu           sync.Mutex
	coordinators map[string]int32 // by group, broker ids
	oneByOne     bool             // the brokers take one group a request (before Kafka 3.0)
}

// New does no I/O.
func New(c *cluster.Cluster) *Client {
	return &Client{cluster: c, coordinators: map[string]int32{}}
}

// List asks every broker for the groups that it coordinates, with one request each.
// Those that the user may not describe are not there. Beside an error there are the
// groups of the brokers that did answer.
func (c *Client) List(ctx context.Context) (map[string]Group, error) {
	nodes, err := c.cluster.Brokers(ctx)
	if err != nil {
		return nil, err
	}
	type answer struct {
		node   int32
		groups []Group
		err    error
	}
	answers := make(chan answer, len(nodes))
	for _, node := range nodes {
		go func() {
			groups, err := c.listOf(ctx, node)
			answers <- answer{node, groups, err}
		}()
	}
	all := map[string]Group{}
	var errs []error
	for range nodes {
		a := <-answers
		if a.err != nil {
			errs = append(errs, fmt.Errorf("list the groups of broker %d: %w", a.node, c.explain(a.err)))
		}
		c.mu.Lock()
		for _, g := range a.groups { // one that moves may be on two lists
			all[g.Name] = g
			c.coordinators[g.Name] = a.node
		}
		c.mu.Unlock()
	}
	return all, errors.Join(errs...)
}

func (c *Client) listOf(ctx context.Context, node int32) ([]Group, error) {
	resp, err := c.read(ctx, node, kmsg.NewPtrListGroupsRequest())
	if err != nil {
		return nil, err
	}
	r := resp.(*kmsg.ListGroupsResponse)
	groups := make([]Group, 0, len(r.Groups))
	for _, g := range r.Groups {
		groups = append(groups, Group{Name: g.Group, Type: strings.ToLower(g.GroupType), Protocol: g.ProtocolType, State: g.GroupState})
	}
	return groups, kerr.ErrorForCode(r.ErrorCode)
}

// readPause is before a broker is asked again on another connection.
const readPause = 50 * time.Millisecond

// read asks a broker for something, and again on another connection where the one that
// there was has ended meanwhile: that is no trouble.
func (c *Client) read(ctx context.Context, node int32, req kmsg.Request) (kmsg.Response, error) {
	for try := 0; ; try++ {
		resp, err := c.ask(ctx, node, req)
		if try == 2 || !kgo.IsRetryableBrokerErr(err) || errors.Is(err, context.DeadlineExceeded) {
			return resp, err
		}
		select { // the client may not have noticed yet that it has ended
		case <-time.After(readPause):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// ask sends a request to a broker, once.
func (c *Client) ask(ctx context.Context, node int32, req kmsg.Request) (kmsg.Response, error) {
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	return c.cluster.Client().Broker(int(node)).Request(ctx, req)
}

// explain says what right is missing where that is the trouble.
func (c *Client) explain(err error) error {
	switch {
	case errors.Is(err, kerr.ClusterAuthorizationFailed):
		return c.cluster.Explain(fmt.Errorf("%w: allow DESCRIBE on the groups", err))
	default:
		return c.cluster.Explain(err)
	}
}

// Moved says that err is a coordinator's who is not, or not yet: the group's offsets
// are somewhere else, or can be had in a moment.
func Moved(err error) bool {
	return errors.Is(err, kerr.NotCoordinator) || errors.Is(err, kerr.CoordinatorNotAvailable) || errors.Is(err, kerr.CoordinatorLoadInProgress)
}

// Denied says that err is a missing right.
func Denied(err error) bool {
	return errors.Is(err, kerr.GroupAuthorizationFailed) || errors.Is(err, kerr.TopicAuthorizationFailed) || errors.Is(err, kerr.ClusterAuthorizationFailed)
}

// Joined says that err is the coordinator's refusal to commit for a group that has
// members: somebody has joined.
func Joined(err error) bool {
	for _, refusal := range []error{kerr.UnknownMemberID, kerr.IllegalGeneration, kerr.RebalanceInProgress, kerr.StaleMemberEpoch, kerr.FencedMemberEpoch} {
		if errors.Is(err, refusal) {
			return true
		}
	}
	return false
}
