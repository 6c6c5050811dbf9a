package cli

import (
	"context"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
)

// untilSignal runs do. The first SIGTERM or SIGINT ends its context; a second
// one does not wait for it any longer, and gives errInterrupted.
func untilSignal(ctx context.Context, log *slog.Logger, do func(context.Context) error) error {
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT)
	defer signal.Stop(signals)
	return untilSecond(ctx, signals, log, do)
}

func untilSecond(ctx context.Context, signals <-chan os.Signal, log *slog.Logger, do func(context.Context) error) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	done := make(chan error, 1)
	go func() { done <- do(ctx) }()
	select {
	case err := <-done:
		return err
	case s := <-signals:
		log.Info("stopping: draining and saving positions; a second signal stops at once", "signal", s.String())
		stop()
	}
	select {
	case err := <-done:
		return err
	case <-signals:
		return errInterrupted
	}
}
