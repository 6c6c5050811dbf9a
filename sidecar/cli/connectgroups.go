package cli

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"mirror/sidecar/config"
	"mirror/sidecar/groups"
	"mirror/sidecar/policy"
)

// mostGroups is how many groups are asked for rights: for more it would take long, and
// who has the right to some of them usually has it to all.
const mostGroups = 100

// followsGroups says whether a flow writes checkpoints, if its plugin does what it may.
func followsGroups(f config.Flow) bool {
	return f.Checkpoints.Enabled.On && slices.ContainsFunc(f.Plugins, func(p config.Plugin) bool { return p.Emit.Groups })
}

// checkGroups checks whether groups can be followed: the source's list, the topic of
// checkpoints and, with sync_groups, the rights on the groups of the target.
func (k *flowCheck) checkGroups(ctx context.Context) {
	if !followsGroups(k.Flow) {
		return
	}
	var names []string
	if k.source != nil {
		listed, err := groups.New(k.source).List(ctx)
		if err != nil {
			k.problem(k.source, err)
		}
		filter := policy.NewFilter(k.Groups, k.ExcludeGroups)
		for _, name := range slices.Sorted(maps.Keys(listed)) {
			if filter.Selects(name) && !listed[name].Share() {
				names = append(names, name)
			}
		}
		k.groups = count(len(names), "group") + " there that the mirror's user may DESCRIBE"
	}
	if k.target == nil {
		return
	}
	topic := k.CheckpointsTopic()
	k.checkOwnTopic(ctx, k.target, topic)
	if policy, err := k.target.ForgetfulPolicy(ctx, topic); err == nil && policy != "" {
		k.problem(k.target, fmt.Errorf("topic %s: cleanup.policy is %q, so checkpoints are lost in time: alter it to compact", topic, policy))
	}
	if k.Checkpoints.SyncGroups.On {
		k.checkGroupRights(ctx, names[:min(len(names), mostGroups)])
	}
}

// checkGroupRights asks the target what the mirror may do with groups (KIP-430). Of those
// that it does not have some brokers do not tell.
func (k *flowCheck) checkGroupRights(ctx context.Context, names []string) {
	if len(names) == 0 {
		return
	}
	req := kmsg.NewPtrDescribeGroupsRequest()
	req.Groups, req.IncludeAuthorizedOperations = names, true
	for _, shard := range k.target.Client().RequestSharded(ctx, req) {
		if errors.Is(shard.Err, kerr.GroupAuthorizationFailed) {
			k.problem(k.target, fmt.Errorf("group %s: the mirror's user may not DESCRIBE: allow it with an ACL, and READ", strings.Join(shard.Req.(*kmsg.DescribeGroupsRequest).Groups, ", ")))
			continue
		}
		if shard.Err != nil {
			k.problem(k.target, fmt.Errorf("ask for rights on groups: %w", shard.Err))
			continue
		}
		for _, g := range shard.Resp.(*kmsg.DescribeGroupsResponse).Groups {
			switch err := kerr.ErrorForCode(g.ErrorCode); {
			case errors.Is(err, kerr.GroupAuthorizationFailed):
				k.problem(k.target, fmt.Errorf("group %s: the mirror's user may not DESCRIBE: allow it with an ACL, and READ", g.Group))
			case err == nil && g.AuthorizedOperations != math.MinInt32 && g.AuthorizedOperations&(1<<kmsg.ACLOperationRead) == 0:
				k.problem(k.target, fmt.Errorf("group %s: the mirror's user may not READ: allow it with an ACL", g.Group))
			}
		}
	}
}
