package cli

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"os/signal"
	"runtime/debug"
	"sync"
	"syscall"

	"github.com/urfave/cli/v2"

	"mirror/sidecar"
	"mirror/sidecar/admin"
	"mirror/sidecar/config"
	"mirror/sidecar/reload"
	"mirror/sidecar/status"
)

func runCommand() *cli.Command {
	return &cli.Command{
		Name:  "run",
		Usage: "mirror, in the foreground, until a signal",
		Description: `SIGTERM or SIGINT drains each flow and saves its positions, within the flow's
grace time, and exits 0. A second signal exits 130 at once. SIGHUP, a change of the
config file and mirror reload apply the file again: see mirror reload --help.

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
	log, level := newLogger(cfg.Log, c.App.ErrWriter)
	hangups := make(chan os.Signal, 1) // one that waits is enough: what is read is as it is then
	signal.Notify(hangups, syscall.SIGHUP)
	defer signal.Stop(hangups)
	return untilSignal(c.Context, log, func(ctx context.Context) error { return mirror(ctx, cfg, log, level, hangups) })
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

// mirror runs the flows, and beside them until they have ended the admin server.
// Until ctx ends it reloads the config when something calls for it.
func mirror(ctx context.Context, cfg *config.Config, log *slog.Logger, level *slog.LevelVar, hangups <-chan os.Signal) (err error) {
	m, err := sidecar.New(cfg, build().Version, log, level)
	if err != nil {
		return err
	}
	load := func() (*config.Config, error) { return config.Load(cfg.File) }
	reloader := reload.New(reload.Options{
		Do:    func(ctx context.Context, trigger string) status.Reload { return m.Reload(ctx, trigger, load) },
		Files: m.Files, Signals: hangups, Log: log,
	})
	run := m.Run
	if cfg.Admin.Listen != "" {
		server, err := admin.Listen(cfg.Admin, admin.Answers{Status: m.Status, Reload: reloader.Request, Translate: m.Translate, Lag: m.Lag}, log)
		if err != nil {
			m.Close()
			return err
		}
		log.Info("admin server listens", "address", server.Addr())
		run = func(ctx context.Context) error { return serveWhile(ctx, server, m.Run) }
	}
	log.Info("mirror starts", "version", build().Version, "config", cfg.File, "flows", len(cfg.Flows))
	reloading, stopReloading := context.WithCancel(ctx)
	defer stopReloading()
	var reloads sync.WaitGroup
	reloads.Go(func() { reloader.Run(reloading) })
	err = run(ctx)
	stopReloading()
	reloads.Wait()
	if err == nil {
		log.Info("mirror stopped")
	}
	return err
}

// serveWhile runs the admin server while run runs: it still answers while flows
// drain, and when it fails they stop.
func serveWhile(ctx context.Context, server *admin.Server, run func(context.Context) error) error {
	flows, stopFlows := context.WithCancel(ctx)
	defer stopFlows()
	serving, stopServing := context.WithCancel(context.WithoutCancel(ctx))
	defer stopServing()
	served := make(chan error, 1)
	go func() {
		served <- server.Run(serving)
		stopFlows()
	}()
	err := run(flows)
	stopServing()
	return errors.Join(err, <-served)
}
