package topics

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"mirror/sidecar/cluster"
)

// describeChunk is how many topics one DescribeConfigs request asks for.
const describeChunk = 200

// described is the answer for one topic.
type described struct {
	configs []kmsg.DescribeConfigsResponseResourceConfig
	version int16 // of the answer
	err     error
}

// describe asks for the named configs of topics, for all of them when names is
// nil. The error is one of the requests; those of topics are in the answers.
func describe(ctx context.Context, c *cluster.Cluster, topics, names []string) (map[string]described, error) {
	all := make(map[string]described, len(topics))
	for chunk := range slices.Chunk(topics, describeChunk) {
		req := kmsg.NewPtrDescribeConfigsRequest()
		for _, topic := range chunk {
			r := kmsg.NewDescribeConfigsRequestResource()
			r.ResourceType = kmsg.ConfigResourceTypeTopic
			r.ResourceName = topic
			r.ConfigNames = names
			req.Resources = append(req.Resources, r)
		}
		resp, err := req.RequestWith(ctx, c.Client())
		if err != nil {
			return nil, c.Explain(fmt.Errorf("describe the configs of topics: %w", err))
		}
		for _, r := range resp.Resources {
			all[r.ResourceName] = described{
				configs: r.Configs,
				version: resp.Version,
				err:     answerError(r.ErrorCode, r.ErrorMessage),
			}
		}
	}
	for _, topic := range topics {
		if _, ok := all[topic]; !ok {
			all[topic] = described{err: errNoAnswer}
		}
	}
	return all, nil
}

// answerError is the error of one topic in an answer, with what the broker says
// beside the code.
func answerError(code int16, message *string) error {
	err := kerr.ErrorForCode(code)
	if err == nil || message == nil || *message == "" {
		return err
	}
	return fmt.Errorf("%w (%s)", err, *message)
}

// ownConfigs returns what was set on the topic itself: neither defaults nor
// what it has from its brokers, nothing read-only, nothing secret.
func ownConfigs(d described) map[string]string {
	own := map[string]string{}
	for _, c := range d.configs {
		set := c.Source == kmsg.ConfigSourceDynamicTopicConfig
		if d.version == 0 { // knows no sources (before Kafka 1.1)
			set = !c.IsDefault
		}
		if set && !c.ReadOnly && !c.IsSensitive && c.Value != nil {
			own[c.Name] = *c.Value
		}
	}
	return own
}

// settings are the configs of a target topic that decide what can be written
// to it as it is; zero where they are not known.
type settings struct {
	maxMessageBytes int
	logAppendTime   bool
}

var settingNames = []string{"max.message.bytes", "message.timestamp.type"}

// Bounds of the wait for a broker that has not heard of a new topic.
const (
	unknownRetries = 5
	unknownWait    = 100 * time.Millisecond
)

// settings reads those of target topics. Where it is not allowed to they are
// left unknown, and the first such error is returned as denied. gone are topics
// that the target does not know.
func (m *Manager) settings(ctx context.Context, topics []string) (known map[string]settings, gone map[string]error, denied, err error) {
	known = make(map[string]settings, len(topics))
	for attempt := 0; ; attempt++ {
		answers, err := describe(ctx, m.target, topics, settingNames)
		if err != nil {
			return nil, nil, nil, err
		}
		gone = map[string]error{}
		var again []string
		for _, topic := range topics {
			switch err := answers[topic].err; {
			case err == nil:
				known[topic] = parseSettings(answers[topic])
			case errors.Is(err, kerr.UnknownTopicOrPartition):
				gone[topic] = err
				again = append(again, topic)
			case denied == nil:
				denied = err
			}
		}
		if len(again) == 0 || attempt == unknownRetries {
			return known, gone, denied, nil
		}
		topics = again
		if err := wait(ctx, unknownWait); err != nil {
			return nil, nil, nil, err
		}
	}
}

func parseSettings(d described) settings {
	var s settings
	for _, c := range d.configs {
		if c.Value == nil {
			continue
		}
		switch c.Name {
		case "max.message.bytes":
			if n, err := strconv.Atoi(*c.Value); err == nil {
				s.maxMessageBytes = n
			}
		case "message.timestamp.type":
			s.logAppendTime = *c.Value == "LogAppendTime"
		}
	}
	return s
}

func wait(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
