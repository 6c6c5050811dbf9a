package groups

import (
	"context"
	"errors"
	"fmt"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// Commit commits offsets for a group that has no members, or does not exist: it is
// made then, and forgotten by its brokers offsets.retention.minutes after the last
// commit. A coordinator refuses it for a group that has members (see [Joined]). The
// leader epoch of each is taken as it is. There is an answer for each offset, in their
// order: nil where it is committed. What became of one is not known after an error
// that is not a broker's answer; reading it tells.
func (c *Client) Commit(ctx context.Context, group string, offsets []Offset) []error {
	errs := make([]error, len(offsets))
	for try := 0; ; try++ {
		err := c.commit(ctx, group, offsets, errs)
		again := c.forget(group, errors.Join(append(errs, err)...))
		if again && try == 0 { // it has not been taken: whoever coordinates now is asked, once
			clear(errs)
			continue
		}
		for i := range errs {
			if errs[i] == nil {
				errs[i] = err
			}
			if errs[i] != nil {
				errs[i] = c.explain(fmt.Errorf("commit for group %q: %w", group, errs[i]))
			}
		}
		return errs
	}
}

// commit asks once.
func (c *Client) commit(ctx context.Context, group string, offsets []Offset, errs []error) error {
	found := make([]error, 1)
	for node := range c.byCoordinator(ctx, []string{group}, found) {
		resp, err := c.ask(ctx, node, commitRequest(group, offsets))
		if err != nil {
			return err
		}
		readCommit(resp.(*kmsg.OffsetCommitResponse), offsets, errs)
		return nil
	}
	return found[0]
}

func commitRequest(group string, offsets []Offset) *kmsg.OffsetCommitRequest {
	req := kmsg.NewPtrOffsetCommitRequest() // generation -1 and no member: nobody's
	req.Group = group
	topics := map[string]int{}
	for _, o := range offsets {
		i, ok := topics[o.Topic]
		if !ok {
			i = len(req.Topics)
			topics[o.Topic] = i
			t := kmsg.NewOffsetCommitRequestTopic()
			t.Topic, t.TopicID = o.Topic, o.TopicID
			req.Topics = append(req.Topics, t)
		}
		p := kmsg.NewOffsetCommitRequestTopicPartition()
		p.Partition, p.Offset, p.LeaderEpoch, p.Metadata = o.Partition, o.Offset, o.LeaderEpoch, kmsg.StringPtr(o.Metadata)
		req.Topics[i].Partitions = append(req.Topics[i].Partitions, p)
	}
	return req
}

func readCommit(r *kmsg.OffsetCommitResponse, offsets []Offset, errs []error) {
	type place struct {
		topic     string
		id        [16]byte
		partition int32
	}
	answers := map[place]int16{}
	for _, t := range r.Topics {
		for _, p := range t.Partitions {
			answers[place{t.Topic, t.TopicID, p.Partition}] = p.ErrorCode
		}
	}
	for i, o := range offsets {
		code, ok := answers[place{o.Topic, [16]byte{}, o.Partition}]
		if !ok {
			code, ok = answers[place{"", o.TopicID, o.Partition}]
		}
		if !ok {
			code, ok = answers[place{o.Topic, o.TopicID, o.Partition}]
		}
		if !ok {
			errs[i] = errors.New("the broker did not answer for it")
			continue
		}
		errs[i] = kerr.ErrorForCode(code)
	}
}
