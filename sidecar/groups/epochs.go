package groups

import (
	"context"
	"sync"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// HasEpoch says that members that come and go show in the group's epoch, see
// [Client.Epochs].
func (g Group) HasEpoch() bool { return g.Type == typeConsumer || g.Type == typeStreams }

// Epochs are the group epochs of those groups that have one, KIP-848 and Streams
// groups: it rises with each member that comes or goes. Those that cannot be had are
// not there.
func (c *Client) Epochs(ctx context.Context, groups []Group) map[string]int32 {
	epochs := map[string]int32{}
	var mu sync.Mutex
	var asking sync.WaitGroup
	for _, typ := range []string{typeConsumer, typeStreams} { // each has a request of its own
		var names []string
		for _, g := range groups {
			if g.Type == typ {
				names = append(names, g.Name)
			}
		}
		for node, part := range c.byCoordinator(ctx, names, make([]error, len(names))) {
			asking.Go(func() {
				var of []string
				for _, i := range part {
					of = append(of, names[i])
				}
				resp, err := c.ask(ctx, node, describe(typ, of))
				mu.Lock()
				defer mu.Unlock()
				for _, name := range of {
					c.forget(name, err)
				}
				if err == nil {
					c.readEpochs(resp, epochs)
				}
			})
		}
	}
	asking.Wait()
	return epochs
}

// describe is the request for groups of a type that has epochs.
func describe(typ string, names []string) kmsg.Request {
	if typ == typeStreams {
		req := kmsg.NewPtrStreamsGroupDescribeRequest()
		req.Groups = names
		return req
	}
	req := kmsg.NewPtrConsumerGroupDescribeRequest()
	req.Groups = names
	return req
}

func (c *Client) readEpochs(resp kmsg.Response, epochs map[string]int32) {
	read := func(name string, code int16, epoch int32) {
		err := kerr.ErrorForCode(code)
		if c.forget(name, err); err == nil {
			epochs[name] = epoch
		}
	}
	switch r := resp.(type) {
	case *kmsg.ConsumerGroupDescribeResponse:
		for _, g := range r.Groups {
			read(g.Group, g.ErrorCode, g.Epoch)
		}
	case *kmsg.StreamsGroupDescribeResponse:
		for _, g := range r.Groups {
			read(g.Group, g.ErrorCode, g.Epoch)
		}
	}
}
