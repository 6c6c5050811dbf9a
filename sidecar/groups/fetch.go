package groups

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// Commits is all that a group has committed, in no order.
type Commits struct {
	Offsets []Offset
	All     int   // how many there are with those of other topics, which the broker has sent too
	Err     error // why it could not be read
}

// Topics are the topics that a Fetch is about; it passes over all others. Kafka 4.1
// and later name topics by id alone.
type Topics struct {
	Names map[string]bool
	ByID  map[[16]byte]string
}

// Fetch reads what groups have committed; a group that does not exist has committed
// nothing. Offsets of transactions that are under way do not count until they are
// committed. There is an answer for each group, in the order of the names. All those of
// one coordinator are asked for in one request, where it is Kafka 3.0 or later.
func (c *Client) Fetch(ctx context.Context, names []string, topics Topics) []Commits {
	out := make([]Commits, len(names))
	errs := make([]error, len(names))
	again := make([]bool, len(names))
	c.fetch(ctx, names, topics, out, errs)
	for i, name := range names {
		again[i] = c.forget(name, errs[i])
	}
	// A coordinator that has moved says so; the next one is asked at once, once.
	var retry []string
	var at []int
	for i, name := range names {
		if again[i] {
			retry, at = append(retry, name), append(at, i)
		}
	}
	if len(retry) > 0 {
		second, failed := make([]Commits, len(retry)), make([]error, len(retry))
		c.fetch(ctx, retry, topics, second, failed)
		for j, i := range at {
			out[i], errs[i] = second[j], failed[j]
			c.forget(retry[j], failed[j])
		}
	}
	for i := range out {
		if err := errs[i]; err != nil && !errors.Is(err, kerr.GroupIDNotFound) {
			out[i] = Commits{Err: c.explain(fmt.Errorf("read the offsets of group %q: %w", names[i], err))}
		}
	}
	return out
}

// fetch asks each coordinator, all at once.
func (c *Client) fetch(ctx context.Context, names []string, topics Topics, out []Commits, errs []error) {
	var asking sync.WaitGroup
	for node, part := range c.byCoordinator(ctx, names, errs) {
		asking.Go(func() { c.fetchOf(ctx, node, part, names, topics, out, errs) })
	}
	asking.Wait()
}

// fetchOf asks one coordinator for the groups at the indexes of part.
func (c *Client) fetchOf(ctx context.Context, node int32, part []int, names []string, topics Topics, out []Commits, errs []error) {
	for len(part) > 0 {
		c.mu.Lock()
		n := len(part)
		if c.oneByOne {
			n = 1
		}
		c.mu.Unlock()
		resp, err := c.read(ctx, node, fetchRequest(names, part[:n]))
		if err != nil {
			for _, i := range part { // it will not answer the others either
				errs[i] = err
			}
			return
		}
		r := resp.(*kmsg.OffsetFetchResponse)
		if r.Version < 8 { // it has looked at the first group only
			c.mu.Lock()
			c.oneByOne = true
			c.mu.Unlock()
			out[part[0]], errs[part[0]] = topics.readOne(r)
			part = part[1:]
			continue
		}
		answered := make(map[string]*kmsg.OffsetFetchResponseGroup, len(r.Groups))
		for j := range r.Groups {
			answered[r.Groups[j].Group] = &r.Groups[j]
		}
		for _, i := range part[:n] {
			if g := answered[names[i]]; g != nil {
				out[i], errs[i] = topics.read(g)
			} else {
				errs[i] = errors.New("the broker did not answer for it")
			}
		}
		part = part[n:]
	}
}

// fetchRequest asks for all offsets of groups. To a broker that takes one group only
// it asks for those of the first.
func fetchRequest(names []string, part []int) *kmsg.OffsetFetchRequest {
	req := kmsg.NewPtrOffsetFetchRequest()
	req.Group = names[part[0]]
	for _, i := range part {
		g := kmsg.NewOffsetFetchRequestGroup()
		g.Group = names[i]
		req.Groups = append(req.Groups, g)
	}
	return req
}

func (t Topics) read(g *kmsg.OffsetFetchResponseGroup) (c Commits, err error) {
	if err := kerr.ErrorForCode(g.ErrorCode); err != nil {
		return c, err
	}
	for i := range g.Topics {
		rt := &g.Topics[i]
		c.All += len(rt.Partitions)
		name := rt.Topic
		if name == "" {
			name = t.ByID[rt.TopicID]
		}
		if name == "" || !t.Names[name] {
			continue
		}
		for _, p := range rt.Partitions {
			if err := c.add(p.ErrorCode, Offset{Topic: name, TopicID: rt.TopicID, Partition: p.Partition, Offset: p.Offset, LeaderEpoch: p.LeaderEpoch, Metadata: text(p.Metadata)}); err != nil {
				return c, err
			}
		}
	}
	return c, nil
}

// readOne is read for brokers before Kafka 3.0.
func (t Topics) readOne(r *kmsg.OffsetFetchResponse) (c Commits, err error) {
	if err := kerr.ErrorForCode(r.ErrorCode); err != nil {
		return c, err
	}
	for _, rt := range r.Topics {
		c.All += len(rt.Partitions)
		if !t.Names[rt.Topic] {
			continue
		}
		for _, p := range rt.Partitions {
			if err := c.add(p.ErrorCode, Offset{Topic: rt.Topic, Partition: p.Partition, Offset: p.Offset, LeaderEpoch: p.LeaderEpoch, Metadata: text(p.Metadata)}); err != nil {
				return c, err
			}
		}
	}
	return c, nil
}

// add adds an offset, if there is one.
func (c *Commits) add(code int16, o Offset) error {
	if err := kerr.ErrorForCode(code); err != nil {
		return fmt.Errorf("topic %q, partition %d: %w", o.Topic, o.Partition, err)
	}
	if o.Offset >= 0 {
		c.Offsets = append(c.Offsets, o)
	}
	return nil
}

func text(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}
