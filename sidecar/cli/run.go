package cli

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"runtime/debug"

	"github.com/urfave/cli/v2"

	"mirror/sidecar"
	"mirror/sidecar/admin"
	"mirror/sidecar/config"
)

func runCommand() *cli.Command {
	return &cli.Command{
		Name:  "run",
		Usage: "mirror, in the foreground, until a signal",
		Description: `SIGTERM or SIGINT drains each flow and saves its positions, within the flow's
grace time, and exits 0. A second signal exits 130 at once.

Examples:

   mirror run -c mirror.toml
   KAFKA_PASSWORD=... mirror run --config /etc/mirror/mirror.toml 2>>mirror.log
   curl -s http://127.0.0.1:9464/readyz     # while it runs`,
		Flags:  []cli.Flag{configFlag()},
		Action: run,
	}
}

func run(c *cli.Context) error {
	if err := noArguments(c); err != nil {
		return err
	}
	cfg, err := config.Load(c.String("config"))
	if err != nil {
		return err
	}
	saveMemory()
	log := newLogger(cfg.Log, c.App.ErrWriter)
	return untilSignal(c.Context, log, func(ctx context.Context) error { return mirror(ctx, cfg, log) })
}

// gcPercent is how much garbage may grow over what is in use before it is
// collected. Most of what is in use is the budget's buffers, which are used again
// and make no garbage, so that collecting it early costs next to nothing.
const gcPercent = 30

// saveMemory sets gcPercent, unless the environment says otherwise.
func saveMemory() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
}

// mirror runs the flows, and the admin server beside them until they have ended.
func mirror(ctx context.Context, cfg *config.Config, log *slog.Logger) (err error) {
	m, err := sidecar.New(cfg, build().Version, log)
	if err != nil {
		return err
	}
	log.Info("mirror starts", "version", build().Version, "config", cfg.File, "flows", len(cfg.Flows))
	if cfg.Admin.Listen == "" {
		err = m.Run(ctx)
	} else {
		err = runWithAdmin(ctx, m, cfg.Admin, log)
	}
	if err == nil {
		log.Info("mirror stopped")
	}
	return err
}

func runWithAdmin(ctx context.Context, m *sidecar.Mirror, c config.Admin, log *slog.Logger) error {
	server, err := admin.Listen(c, m.Status, log)
	if err != nil {
		m.Close()
		return err
	}
	log.Info("admin server listens", "address", server.Addr())

	// While the flows drain the server still answers; when it fails they stop.
	flows, stopFlows := context.WithCancel(ctx)
	defer stopFlows()
	serving, stopServing := context.WithCancel(context.WithoutCancel(ctx))
	defer stopServing()
	served := make(chan error, 1)
	go func() {
		served <- server.Run(serving)
		stopFlows()
	}()
	err = m.Run(flows)
	stopServing()
	return errors.Join(err, <-served)
}
