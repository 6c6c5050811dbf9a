package cli

import (
	"context"
	"log/slog"
	"os"
	"time"

	"github.com/urfave/cli/v2"

	"mirror/sidecar"
	"mirror/sidecar/config"
	"mirror/sidecar/demo"
)

// demoPatience is how long the mirror may take for the rest of the traffic. It
// takes much less, unless something is wrong.
const demoPatience = 30 * time.Second

func demoCommand() *cli.Command {
	return &cli.Command{
		Name:  "demo",
		Usage: "mirror live traffic between two Kafka clusters inside this process",
		Description: `It needs no file and no Kafka, and leaves nothing behind. Traffic of many kinds
(each codec, transactions with aborts, compaction, nulls) is written to one
cluster, mirrored to the other, and compared record by record. A consumer group reads
at the first, fails over, and goes on at the other. It ends after --for, or at Ctrl-C,
with a summary, and exits 1 if any record differs, or the group lost or repeated one.

Examples:

   mirror demo
   mirror demo --for 10s
   mirror demo --for 1m --rate 100000 | tee demo.txt`,
		Flags: []cli.Flag{
			&cli.DurationFlag{Name: "for", Usage: "write traffic for `TIME`, as in 10s; 0: until Ctrl-C"},
			&cli.IntFlag{Name: "rate", Value: 30_000, Usage: "`RECORDS` a second, all topics together"},
		},
		Action: runDemo,
	}
}

func runDemo(c *cli.Context) error {
	if err := noArguments(c); err != nil {
		return err
	}
	if c.Duration("for") < 0 {
		return usagef("--for %s is negative; give a time such as 10s, or 0 for until Ctrl-C", c.Duration("for"))
	}
	if c.Int("rate") < 1 {
		return usagef("--rate %d: give 1 record a second or more", c.Int("rate"))
	}
	// The mirror's progress is in the table; only what is wrong is logged.
	log, _ := newLogger(config.Log{Level: slog.LevelWarn, Format: "text"}, c.App.ErrWriter)
	terminal := isTerminal(c.App.Writer)
	return untilSignal(c.Context, log, func(ctx context.Context) error {
		return demo.Run(ctx, demo.Options{
			Open: func(cfg *config.Config, log *slog.Logger) (demo.Mirror, error) {
				return sidecar.New(cfg, build().Version, log, nil)
			},
			For:      c.Duration("for"),
			Rate:     c.Int("rate"),
			CatchUp:  demoPatience,
			Out:      c.App.Writer,
			Terminal: terminal,
			Colour:   os.Getenv("NO_COLOR") == "",
			Log:      log,
		})
	})
}
