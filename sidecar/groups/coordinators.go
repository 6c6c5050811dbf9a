package groups

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// byCoordinator finds the coordinators of groups, of those that are not known with
// few requests, and returns the indexes of the groups that each has. What cannot be
// found is an error at the group's index.
func (c *Client) byCoordinator(ctx context.Context, names []string, errs []error) map[int32][]int {
	var unknown []string
	c.mu.Lock()
	for i, name := range names {
		if _, ok := c.coordinators[name]; !ok && errs[i] == nil {
			unknown = append(unknown, name)
		}
	}
	c.mu.Unlock()
	failed := c.find(ctx, unknown)
	parts := map[int32][]int{}
	c.mu.Lock()
	defer c.mu.Unlock()
	for i, name := range names {
		if errs[i] != nil {
			continue
		}
		if node, ok := c.coordinators[name]; ok {
			parts[node] = append(parts[node], i)
			continue
		}
		if errs[i] = failed[name]; errs[i] == nil {
			errs[i] = fmt.Errorf("find its coordinator: %w", kerr.CoordinatorNotAvailable)
		}
	}
	return parts
}

// find asks for coordinators.
func (c *Client) find(ctx context.Context, names []string) map[string]error {
	if len(names) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	req := kmsg.NewPtrFindCoordinatorRequest()
	req.CoordinatorKeys = names
	failed := map[string]error{}
	for _, shard := range c.cluster.Client().RequestSharded(ctx, req) {
		if shard.Err != nil {
			r := shard.Req.(*kmsg.FindCoordinatorRequest)
			keys := r.CoordinatorKeys
			if len(keys) == 0 {
				keys = []string{r.CoordinatorKey}
			}
			for _, name := range keys {
				failed[name] = c.explain(fmt.Errorf("find its coordinator: %w", shard.Err))
			}
			continue
		}
		c.mu.Lock()
		for _, r := range shard.Resp.(*kmsg.FindCoordinatorResponse).Coordinators {
			if err := kerr.ErrorForCode(r.ErrorCode); err != nil {
				failed[r.Key] = c.explain(fmt.Errorf("find its coordinator: %w", err))
				continue
			}
			c.coordinators[r.Key] = r.NodeID
		}
		c.mu.Unlock()
	}
	return failed
}

// forget drops what is known of a group's coordinator, if err says that it is wrong.
// again: with another one it is worth asking at once.
func (c *Client) forget(name string, err error) (again bool) {
	if err == nil || !Moved(err) && isAnswer(err) {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.coordinators, name)
	return errors.Is(err, kerr.NotCoordinator)
}

// isAnswer says that err came from a broker, and not from the way to it.
func isAnswer(err error) bool { return errors.As(err, new(*kerr.Error)) }

// Sort brings groups of one coordinator together, as far as that is known, each in the
// order of their names.
func (c *Client) Sort(names []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	slices.SortFunc(names, func(a, b string) int {
		return cmp.Or(cmp.Compare(c.coordinators[a], c.coordinators[b]), cmp.Compare(a, b))
	})
}

// Forget drops what is known of groups that are not among those that are there.
func (c *Client) Forget(there func(name string) bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, name := range slices.Collect(maps.Keys(c.coordinators)) {
		if !there(name) {
			delete(c.coordinators, name)
		}
	}
}
