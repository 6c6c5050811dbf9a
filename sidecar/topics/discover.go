package topics

import (
	"context"
	"errors"
	"fmt"

	"github.com/twmb/franz-go/pkg/kerr"

	"mirror/sidecar/cluster"
)

// discover looks at both clusters.
func (m *Manager) discover(ctx context.Context) (View, []Pair, error) {
	source, err := m.source.Topics(ctx, nil)
	if err != nil {
		return View{}, nil, err
	}
	pairs := Select(source, m.policy, m.filter)
	names := make([]string, len(pairs))
	for i, pair := range pairs {
		names[i] = pair.Target
	}
	target, err := m.target.Topics(ctx, names)
	if err != nil {
		return View{}, nil, err
	}

	v := View{Source: source, Target: target, Configs: map[string]map[string]string{}, Unseen: map[string]error{}}
	var missing []string
	for _, pair := range pairs {
		t, exists := target[pair.Target]
		switch {
		case source[pair.Source].Err != nil:
			v.Unseen[pair.Source] = unseen(m.source, source[pair.Source].Err)
		case t.Err != nil:
			v.Unseen[pair.Source] = unseen(m.target, t.Err)
		case !exists:
			missing = append(missing, pair.Source)
		}
		if t.Err != nil {
			delete(target, pair.Target)
		}
	}
	answers, err := describe(ctx, m.source, missing, nil)
	if err != nil {
		return View{}, nil, err
	}
	for topic, d := range answers {
		if d.err != nil {
			v.Unseen[topic] = fmt.Errorf("read the configs of topic %q on cluster %q, to create its target: %w: "+
				"allow DescribeConfigs on it", topic, m.source.Alias(), d.err)
			continue
		}
		v.Configs[topic] = ownConfigs(d)
	}
	return v, pairs, nil
}

// unseen explains why a topic cannot be looked at. The target answers so for a
// name that it would not take.
func unseen(c *cluster.Cluster, err error) error {
	if errors.Is(err, kerr.InvalidTopicException) {
		return fmt.Errorf("cluster %q: %w: %s", c.Alias(), err, answer{err: err}.advice())
	}
	return c.Explain(err)
}
