package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"slices"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kmsg"

	"mirror/sidecar/cluster"
	"mirror/sidecar/config"
	"mirror/sidecar/offsets"
	"mirror/sidecar/policy"
	"mirror/sidecar/positions"
	"mirror/sidecar/state"
)

// connect asks the clusters whether the mirror can work, and writes what is in
// order and which topics there are. states are the topics of plugins' state, by flow. It goes on after a problem, to find all.
func connect(ctx context.Context, cfg *config.Config, clusters map[string]*cluster.Cluster, states [][]string, w io.Writer) error {
	var problems []error
	reached := map[string]*cluster.Cluster{}
	for _, alias := range slices.Sorted(maps.Keys(cfg.Clusters)) {
		c := clusters[alias]
		if c == nil {
			fmt.Fprintf(w, "cluster %s: embedded, starts with the mirror\n", alias)
			continue
		}
		brokers, err := checkCluster(ctx, c, needs(cfg, alias))
		if err != nil {
			problems = append(problems, err)
			continue
		}
		fmt.Fprintf(w, "cluster %s: ok, %s\n", alias, count(brokers, "broker"))
		reached[alias] = c
	}
	for i, f := range cfg.Flows {
		k := &flowCheck{Flow: f, states: states[i], policy: policy.New(f.Naming, f.From, f.To), source: reached[f.From], target: reached[f.To]}
		k.run(ctx)
		problems = append(problems, k.problems...)
		if len(k.problems) == 0 && k.source == clusters[f.From] && k.target == clusters[f.To] {
			fmt.Fprintf(w, "flow %s: ok\n", f.Name())
		} else {
			fmt.Fprintf(w, "flow %s: not ok\n", f.Name())
		}
		describeFlow(w, f)
		if k.groups != "" {
			fmt.Fprintf(w, "  follows    %s\n", k.groups)
		}
		for _, t := range k.topics {
			fmt.Fprintf(w, "  mirrors    %s as %s, %s\n", t.Name, k.policy.Target(t.Name), count(len(t.Partitions), "partition"))
		}
	}
	return errors.Join(problems...)
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// need is a request that brokers must speak.
type need struct {
	key   kmsg.Key
	least int16 // version
}

// needs are what the flows ask of a cluster.
func needs(cfg *config.Config, alias string) []need {
	var all []need
	for _, f := range cfg.Flows {
		if f.From == alias {
			// Batches of format 2, and the last stable offset.
			all = append(all, need{kmsg.Fetch, 4}, need{kmsg.ListOffsets, 2}, need{kmsg.DescribeConfigs, 0})
		}
		if f.To == alias {
			all = append(all, need{kmsg.Produce, 3}, need{kmsg.InitProducerID, 0}, need{kmsg.Fetch, 4}, need{kmsg.CreateTopics, 1})
		}
	}
	return all
}

// checkCluster reaches every broker, with the cluster's TLS and SASL.
func checkCluster(ctx context.Context, c *cluster.Cluster, needs []need) (brokers int, err error) {
	answers, err := kadm.NewClient(c.Client()).ApiVersions(ctx)
	if err != nil {
		return 0, c.Explain(err)
	}
	var problems []error
	for _, b := range answers.Sorted() {
		if b.Err != nil {
			problems = append(problems, c.Explain(fmt.Errorf("broker %d: %w", b.NodeID, b.Err)))
			continue
		}
		for _, n := range needs {
			if most, ok := b.KeyMaxVersion(n.key.Int16()); !ok || most < n.least {
				problems = append(problems, fmt.Errorf("cluster %s: broker %d does not speak %s from version %d on: it needs Kafka 0.11 or later",
					c.Alias(), b.NodeID, n.key.Name(), n.least))
			}
		}
	}
	return len(answers), errors.Join(problems...)
}

// flowCheck checks one flow on the clusters that were reached; nil: it was not,
// or there is nothing to check.
type flowCheck struct {
	config.Flow
	states         []string // topics of plugins' state
	policy         *policy.Policy
	source, target *cluster.Cluster
	topics         []cluster.Topic // that would be mirrored, by name
	groups         string          // that would be followed, in words; "": none is, or they cannot be listed
	problems       []error
}

func (k *flowCheck) problem(c *cluster.Cluster, err error) {
	if err != nil {
		k.problems = append(k.problems, fmt.Errorf("flow %s: %w", k.Name(), c.Explain(err)))
	}
}

func (k *flowCheck) run(ctx context.Context) {
	if k.source != nil {
		k.checkSource(ctx)
	}
	if k.target != nil {
		k.checkTarget(ctx)
		k.checkMirrorMaker(ctx)
	}
	k.checkSyncs(ctx)
	k.checkStates(ctx)
	k.checkGroups(ctx)
}

// checkStates checks the topics of plugins' state.
func (k *flowCheck) checkStates(ctx context.Context) {
	if k.target == nil || len(k.states) == 0 {
		return
	}
	found, err := k.target.Topics(ctx, k.states)
	if err != nil {
		k.problem(k.target, err)
		return
	}
	for _, name := range k.states {
		t, ok := found[name]
		switch {
		case !ok:
			k.checkCreation(ctx, k.target, []string{name})
			continue
		case t.Err != nil:
			k.problem(k.target, t.Err)
			continue
		case len(t.Partitions) < state.Partitions:
			k.problem(k.target, fmt.Errorf("topic %s has %s, a plugin's state needs %d: add them, or delete it, and the plugin begins without state",
				name, count(len(t.Partitions), "partition"), state.Partitions))
		}
		k.checkRights(ctx, k.target, []string{name}, kmsg.ACLOperationWrite, kmsg.ACLOperationRead)
		if policy, err := k.target.ForgetfulPolicy(ctx, name); err == nil && policy != "" {
			k.problem(k.target, fmt.Errorf("topic %s: cleanup.policy is not compact but %q, so plugins' state is lost in time: alter it to compact", name, policy))
		}
	}
}

// checkSyncs checks the topic of offset syncs, if a plugin writes any.
func (k *flowCheck) checkSyncs(ctx context.Context) {
	onTarget := k.OffsetSyncs.Location == config.OnTarget
	c := k.target
	if !onTarget {
		c = k.source
	}
	if c == nil || !slices.ContainsFunc(k.Plugins, func(p config.Plugin) bool { return p.Emit.OffsetSyncs }) {
		return
	}
	k.checkOwnTopic(ctx, c, offsets.SyncsTopic(onTarget, k.From, k.To, k.Naming.Separator))
}

// checkOwnTopic checks a topic that the mirror makes, writes and reads.
func (k *flowCheck) checkOwnTopic(ctx context.Context, c *cluster.Cluster, name string) {
	found, err := c.Topics(ctx, []string{name})
	if err != nil {
		k.problem(c, err)
		return
	}
	switch t, ok := found[name]; {
	case !ok:
		k.checkCreation(ctx, c, []string{name})
	case t.Err != nil:
		k.problem(c, t.Err)
	default:
		k.checkRights(ctx, c, []string{name}, kmsg.ACLOperationWrite, kmsg.ACLOperationRead)
	}
}

func (k *flowCheck) checkSource(ctx context.Context) {
	all, err := k.source.Topics(ctx, nil)
	if err != nil {
		k.problem(k.source, err)
		return
	}
	filter := policy.NewFilter(k.Topics, k.ExcludeTopics)
	var names []string
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if !k.policy.Mirrors(filter, name) {
			continue
		}
		if t := all[name]; t.Err != nil {
			k.problem(k.source, t.Err)
		} else {
			k.topics = append(k.topics, t)
			names = append(names, name)
		}
	}
	k.checkRights(ctx, k.source, names, kmsg.ACLOperationRead, kmsg.ACLOperationDescribeConfigs)
}

func (k *flowCheck) checkTarget(ctx context.Context) {
	names := []string{k.Positions.Topic}
	for _, t := range k.topics {
		names = append(names, k.policy.Target(t.Name))
	}
	found, err := k.target.Topics(ctx, names)
	if err != nil {
		k.problem(k.target, err)
		return
	}
	var present, missing []string
	for _, name := range names {
		if t, ok := found[name]; !ok {
			missing = append(missing, name)
		} else if t.Err != nil {
			k.problem(k.target, t.Err)
		} else {
			present = append(present, name)
		}
	}
	copies := slices.DeleteFunc(slices.Clone(present), func(name string) bool { return name == k.Positions.Topic })
	if k.Resume {
		k.checkRights(ctx, k.target, copies, kmsg.ACLOperationWrite, kmsg.ACLOperationRead)
	} else {
		k.checkRights(ctx, k.target, copies, kmsg.ACLOperationWrite)
	}
	k.checkCreation(ctx, k.target, missing)
	if len(copies) < len(present) {
		k.checkRights(ctx, k.target, []string{k.Positions.Topic}, kmsg.ACLOperationWrite, kmsg.ACLOperationRead)
		store, err := positions.Open(ctx, positions.Options{Cluster: k.target, Source: k.From, Positions: k.Positions, Create: k.Create,
			Log: slog.New(slog.DiscardHandler)})
		if err != nil {
			k.problem(k.target, err)
			return
		}
		_, err = store.Check(ctx)
		k.problem(k.target, err)
		store.Close()
	}
}

// checkCreation asks a cluster whether it would make topics.
func (k *flowCheck) checkCreation(ctx context.Context, c *cluster.Cluster, names []string) {
	if len(names) == 0 {
		return
	}
	replicas := k.Create.ReplicationFactor
	if replicas == 0 {
		replicas = -1 // the cluster's default
	}
	configs := make(map[string]*string, len(k.Create.Configs))
	for name, value := range k.Create.Configs {
		configs[name] = &value
	}
	answers, err := kadm.NewClient(c.Client()).ValidateCreateTopics(ctx, 1, replicas, configs, names...)
	if err != nil {
		k.problem(c, fmt.Errorf("ask whether topics can be created: %w", err))
		return
	}
	for _, a := range answers.Sorted() {
		switch {
		case a.Err == nil:
		case a.ErrMessage != "":
			k.problem(c, fmt.Errorf("topic %s could not be created: %w (%s)", a.Topic, a.Err, a.ErrMessage))
		default:
			k.problem(c, fmt.Errorf("topic %s could not be created: %w", a.Topic, a.Err))
		}
	}
}

// checkMirrorMaker looks for members of the group in which MirrorMaker's workers
// of the same flow meet. Without the right to see it nothing is said.
func (k *flowCheck) checkMirrorMaker(ctx context.Context) {
	group := k.From + "-mm2"
	described, err := kadm.NewClient(k.target.Client()).DescribeGroups(ctx, group)
	if err != nil {
		return
	}
	if n := len(described[group].Members); n > 0 {
		k.problem(k.target, fmt.Errorf("MirrorMaker runs the same flow, with %s in the group %s: stop it before the mirror starts", count(n, "worker"), group))
	}
}
