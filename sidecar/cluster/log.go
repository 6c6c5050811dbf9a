package cluster

import (
	"context"
	"log/slog"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/plugin/kslog"
)

// clientLogger is where a client's own messages go. It repeats some of them with every attempt to
// connect, and what matters comes back as an error anyway: so its warnings and news appear at level
// debug, and its own debugging not at all.
func clientLogger(log *slog.Logger) kgo.Logger {
	return kslog.New(slog.New(demoting{log.Handler()}))
}

type demoting struct {
	slog.Handler
}

func (d demoting) Enabled(ctx context.Context, level slog.Level) bool {
	return level >= slog.LevelInfo && d.Handler.Enabled(ctx, slog.LevelDebug)
}

func (d demoting) Handle(ctx context.Context, r slog.Record) error {
	r.Level = slog.LevelDebug
	return d.Handler.Handle(ctx, r)
}
