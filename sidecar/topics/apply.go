package topics

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// Bounds of one request. A KRaft controller turns a request into one batch of
// at most 10,000 records, one for each topic, config and partition.
const (
	applyTopics  = 100
	applyRecords = 4000
)

// apply carries out a plan. failed is by source topic, with what the plan
// refused among it.
func (m *Manager) apply(ctx context.Context, plan Plan) (failed map[string]error, err error) {
	failed = maps.Clone(plan.Refused)
	if err := m.createAll(ctx, plan.Create, failed); err != nil {
		return nil, err
	}
	if err := m.growAll(ctx, plan.Grow, failed); err != nil {
		return nil, err
	}
	return failed, nil
}

// createAll makes topics. Those of which the target refuses a config are made
// without what it refuses, rather than not at all.
func (m *Manager) createAll(ctx context.Context, creates []Create, failed map[string]error) error {
	answers, err := m.send(ctx, creates, false)
	if err != nil {
		return err
	}
	var reduced []Create
	for _, c := range creates {
		answer := answers[c.Target]
		if errors.Is(answer.err, kerr.InvalidConfig) && len(c.Carried) > 0 {
			reduced = append(reduced, c)
			continue
		}
		m.created(c, answer, failed)
	}
	if len(reduced) == 0 {
		return nil
	}

	reduced, left, err := m.reduce(ctx, reduced)
	if err != nil {
		return err
	}
	answers, err = m.send(ctx, reduced, false)
	if err != nil {
		return err
	}
	for _, c := range reduced {
		answer := answers[c.Target]
		m.created(c, answer, failed)
		if refused := slices.Sorted(maps.Keys(left[c.Target])); answer.err == nil && len(refused) > 0 {
			m.log.Warn("the target refuses configs of the source topic: the target topic was made without them",
				"topic", c.Source, "cluster", m.target.Alias(), "configs", refused, "err", left[c.Target][refused[0]])
		}
	}
	return nil
}

// created takes in the last answer for a topic.
func (m *Manager) created(c Create, a answer, failed map[string]error) {
	switch {
	case a.err == nil:
		m.log.Info("created topic", "topic", c.Source, "target", c.Target, "cluster", m.target.Alias(), "partitions", c.Partitions)
	case errors.Is(a.err, kerr.TopicAlreadyExists): // somebody was faster
	default:
		failed[c.Source] = fmt.Errorf("create topic %q on cluster %q: %w: %s", c.Target, m.target.Alias(), a.err, a.advice())
	}
}

// reduce finds out which of the carried configs the target takes: it lets it
// validate them one after the other, added to those that it took before, for
// all topics at once. left are the others, by target topic.
func (m *Manager) reduce(ctx context.Context, creates []Create) (reduced []Create, left map[string]map[string]error, err error) {
	reduced = slices.Clone(creates)
	left = map[string]map[string]error{}
	names := make([][]string, len(creates))
	for i, c := range creates {
		names[i] = slices.Sorted(maps.Keys(c.Carried))
		reduced[i].Carried = map[string]string{}
		left[c.Target] = map[string]error{}
	}
	for n := 0; ; n++ {
		var trials []Create
		for i, c := range reduced {
			if n < len(names[i]) {
				c.Carried = maps.Clone(c.Carried)
				c.Carried[names[i][n]] = creates[i].Carried[names[i][n]]
				trials = append(trials, c)
			}
		}
		if len(trials) == 0 {
			return reduced, left, nil
		}
		answers, err := m.send(ctx, trials, true)
		if err != nil {
			return nil, nil, err
		}
		for i := range reduced {
			if n >= len(names[i]) {
				continue
			}
			name := names[i][n]
			if err := answers[reduced[i].Target].err; errors.Is(err, kerr.InvalidConfig) {
				left[reduced[i].Target][name] = err
			} else {
				reduced[i].Carried[name] = creates[i].Carried[name]
			}
		}
	}
}

// errNoAnswer is of a topic that a broker's answer leaves out.
var errNoAnswer = errors.New("the broker's answer leaves the topic out")

// answer is what the target says of one topic to be made or grown.
type answer struct {
	err     error
	version int16 // of the answer
}

// advice says what to do about an error.
func (a answer) advice() string {
	switch {
	case errors.Is(a.err, kerr.TopicAuthorizationFailed), errors.Is(a.err, kerr.ClusterAuthorizationFailed):
		return "allow Create and Alter on it, or do it by hand"
	case errors.Is(a.err, kerr.InvalidReplicationFactor) && a.version < 4:
		return "brokers before Kafka 2.4 have no default for it: set replication_factor in [flows.create]"
	case errors.Is(a.err, kerr.InvalidReplicationFactor):
		return "set replication_factor in [flows.create] to what the cluster has brokers for"
	case errors.Is(a.err, kerr.InvalidConfig):
		return "check configs in [flows.create]"
	case errors.Is(a.err, kerr.PolicyViolation):
		return "the cluster's policy for new topics refuses it: set what it wants in [flows.create], or make it by hand"
	case errors.Is(a.err, kerr.InvalidTopicException):
		return "the cluster does not take this name (at most 249 of a-z A-Z 0-9 . _ -, and none that differs from another in . and _ only): " +
			"name it in exclude_topics, or change the flow's naming"
	default:
		return "tried again in the next round"
	}
}

// send asks the target to create topics, or to say whether it would.
func (m *Manager) send(ctx context.Context, creates []Create, validateOnly bool) (map[string]answer, error) {
	answers := make(map[string]answer, len(creates))
	size := func(c Create) int { return 1 + len(c.Required) + len(c.Carried) + int(c.Partitions) }
	for chunk := range chunks(creates, size) {
		req := kmsg.NewPtrCreateTopicsRequest()
		req.ValidateOnly = validateOnly
		for _, c := range chunk {
			t := kmsg.NewCreateTopicsRequestTopic()
			t.Topic = c.Target
			t.NumPartitions = c.Partitions
			t.ReplicationFactor = c.ReplicationFactor
			for _, configs := range []map[string]string{c.Required, c.Carried} {
				for _, name := range slices.Sorted(maps.Keys(configs)) {
					rc := kmsg.NewCreateTopicsRequestTopicConfig()
					rc.Name, rc.Value = name, kmsg.StringPtr(configs[name])
					t.Configs = append(t.Configs, rc)
				}
			}
			req.Topics = append(req.Topics, t)
		}
		resp, err := req.RequestWith(ctx, m.target.Client())
		if err != nil {
			return nil, m.target.Explain(fmt.Errorf("create topics: %w", err))
		}
		for _, c := range chunk {
			answers[c.Target] = answer{err: errNoAnswer}
		}
		for _, t := range resp.Topics {
			answers[t.Topic] = answer{err: answerError(t.ErrorCode, t.ErrorMessage), version: resp.Version}
		}
	}
	return answers, nil
}

func (m *Manager) growAll(ctx context.Context, grows []Grow, failed map[string]error) error {
	for chunk := range chunks(grows, func(g Grow) int { return int(g.To - g.From) }) {
		req := kmsg.NewPtrCreatePartitionsRequest()
		bySource := make(map[string]Grow, len(chunk))
		for _, g := range chunk {
			t := kmsg.NewCreatePartitionsRequestTopic()
			t.Topic = g.Target
			t.Count = g.To
			req.Topics = append(req.Topics, t)
			bySource[g.Target] = g
		}
		resp, err := req.RequestWith(ctx, m.target.Client())
		if err != nil {
			return m.target.Explain(fmt.Errorf("add partitions to topics: %w", err))
		}
		for _, t := range resp.Topics {
			g := bySource[t.Topic]
			a := answer{err: answerError(t.ErrorCode, t.ErrorMessage), version: resp.Version}
			switch {
			case a.err == nil:
				m.log.Info("added partitions", "topic", g.Source, "target", g.Target, "cluster", m.target.Alias(), "from", g.From, "to", g.To)
			case errors.Is(a.err, kerr.InvalidPartitions): // somebody was faster: the next look shows it
			default:
				failed[g.Source] = fmt.Errorf("grow topic %q on cluster %q from %d to %d partitions: %w: %s",
					g.Target, m.target.Alias(), g.From, g.To, a.err, a.advice())
			}
		}
	}
	return nil
}

// chunks cuts a list into pieces that one request can carry.
func chunks[T any](list []T, size func(T) int) iter.Seq[[]T] {
	return func(yield func([]T) bool) {
		start, sum := 0, 0
		for i, item := range list {
			n := size(item)
			if i > start && (i-start == applyTopics || sum+n > applyRecords) {
				if !yield(list[start:i]) {
					return
				}
				start, sum = i, 0
			}
			sum += n
		}
		if start < len(list) {
			yield(list[start:])
		}
	}
}
