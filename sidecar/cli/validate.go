package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"mirror/sidecar/cluster"
	"mirror/sidecar/config"
	"mirror/sidecar/pipeline"
	"mirror/sidecar/policy"
)

func validateCommand() *cli.Command {
	return &cli.Command{
		Name:  "validate",
		Usage: "check a config file, and with --connect the clusters too",
		Description: `Without --connect nothing is sent anywhere: it checks the file, its flows against
each other, and the files that it names. With --connect it also asks each cluster
whether the mirror can do its work there, and lists the topics that it would
mirror. It changes nothing. Everything that is wrong is reported.

Examples:

   mirror validate -c mirror.toml
   mirror validate -c mirror.toml --connect --timeout 1m`,
		Flags: []cli.Flag{
			configFlag(),
			&cli.BoolFlag{Name: "connect", Usage: "check the clusters, rights and topics too"},
			&cli.DurationFlag{Name: "timeout", Value: 30 * time.Second, Usage: "how long --connect may take"},
		},
		Action: validate,
	}
}

func validate(c *cli.Context) error {
	if err := noArguments(c); err != nil {
		return err
	}
	if c.Duration("timeout") <= 0 {
		return usagef("the timeout must be more than 0")
	}
	cfg, err := config.Load(c.String("config"))
	if err != nil {
		return err
	}
	clusters, err := openClusters(cfg)
	defer closeClusters(clusters)
	if err != nil {
		return err
	}
	states, err := checkPlugins(c.Context, cfg)
	if err != nil {
		return err
	}
	if c.Bool("connect") {
		ctx, cancel := context.WithTimeout(c.Context, c.Duration("timeout"))
		defer cancel()
		return connect(ctx, cfg, clusters, states, c.App.Writer)
	}
	for _, f := range cfg.Flows {
		fmt.Fprintf(c.App.Writer, "flow %s: ok\n", f.Name())
		describeFlow(c.App.Writer, f)
	}
	return nil
}

// checkPlugins loads the plugins of all flows as run does, with their own config,
// and drops them. The result is the topics that they keep state in, by flow.
func checkPlugins(ctx context.Context, cfg *config.Config) (states [][]string, err error) {
	var problems []error
	for i := range cfg.Flows {
		topics, err := pipeline.CheckPlugins(ctx, &cfg.Flows[i])
		states, problems = append(states, topics), append(problems, err)
	}
	return states, errors.Join(problems...)
}

// openClusters reads the files of all clusters but embedded ones, which need
// none, and connects to nothing.
func openClusters(cfg *config.Config) (map[string]*cluster.Cluster, error) {
	opened := map[string]*cluster.Cluster{}
	var problems []error
	for _, alias := range slices.Sorted(maps.Keys(cfg.Clusters)) {
		if cfg.Clusters[alias].Embedded() {
			continue
		}
		c, err := cluster.Open(cfg.Clusters[alias], slog.New(slog.DiscardHandler))
		if err != nil {
			problems = append(problems, fmt.Errorf("%s: clusters.%s: %w", cfg.File, alias, err))
			continue
		}
		opened[alias] = c
	}
	return opened, errors.Join(problems...)
}

func closeClusters(clusters map[string]*cluster.Cluster) {
	for _, c := range clusters {
		c.Close()
	}
}

// describeFlow says in words what a flow does.
func describeFlow(w io.Writer, f config.Flow) {
	isolation := "committed records"
	if f.Isolation == config.ReadUncommitted {
		isolation = "all records, aborted ones too"
	}
	fmt.Fprintf(w, "  topics     %s\n", selection(f.Topics, f.ExcludeTopics))
	fmt.Fprintf(w, "  written    as %s on %s\n", policy.New(f.Naming, f.From, f.To).Target("<topic>"), f.To)
	fmt.Fprintf(w, "  copies     %s, from %s\n", isolation, f.Start)
	fmt.Fprintf(w, "  positions  in %s on %s\n", f.Positions.Topic, f.To)
	if followsGroups(f) {
		fmt.Fprintf(w, "  groups     %s, checkpoints in %s on %s", selection(f.Groups, f.ExcludeGroups), f.CheckpointsTopic(), f.To)
		if f.Checkpoints.SyncGroups.On {
			fmt.Fprint(w, ", committed to groups there")
		}
		fmt.Fprintln(w)
	}
}

func selection(include, exclude []*regexp.Regexp) string {
	if len(exclude) == 0 {
		return texts(include)
	}
	return texts(include) + " but not " + texts(exclude)
}

func texts(patterns []*regexp.Regexp) string {
	var all []string
	for _, p := range patterns {
		all = append(all, config.PatternText(p))
	}
	return strings.Join(all, ", ")
}
